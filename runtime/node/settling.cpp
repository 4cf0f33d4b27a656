#include "runtime/node/settling.hpp"

namespace troupe::node {
namespace {

class plan {
public:
  plan(std::map<std::string, known_account> accounts, const value& passwords)
      : accounts_(std::move(accounts)), passwords_(passwords) {}

  void dismiss(const std::string& user) {
    auto at = accounts_.find(user);
    if (at == accounts_.end() || !at->second.active || is_built_in(user))
      return;
    at->second.active = false;
    late_.push_back(dismiss_user{user});
  }

  void settle(const value& one) {
    const auto user = text_in(one, "name");
    const bool admin = text_in(one, "role") == "admin";
    auto at = accounts_.find(user);
    if (at == accounts_.end()) {
      accounts_[user] = {admin, true, true};
      return steps.push_back(make_user{user, admin});
    }
    auto& now = at->second;
    change_user step{user, !text_in(passwords_, user).empty() && !now.password_fits, {}, {}};
    if (!now.active)
      step.active = true;
    if (now.admin != admin && !is_built_in(user)) {
      if (admin)
        step.admin = true;
      else
        late_.push_back(change_user{user, false, {}, false});
    }
    if (step != change_user{user, false, {}, {}})
      steps.push_back(std::move(step));
  }

  void drop_tokens(const value& before, const value& wanted) {
    for (const auto& token : list_in(before, "tokens"))
      if (const auto name = text_in(token, "name"); !named_in(list_in(wanted, "tokens"), name))
        steps.push_back(drop_token{text_in(before, "name"), name});
  }

  void keep_tokens(const value& wanted) {
    for (const auto& token : list_in(wanted, "tokens"))
      steps.push_back(keep_token{text_in(wanted, "name"), text_in(token, "name"), text_in(token, "expires")});
  }

  /// Steps that dismiss somebody or take the admin role away come last: another admin exists by then.
  std::vector<settling_step> in_order() && {
    steps.insert(steps.end(), late_.begin(), late_.end());
    return std::move(steps);
  }

private:
  std::vector<settling_step> steps, late_;
  std::map<std::string, known_account> accounts_;
  const value& passwords_;
};

} // namespace

const value& list_in(const value& x, const char* key) {
  static const value none = value::array();
  if (!x.is_object())
    return none;
  auto it = x.find(key);
  return it == x.end() || !it->is_array() ? none : *it;
}

std::string text_in(const value& x, const std::string& key) {
  if (!x.is_object())
    return {};
  auto it = x.find(key);
  return it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const value* named_in(const value& list, const std::string& name) {
  for (const auto& one : list)
    if (text_in(one, "name") == name)
      return &one;
  return nullptr;
}

bool is_built_in(const std::string& user) { return user == "admin" || user == "determined"; }

std::vector<settling_step> settling_steps(const value& before, const value& wanted,
                                          std::map<std::string, known_account> accounts,
                                          const value& passwords, const std::vector<std::string>& prune) {
  plan out(std::move(accounts), passwords);
  const auto &old = list_in(before, "users"), &next = list_in(wanted, "users");
  for (const auto& one : old)
    if (const auto user = text_in(one, "name"); !named_in(next, user)) {
      out.drop_tokens(one, value::object());
      out.dismiss(user);
    }
  for (const auto& user : prune)
    if (!named_in(next, user))
      out.dismiss(user);
  for (const auto& one : next) {
    out.settle(one);
    if (const auto* was = named_in(old, text_in(one, "name")))
      out.drop_tokens(*was, one);
    out.keep_tokens(one);
  }
  return std::move(out).in_order();
}

} // namespace troupe::node
