#pragma once
// The master role of a node: the journal, the accounts, the cluster's actors, the node link and the HTTP
// port.

#include "actors/cluster/cluster_actor.hpp"
#include "actors/journal/journal_actor.hpp"
#include "runtime/api/server.hpp"
#include "runtime/forward/forwarder.hpp"
#include "runtime/node/cluster_gate.hpp"
#include "runtime/node/configuration_store.hpp"
#include "runtime/node/role_ground.hpp"
#include "runtime/node/webhook_courier.hpp"

#include <atomic>

namespace troupe::node {

class master_role {
public:
  explicit master_role(role_ground on) : on_(std::move(on)), host_(on_.options.host) {}

  /// Checks the settings, recovers, and serves before it returns.
  result<void> open();

  // The functions below end the role, in this order: ports, then actors, then what the actors used.
  void close_port();
  void end_actors();
  /// Releases every handle, and waits until nobody else holds the journal's actor: owners end their children
  /// without waiting for them, but all of them hold a handle of it.
  void let_go();

  const std::string& url() const { return url_; }         ///< URL that a client on this host dials
  const std::string& address() const { return address_; } ///< the same URL with the host that was asked for
  /// URL of the HTTP server, with the name in its certificate.
  forward::master_address http_address() const;
  std::string web_link(const std::string& user, const std::string& path) const;
  const cluster_ids& ids() const { return ids_; }
  const std::string& join_token() const { return join_token_; }
  const cluster_actor& cluster() const { return cluster_; }
  api::gate& commands() const { return *gate_; }
  std::shared_ptr<api::accounts> users() const { return accounts_; }
  std::shared_ptr<proxy::junctions> junctions() const { return junctions_; }
  std::shared_ptr<storage::reader> reads() const { return journal_ ? journal_->reads() : nullptr; }

private:
  /// Where the role listens, according to the settings.
  struct addresses {
    api::listen_address http, link;
    std::optional<api::listen_address> pages;
  };
  result<addresses> checked_addresses() const;
  result<void> open_journal();
  result<void> make_ids();
  result<void> open_users(const api::accounts::options& how);
  void start_journal();
  result<void> open_cluster(const api::accounts::options& users);
  std::unique_ptr<instance_provider> make_provider(const std::string& pool, const value& settings);
  result<void> open_desk();
  result<void> open_link(const api::listen_address& where);
  result<void> open_http(const api::listen_address& where, const std::optional<api::listen_address>& pages);
  api::accounts::options accounts_options(const api::listen_address& http) const;
  journal_peers peers_of_journal();
  result<void> open_courier(const value& configuration, bool loopback);
  void route(storage::recorded_validation v) const;
  void watch(const caf::actor& who, const std::string& what);

  role_ground on_;
  const host_process& host_;
  std::shared_ptr<storage::journal> journal_;
  journal_actor journal_actor_;
  caf::strong_actor_ptr last_of_journal_; ///< the journal's actor, from its end until let_go
  std::shared_ptr<api::accounts> accounts_;
  cluster_actor cluster_;
  std::shared_ptr<log_watch> lines_; ///< finds patterns in logs for the journal
  std::shared_ptr<webhook_courier> courier_;
  std::string join_token_;
  cluster_ids ids_;
  std::uint16_t link_port_ = 0;
  std::unique_ptr<cluster_gate> gate_;
  /// Asks the cluster, so that it ends before the gate's actors.
  std::unique_ptr<configuration_store> configuration_;
  std::unique_ptr<api::server> server_;
  std::atomic<api::server*> listening_{nullptr};
  std::atomic<std::uint16_t> http_port_{0};
  std::shared_ptr<std::atomic<bool>> ends_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<api::login_codes> codes_ = std::make_shared<api::login_codes>();
  std::shared_ptr<proxy::junctions> junctions_ = std::make_shared<proxy::junctions>();
  std::string url_, address_;
};

} // namespace troupe::node
