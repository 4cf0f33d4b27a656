#pragma once
// The way into the cluster for one viewer where roles decide: each command is looked at once more, with the
// thing that it names, before it goes on; what a question answers of things that may not be seen is left out.

#include "runtime/api/feed.hpp"
#include "runtime/api/veil.hpp"

namespace troupe::api {

/// What has to hold for a command of a viewer: permissions, each in a workspace (0: in all of them), after
/// the things that it names were found visible.
struct demand {
  authority::permission what = authority::permission::view_workspace;
  workspace_id in;
};
/// errc::not_found for what the viewer may not see. `all` sees everything. Empty: the table of
/// model/authority/authority.hpp decides alone.
result<std::vector<demand>> demands_of(const viewer& by, const storage::reader& all,
                                       const std::string& command, const value& fields);

/// Whether the viewer is shown a pool: where it is bound to workspaces, those see it who see one of them, and
/// who may bind it. `all` sees everything.
bool shows_pool(const viewer& by, const storage::reader& all, const std::string& pool);

/// `to` outlives it.
class guard final : public gate, public feed_gate {
public:
  /// `by` without a book: roles decide nothing. `strict_queue`: only admins, or who has the permission,
  /// change what others wait for: priorities, weights, limits and pools.
  guard(gate& to, std::shared_ptr<storage::reader> all, viewer by, bool strict_queue)
      : to_(to), all_(std::move(all)), by_(std::move(by)), strict_queue_(strict_queue) {}
  void call(const principal& who, const std::string& command, value fields, answer done) override;
  void call_together(const principal& who, std::vector<grouped_order> orders) override;
  void open(const principal& who, const std::string& command, value fields, std::shared_ptr<feed> to,
            answer done) override;

private:
  result<void> check(const principal& who, const std::string& command, const value& fields) const;

  gate& to_;
  std::shared_ptr<storage::reader> all_;
  viewer by_;
  bool strict_queue_;
};

} // namespace troupe::api
