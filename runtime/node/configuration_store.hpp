#pragma once
// Puts configurations in force, one after the other, on a thread of its own. The cluster's actor decides and
// makes a configuration durable; then the users that it names are settled, each by a command of its own; then
// `watch` is called. Files in the master's folder hold the texts of named tokens.

#include "runtime/api/accounts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/node/settling.hpp"

#include <condition_variable>
#include <deque>
#include <thread>

namespace troupe::node {

/// A copy of the configuration in force, beside the journal. A start without a cluster file reads it before
/// it opens the journal.
inline std::filesystem::path configuration_copy(const std::filesystem::path& data_dir) {
  return data_dir / "master" / "configuration.json";
}

class configuration_store {
public:
  struct setup {
    std::filesystem::path folder; ///< DIR/master; the file tokens/USER.NAME is made below it
    bool loopback = true;         ///< false: no user may have a blank password
    std::shared_ptr<api::accounts> users;
    configuration_changed in_force; ///< configuration in force at the start; revision 0: none
    /// Gets the configuration in force at `serve` and after each change.
    std::function<void(const value& configuration)> watch;
  };
  explicit configuration_store(setup how)
      : how_(std::move(how)), in_force_(how_.in_force.configuration), revision_(how_.in_force.revision) {}
  ~configuration_store(); ///< finishes the current order and refuses the others

  /// Sends its commands to the actor behind `cluster` from now on; `cluster` has to live longer than this
  /// object.
  void serve(api::gate& cluster);

  /// Runs one of commands::configuration_commands by its name. Any thread may call this; it never blocks.
  /// `done` is called on the store's thread.
  void call(const api::principal& who, const std::string& command, value fields, api::answer done);

private:
  struct order {
    api::principal who;
    std::string command;
    value fields;
    api::answer done;
  };

  void work();
  result<value> on(const commands::configuration_get& order) const;
  result<value> on(const commands::configuration_put& order);
  /// Runs a command in the name of the user who gave the current order.
  template <commands::command C>
  result<value> ask(C what);
  result<value> settle_users(const value& before, const value& wanted, const value& passwords,
                             const std::vector<std::string>& prune);
  result<void> run(const drop_token& x, const value& passwords, value& tokens);
  result<void> run(const dismiss_user& x, const value& passwords, value& tokens);
  result<void> run(const make_user& x, const value& passwords, value& tokens);
  result<void> run(const change_user& x, const value& passwords, value& tokens);
  result<void> run(const keep_token& x, const value& passwords, value& tokens);
  result<void> change(const std::string& user, commands::user_wish wish);
  std::filesystem::path token_file(const std::string& user, const std::string& token) const;

  setup how_;
  value in_force_; ///< null: none; only the thread uses it, once it runs
  std::uint64_t revision_ = 0;
  api::gate* cluster_ = nullptr;
  api::principal by_; ///< user who gave the current order; only the thread uses it
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<order> orders_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace troupe::node
