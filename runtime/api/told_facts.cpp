#include "runtime/api/told_facts.hpp"

#include "storage/journal.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

class fact_screen {
public:
  explicit fact_screen(const call& c) : by_(c.by), users_(c.parts->users), storage_(c.parts->storage) {}

  bool operator()(const storage::committed_fact& one) const {
    if (one.entity != cluster_entity)
      return true;
    const auto known = decode(one.bytes);
    return known && std::visit([this](const auto& x) { return shows(x); }, *known);
  }

private:
  template <class F>
  bool shows(const F& x) const {
    const user_id me{by_.user_id};
    if constexpr (std::is_same_v<F, user_setting_changed> || std::is_same_v<F, project_visited>)
      return x.user == me;
    else if constexpr (std::is_same_v<F, token_changed> || std::is_same_v<F, roles_changed>)
      return is_admin() || x.user == me;
    else if constexpr (std::is_same_v<F, group_changed>)
      return is_admin() || std::find(x.members.begin(), x.members.end(), me) != x.members.end();
    else if constexpr (std::is_same_v<F, webhook_changed>)
      return is_admin() || !x.workspace || owns(x.workspace);
    else if constexpr (std::is_same_v<F, webhook_event>)
      return is_admin();
    else if constexpr (std::is_same_v<F, cluster_message_changed>)
      return is_admin() || x.begins <= x.at;
    else
      return true;
  }
  bool is_admin() const { // now: a stream may last
    const auto user = users_->find(by_.user_id);
    return user && user->admin && user->active;
  }
  bool owns(workspace_id id) const {
    const auto all = storage_->workspaces();
    return all && std::any_of(all->begin(), all->end(),
                              [&](const auto& one) { return one.id == id && by_.is(one.owner); });
  }

  identity by_;
  std::shared_ptr<accounts> users_;
  std::shared_ptr<storage::reader> storage_;
};

} // namespace

fact_choice told_to(const call& c) {
  if (c.by.roles)
    return {};
  return fact_screen(c);
}

} // namespace troupe::api
