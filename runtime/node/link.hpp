#pragma once
// The node link, by which an agent's process reaches the master's cluster actor (mail) and its files (bulk).
//
// Mail uses CAF's own network layer; bulk uses HTTP, with one request for each file and TCP's own
// back-pressure. With TLS, both ends of the mail link show a certificate of the cluster's CA; without TLS,
// the link binds to loopback only.

#include "actors/shells/probed.hpp"
#include "runtime/forward/forwarder.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <memory>

namespace troupe::node {

/// CAF's settings for a node: our message types, the network layer if there is a link, heartbeats, and the
/// certificates in `tls_dir` unless it is empty.
class link_config : public node_config {
public:
  link_config(const std::filesystem::path& tls_dir, bool master, bool link = true);
  /// Fails and names the files that are missing in `tls_dir`.
  result<void> check() const;

private:
  std::filesystem::path tls_dir_;
};

/// Publishes the cluster actor and returns the port. errc::conflict if the address is taken.
result<std::uint16_t> publish(caf::actor_system& sys, const cluster_actor& cluster, const std::string& host,
                              std::uint16_t port, const std::filesystem::path& tls_dir);
void unpublish(caf::actor_system& sys, std::uint16_t port);

/// Reads DIR/join-token; returns an empty token if `tls_dir` is empty.
result<std::string> read_join_token(const std::filesystem::path& tls_dir);

/// Makes a CA, certificates for the master and the agents, and the join token. errc::conflict if some of them
/// exist and `replace` is false.
result<void> make_tls_files(const std::filesystem::path& dir, const std::vector<std::string>& hosts, int days,
                            bool replace);

/// The agent's end of the link. Thread-safe; a thread of its own dials.
class master_link {
public:
  /// `address`: HOST:PORT of the master's HTTP port, or of its agent port.
  static result<std::shared_ptr<master_link>> to(caf::actor_system& sys, const std::string& address,
                                                 const std::filesystem::path& tls_dir,
                                                 const std::string& join_token);
  master_link(); ///< to be made by `to` only
  ~master_link();
  /// Answers `who` with master_found, which is empty if the master cannot be reached within 5 s. The first
  /// such failure is written to stderr. A failure that waiting does not mend is reported as final.
  void dial(const agent_actor& who);
  /// The refusal that was reported as final, with its code; the message holds only the text.
  std::optional<error> refusal() const;
  /// Notes the HTTP port that a registration told, from which files are fetched. Needed if `address` is the
  /// agent port.
  void learn_http_port(std::uint16_t port);
  /// How a sandbox reaches the master: without TLS by itself, if the master is on this host; with TLS by
  /// means of this program. The address is empty while neither is possible.
  workers::fence_spec fence() const;
  /// The address of the master's HTTP port; nothing until it is known. Thread-safe.
  std::optional<forward::master_address> http_address() const;
  /// Fetches a blob; blocks for at most 10 minutes.
  result<std::string> fetch(const std::string& blob) const;
  const std::string& join_token() const { return join_token_; }
  void stop();

private:
  struct inside;
  std::unique_ptr<inside> inside_;
  std::string join_token_;
};

} // namespace troupe::node
