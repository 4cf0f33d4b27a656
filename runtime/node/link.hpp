#pragma once
// The node link: how an agent's process reaches the master's cluster actor (mail), and its files (bulk).
//
// Mail is CAF's own network layer; bulk is HTTP, one request a file, with TCP's own back-pressure. With TLS
// both sides of the mail link show a certificate of the cluster's CA; without it the link binds to loopback
// only.

#include "actors/shells/probed.hpp"
#include "runtime/forward/forwarder.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <memory>

namespace troupe::node {

/// CAF's settings for a node: ours, the network layer where there is a link, heartbeats, and the certificates
/// in `tls_dir` unless it is empty.
class link_config : public node_config {
public:
  link_config(const std::filesystem::path& tls_dir, bool master, bool link = true);
  /// The files of `tls_dir` that are missing.
  result<void> check() const;

private:
  std::filesystem::path tls_dir_;
};

/// Publishes the cluster actor and returns the port. errc::conflict where the address is taken.
result<std::uint16_t> publish(caf::actor_system& sys, const cluster_actor& cluster, const std::string& host,
                              std::uint16_t port, const std::filesystem::path& tls_dir);
void unpublish(caf::actor_system& sys, std::uint16_t port);

/// DIR/join-token, or an empty one where `tls_dir` is empty.
result<std::string> read_join_token(const std::filesystem::path& tls_dir);

/// Makes a CA, certificates for master and agents, and the join token. errc::conflict where some exist and
/// `replace` is false.
result<void> make_tls_files(const std::filesystem::path& dir, const std::vector<std::string>& hosts, int days,
                            bool replace);

/// An agent's side. Thread-safe; dialling happens on a thread of its own.
class master_link {
public:
  /// `address`: HOST:PORT of the master's HTTP port, or of its agent port.
  static result<std::shared_ptr<master_link>> to(caf::actor_system& sys, const std::string& address,
                                                 const std::filesystem::path& tls_dir,
                                                 const std::string& join_token);
  master_link(); ///< use `to`
  ~master_link();
  /// Answers `who` with master_found, empty where the master cannot be reached within 5 s. The first time
  /// that it cannot is said on stderr; what no waiting mends comes back as final.
  void dial(const agent_actor& who);
  /// What came back as final, with its code: the message has the text alone.
  std::optional<error> refusal() const;
  /// What a registration told: files come from there. Needed where `address` is the agent port.
  void learn_http_port(std::uint16_t port);
  /// How a sandbox reaches the master: itself where that is plain and on this host, over TLS by this very
  /// program. The address is empty while it cannot.
  workers::fence_spec fence() const;
  /// The master's HTTP port; nothing before it is known. Thread-safe.
  std::optional<forward::master_address> http_address() const;
  /// A blob; blocks, at most 10 minutes.
  result<std::string> fetch(const std::string& blob) const;
  const std::string& join_token() const { return join_token_; }
  void stop();

private:
  struct inside;
  std::unique_ptr<inside> inside_;
  std::string join_token_;
};

} // namespace troupe::node
