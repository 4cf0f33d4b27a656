#include "runtime/node/configuration_store.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/cluster_file.hpp"
#include "system/whole_file.hpp"

#include <algorithm>
#include <future>
#include <set>

namespace troupe::node {
namespace {

constexpr std::size_t most_orders = 64;
constexpr auto patience = std::chrono::seconds(30);

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

const value& list_of(const value& x, const char* key) {
  static const value none = value::array();
  if (!x.is_object())
    return none;
  auto it = x.find(key);
  return it == x.end() || !it->is_array() ? none : *it;
}

std::string text_of(const value& x, const std::string& key) {
  if (!x.is_object())
    return {};
  auto it = x.find(key);
  return it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const value* named(const value& list, const std::string& name) {
  for (const auto& one : list)
    if (text_of(one, "name") == name)
      return &one;
  return nullptr;
}

bool is_built_in(const std::string& user) { return user == "admin" || user == "determined"; }

std::int64_t micros(time_point at) { return at.time_since_epoch().count(); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

} // namespace

void configuration_store::serve(api::gate& cluster) {
  cluster_ = &cluster;
  if (how_.watch && !in_force_.is_null())
    how_.watch(in_force_);
  thread_ = std::thread([this] { work(); });
}

configuration_store::~configuration_store() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
  for (auto& one : orders_)
    one.done(error{errc::unreachable, "the master stops"});
}

void configuration_store::call(const api::principal& who, const std::string& command, value fields,
                               api::answer done) {
  std::unique_lock lock(mutex_);
  if (end_ || orders_.size() >= most_orders) {
    lock.unlock();
    return done(error{errc::busy, "too many ask for the configuration at once; try again"});
  }
  orders_.push_back({who, command, std::move(fields), std::move(done)});
  wake_.notify_all();
}

void configuration_store::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return end_ || !orders_.empty(); });
    if (end_)
      return;
    auto next = std::move(orders_.front());
    orders_.pop_front();
    lock.unlock();
    by_ = next.who;
    next.done(commands::dispatch<value, commands::configuration_commands>(
      next.command, std::move(next.fields), [this](auto order) { return on(std::move(order)); }));
  }
}

/// Of users, what is true: one that was made inactive is not there, a role is the account's.
result<value> configuration_store::on(const commands::configuration_get&) const {
  auto shown = in_force_;
  value made = value::array(), by_hand = value::array();
  std::set<std::string> seen;
  for (auto one : list_of(in_force_, "users")) {
    const auto name = text_of(one, "name");
    auto account = how_.users->find(name);
    seen.insert(name);
    if (!account || !account->active)
      continue;
    one["role"] = account->admin ? "admin" : "user";
    made.push_back(std::move(one));
  }
  for (const auto& u : how_.users->users())
    if (u.active && !seen.contains(u.name) && !is_built_in(u.name))
      by_hand.push_back(u.name);
  if (shown.is_object())
    shown["users"] = std::move(made);
  return value{{"configuration", std::move(shown)},
               {"revision", revision_},
               {"by_hand", {{"users", std::move(by_hand)}}}};
}

template <commands::command C>
result<value> configuration_store::ask(C what) {
  auto answered = std::make_shared<std::promise<result<value>>>();
  auto got = answered->get_future();
  cluster_->order(by_, std::move(what), [answered](result<value> x) { answered->set_value(std::move(x)); });
  if (got.wait_for(patience) != std::future_status::ready)
    return error{errc::timeout, "the cluster's actor does not answer"};
  return got.get();
}

result<value> configuration_store::on(const commands::configuration_put& order) {
  const auto& wanted = order.configuration;
  const auto passwords = order.secrets.value("users", value::object());
  if (order.revision != revision_)
    return error{errc::conflict, "the configuration has changed meanwhile; look at the plan again"};
  if (auto faults = config::configuration_faults(wanted); !faults.empty()) {
    std::string all;
    for (const auto& one : faults)
      all += (all.empty() ? "" : "\n") + one;
    return error{errc::invalid, all};
  }
  for (const auto& one : list_of(wanted, "users")) // what would fail when it is in force already
    if (const auto name = text_of(one, "name");
        !how_.loopback && !how_.users->find(name) && text_of(passwords, name).empty())
      return error{
        errc::invalid,
        "users." + name +
          ": a blank password is allowed on a loopback address only\nhint: give it a password_file"};
  auto recorded = ask(commands::configuration_record{wanted, revision_});
  if (!recorded)
    return recorded.error();
  const auto before = std::exchange(in_force_, wanted);
  revision_ = recorded->value("revision", revision_);
  auto tokens = settle_users(before, wanted, passwords, order.prune);
  if (how_.watch)
    how_.watch(in_force_);
  if (!tokens)
    return tokens.error();
  return value{{"revision", revision_}, {"tokens", std::move(*tokens)}};
}

result<value> configuration_store::settle_users(const value& before, const value& wanted,
                                                const value& passwords,
                                                const std::vector<std::string>& prune) {
  value tokens = value::array();
  for (const auto& old : list_of(before, "users"))
    if (const auto name = text_of(old, "name"); !named(list_of(wanted, "users"), name)) {
      if (auto ok = drop_tokens(name, old, value::object()); !ok)
        return ok.error();
      if (auto ok = dismiss(name); !ok)
        return ok.error();
    }
  for (const auto& name : prune)
    if (auto ok = dismiss(name); !ok)
      return ok.error();
  for (const auto& one : list_of(wanted, "users")) {
    const auto name = text_of(one, "name");
    if (auto ok = settle(one, passwords); !ok)
      return ok.error();
    if (const auto* old = named(list_of(before, "users"), name))
      if (auto ok = drop_tokens(name, *old, one); !ok)
        return ok.error();
    for (const auto& token : list_of(one, "tokens")) {
      auto file = keep_token(name, token, passwords);
      if (!file)
        return file.error();
      tokens.push_back({{"user", name}, {"name", text_of(token, "name")}, {"file", file->string()}});
    }
  }
  return tokens;
}

/// One user as the file has it. A password counts where the file gives one.
result<void> configuration_store::settle(const value& one, const value& passwords) {
  auto& users = *how_.users;
  const auto name = text_of(one, "name");
  const bool admin = text_of(one, "role") == "admin";
  const auto password = text_of(passwords, name);
  auto at = [&](const error& why) { return error{why.code, "users." + name + ": " + why.what}; };
  commands::user_wish wish;
  const auto there = users.find(name);
  if (!there || (!password.empty() && !users.log_in(name, password, false, now()))) {
    auto kept = users.keep_password(password, false);
    if (!kept)
      return at(kept.error());
    wish.password = *kept;
  }
  if (!there) {
    wish.name = name;
    wish.admin = admin;
    auto made = ask(commands::user_create{std::move(wish)});
    return made ? result<void>{} : at(made.error());
  }
  if (!there->active)
    wish.active = true;
  if (there->admin != admin && !is_built_in(name))
    wish.admin = admin;
  if (!wish.password && !wish.active && !wish.admin)
    return {};
  auto changed = ask(commands::user_change{std::move(wish), {there->id}});
  return changed ? result<void>{} : at(changed.error());
}

/// As in Determined, an account is never deleted.
result<void> configuration_store::dismiss(const std::string& name) {
  auto there = how_.users->find(name);
  if (!there || !there->active || is_built_in(name))
    return {};
  commands::user_wish wish;
  wish.active = false;
  auto changed = ask(commands::user_change{std::move(wish), {there->id}});
  return changed ? result<void>{} : changed.error();
}

std::filesystem::path configuration_store::token_file(const std::string& user,
                                                      const std::string& token) const {
  return how_.folder / "tokens" / (user + "." + token);
}

result<void> configuration_store::drop_tokens(const std::string& user, const value& before,
                                              const value& wanted) {
  for (const auto& token : list_of(before, "tokens")) {
    const auto name = text_of(token, "name");
    if (named(list_of(wanted, "tokens"), name))
      continue;
    auto text = read_whole(token_file(user, name));
    if (!text)
      return text.error();
    if (!*text)
      continue;
    if (auto session = how_.users->session_of(first_line(**text), now()))
      if (auto ok = ask(commands::token_revoke{{session->user_id}, session->id, micros(session->until)}); !ok)
        return ok.error();
    std::error_code ignored;
    std::filesystem::remove(token_file(user, name), ignored);
  }
  return {};
}

/// Made anew where it is missing or void. A session as long as the file says, opened with the user's
/// password.
result<std::filesystem::path> configuration_store::keep_token(const std::string& user, const value& token,
                                                              const value& passwords) {
  const auto file = token_file(user, text_of(token, "name"));
  auto old = read_whole(file);
  if (!old)
    return old.error();
  if (*old && how_.users->holder(first_line(**old), now()))
    return file;
  const auto life = std::chrono::seconds(config::duration_seconds(text_of(token, "expires")));
  auto session = how_.users->log_in(user, text_of(passwords, user), false, now(), life);
  if (!session)
    return error{session.error().code == errc::unauthorized ? errc::invalid : session.error().code,
                 "users." + user + ".tokens." + text_of(token, "name") +
                   ": it is made with the user's password: " + session.error().what +
                   "\nhint: give the user a password_file"};
  std::error_code fault;
  std::filesystem::create_directories(file.parent_path(), fault);
  if (fault)
    return error{errc::io, "cannot make '" + file.parent_path().string() + "': " + fault.message()};
  if (auto ok = replace_file(file, session->token + "\n"); !ok)
    return ok.error();
  const auto& claim = session->claim;
  if (auto ok =
        ask(commands::token_name{{claim.user_id}, claim.id, micros(claim.until), text_of(token, "name")});
      !ok)
    return ok.error();
  return file;
}

} // namespace troupe::node
