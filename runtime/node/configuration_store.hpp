#pragma once
// Puts a configuration in force, one after the other, in a thread of its own: the cluster's actor decides and
// makes it durable, then come the users that it names, each by its own command, then whoever watches. The
// texts of named tokens stand in files of the master's folder.

#include "runtime/api/accounts.hpp"
#include "runtime/api/gate.hpp"
#include "runtime/node/settling.hpp"

#include <condition_variable>
#include <deque>
#include <thread>

namespace troupe::node {

/// The configuration in force, beside the journal: what a start without a cluster file reads before it opens
/// that.
inline std::filesystem::path configuration_copy(const std::filesystem::path& data_dir) {
  return data_dir / "master" / "configuration.json";
}

class configuration_store {
public:
  struct setup {
    std::filesystem::path folder; ///< DIR/master; tokens/USER.NAME is made below it
    bool loopback = true;         ///< false: no user may have a blank password
    std::shared_ptr<api::accounts> users;
    configuration_changed in_force; ///< at the start; revision 0: none
    std::function<void(const value& configuration)>
      watch; ///< what is in force: at `serve`, and after each change
  };
  explicit configuration_store(setup how)
      : how_(std::move(how)), in_force_(how_.in_force.configuration), revision_(how_.in_force.revision) {}
  ~configuration_store(); ///< finishes what it is at; the rest is refused

  /// From now on it tells the actor behind `cluster`, which outlives this.
  void serve(api::gate& cluster);

  /// commands::configuration_commands by name; from any thread, never blocks.
  /// The answer comes on this one's thread.
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
  /// In the name of whom it works for just now.
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
  value in_force_; ///< null: none; of the thread, once it runs
  std::uint64_t revision_ = 0;
  api::gate* cluster_ = nullptr;
  api::principal by_; ///< of the thread: who asked for what it is at
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<order> orders_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace troupe::node
