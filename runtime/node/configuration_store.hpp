#pragma once
// The configuration in force, in a file of the master's folder, beside the accounts that it names. One thread
// changes it, one change after the other: durable first, then told to the cluster's actor, then the users,
// then whoever watches.

#include "runtime/api/accounts.hpp"
#include "runtime/api/gate.hpp"

#include <condition_variable>
#include <deque>
#include <thread>

namespace troupe::node {

class configuration_store {
public:
  struct setup {
    std::filesystem::path file;           ///< DIR/master/configuration
    api::accounts::options accounts_file; ///< of `users`, to make tokens that live as long as the file says
    std::shared_ptr<api::accounts> users;
    std::function<void(const value& configuration)>
      watch; ///< what is in force: at `serve`, and after each change
  };
  /// errc::corrupt where the file does not decode, errc::io where it cannot be read.
  static result<std::unique_ptr<configuration_store>> open(setup how);
  ~configuration_store(); ///< finishes what it is at; the rest is refused

  const value& at_start() const { return in_force_; } ///< before `serve`
  /// From now on it tells the actor behind `cluster`, which outlives this.
  void serve(api::gate& cluster);

  /// commands::configuration_commands by name; from any thread, never blocks.
  /// The answer comes on this one's thread.
  void call(const api::principal& who, const std::string& command, value fields, api::answer done);

private:
  explicit configuration_store(setup how) : how_(std::move(how)) {}
  struct order {
    std::string command;
    value fields;
    api::answer done;
  };

  void work();
  result<value> on(const commands::configuration_get& order) const;
  result<value> on(const commands::configuration_put& order);
  template <commands::command C>
  result<value> ask(C what);
  result<value> settle_users(const value& before, const value& wanted, const value& passwords,
                             const std::vector<std::string>& prune);
  result<void> settle(const value& one, const value& passwords);
  result<void> dismiss(const std::string& name);
  result<void> drop_tokens(const std::string& user, const value& before, const value& wanted);
  result<std::filesystem::path> keep_token(const std::string& user, const value& token,
                                           const value& passwords);
  std::filesystem::path token_file(const std::string& user, const std::string& token) const;

  setup how_;
  value in_force_; ///< null: none; of the thread, once it runs
  std::uint64_t revision_ = 0;
  api::gate* cluster_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<order> orders_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace troupe::node
