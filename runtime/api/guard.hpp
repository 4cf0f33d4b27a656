#pragma once
// The way into the cluster for one viewer where roles decide. Each command is checked once more, together
// with the things that it names, before it goes on. Things that the viewer may not see are left out of
// answers.

#include "runtime/api/feed.hpp"
#include "runtime/api/veil.hpp"

namespace troupe::api {

/// A permission that a command of a viewer needs in one workspace (0: in all workspaces). It is checked after
/// the things that the command names were found visible.
struct demand {
  authority::permission what = authority::permission::view_workspace;
  workspace_id in;
};
/// What the command needs; empty where the table of model/authority/authority.hpp decides alone. Fails with
/// errc::not_found for a thing that the viewer may not see. `all` has to show everything.
result<std::vector<demand>> demands_of(const viewer& by, const storage::reader& all,
                                       const std::string& command, const value& fields);

/// Whether the viewer may know of a pool. A pool that is bound to workspaces is shown to viewers who see one
/// of these workspaces, and to those who may bind it. `all` has to show everything.
bool shows_pool(const viewer& by, const storage::reader& all, const std::string& pool);

/// A gate that checks commands and passes them on to `to`, which has to outlive it.
class guard final : public gate, public feed_gate {
public:
  /// `by` without a book: roles decide nothing. `strict_queue`: only admins, and users with the permission
  /// for it, change what others wait for: priorities, weights, limits and pools.
  guard(gate& to, std::shared_ptr<storage::reader> all, viewer by, bool strict_queue)
      : to_(to), all_(std::move(all)), by_(std::move(by)), strict_queue_(strict_queue) {}
  void call(const principal& who, const std::string& command, value fields, answer done) override;
  void call_together(const principal& who, std::vector<grouped_order> orders) override;
  void open(const principal& who, const std::string& command, value fields, std::shared_ptr<feed> to,
            answer done) override;
  /// Fails where the caller lacks a right for the command, whatever the state of the things it names.
  result<void> check(const principal& who, const std::string& command, const value& fields) const;

private:
  gate& to_;
  std::shared_ptr<storage::reader> all_;
  viewer by_;
  bool strict_queue_;
};

/// Whether `to`, the way into the cluster of the caller, would let the order pass. For handlers that look at
/// the states of things before they give an order, as a state is not for those who lack the right.
template <commands::command C>
result<void> may_order(const gate& to, const principal& who, C what) {
  const auto* by = dynamic_cast<const guard*>(&to);
  return by ? by->check(who, C::is.name, commands::write(std::move(what))) : result<void>();
}

} // namespace troupe::api
