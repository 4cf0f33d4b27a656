#include "runtime/node/configuration_store.hpp"

#include "model/config/cluster_config.hpp"
#include "model/config/cluster_file.hpp"
#include "system/whole_file.hpp"

#include <future>
#include <set>

namespace troupe::node {
namespace {

constexpr std::size_t most_orders = 64;
constexpr auto patience = std::chrono::seconds(30);

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

std::int64_t micros(time_point at) { return at.time_since_epoch().count(); }

error at_user(const std::string& name, const error& why) {
  return {why.code, "users." + name + ": " + why.what};
}

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

/// Shows users as they are: a user who was made inactive is left out, and the role is the account's.
result<value> configuration_store::on(const commands::configuration_get&) const {
  auto shown = in_force_;
  value made = value::array(), by_hand = value::array();
  std::set<std::string> seen;
  for (auto one : list_in(in_force_, "users")) {
    const auto name = text_in(one, "name");
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
  auto wanted = order.configuration;
  config::restore_cluster_secrets(wanted, in_force_); // `troupe config show` hides these
  const auto passwords = order.secrets.value("users", value::object());
  if (order.revision != revision_)
    return error{errc::conflict, "the configuration has changed meanwhile; look at the plan again"};
  if (auto faults = config::configuration_faults(wanted); !faults.empty()) {
    std::string all;
    for (const auto& one : faults)
      all += (all.empty() ? "" : "\n") + one;
    return error{errc::invalid, all};
  }
  // Finds what would otherwise fail once the configuration is in force.
  for (const auto& one : list_in(wanted, "users"))
    if (const auto name = text_in(one, "name");
        !how_.loopback && !how_.users->find(name) && text_in(passwords, name).empty())
      return error{
        errc::invalid,
        "users." + name +
          ": a blank password is allowed on a loopback address only\nhint: give it a password_file"};
  auto recorded = ask(commands::configuration_record{wanted, revision_});
  if (!recorded)
    return recorded.error();
  const auto webhooks = order.secrets.value("webhooks", value());
  // Holds from the next start on, as all settings of webhooks do.
  if (const auto key = text_in(webhooks, "signing_key"); !key.empty())
    if (auto kept = replace_file(how_.folder / "webhook-key", key + "\n"); !kept)
      return kept.error();
  const auto before = std::exchange(in_force_, wanted);
  revision_ = recorded->value("revision", revision_);
  auto tokens = settle_users(before, wanted, passwords, order.prune);
  if (how_.watch)
    how_.watch(in_force_);
  if (!tokens)
    return tokens.error();
  return value{{"revision", revision_},
               {"tokens", std::move(*tokens)},
               {"warnings", recorded->value("warnings", value::array())}};
}

result<value> configuration_store::settle_users(const value& before, const value& wanted,
                                                const value& passwords,
                                                const std::vector<std::string>& prune) {
  std::map<std::string, known_account> accounts;
  for (const auto& u : how_.users->users()) {
    const auto password = text_in(passwords, u.name);
    accounts[u.name] = {u.admin, u.active,
                        password.empty() || how_.users->log_in(u.name, password, false, now())};
  }
  value tokens = value::array();
  for (const auto& step : settling_steps(before, wanted, std::move(accounts), passwords, prune)) {
    auto ok = std::visit([&](const auto& x) { return run(x, passwords, tokens); }, step);
    if (!ok)
      return ok.error();
  }
  return tokens;
}

result<void> configuration_store::run(const make_user& x, const value& passwords, value&) {
  auto password = how_.users->keep_password(text_in(passwords, x.user), false);
  if (!password)
    return at_user(x.user, password.error());
  commands::user_wish wish;
  wish.name = x.user;
  wish.admin = x.admin;
  wish.password = *password;
  auto made = ask(commands::user_create{std::move(wish)});
  return made ? result<void>{} : at_user(x.user, made.error());
}

result<void> configuration_store::run(const change_user& x, const value& passwords, value&) {
  commands::user_wish wish;
  wish.active = x.active;
  wish.admin = x.admin;
  if (x.new_password) {
    auto password = how_.users->keep_password(text_in(passwords, x.user), false);
    if (!password)
      return at_user(x.user, password.error());
    wish.password = *password;
  }
  return change(x.user, std::move(wish));
}

result<void> configuration_store::run(const dismiss_user& x, const value&, value&) {
  commands::user_wish wish;
  wish.active = false;
  return change(x.user, std::move(wish));
}

result<void> configuration_store::change(const std::string& user, commands::user_wish wish) {
  auto there = how_.users->find(user);
  if (!there)
    return at_user(user, {errc::not_found, "there is no such user"});
  auto changed = ask(commands::user_change{std::move(wish), {there->id}});
  return changed ? result<void>{} : at_user(user, changed.error());
}

std::filesystem::path configuration_store::token_file(const std::string& user,
                                                      const std::string& token) const {
  return how_.folder / "tokens" / (user + "." + token);
}

result<void> configuration_store::run(const drop_token& x, const value&, value&) {
  const auto file = token_file(x.user, x.name);
  auto text = read_whole(file);
  if (!text)
    return text.error();
  if (!*text)
    return {};
  if (auto session = how_.users->session_of(first_line(**text), now()))
    if (auto ok = ask(commands::token_revoke{{session->user_id}, session->id, micros(session->until)}); !ok)
      return ok.error();
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return {};
}

result<void> configuration_store::run(const keep_token& x, const value& passwords, value& tokens) {
  const auto file = token_file(x.user, x.name);
  tokens.push_back({{"user", x.user}, {"name", x.name}, {"file", file.string()}});
  auto old = read_whole(file);
  if (!old)
    return old.error();
  if (*old && how_.users->holder(first_line(**old), now()))
    return {};
  const auto life = std::chrono::seconds(config::duration_seconds(x.expires));
  auto session = how_.users->log_in(x.user, text_in(passwords, x.user), false, now(), life);
  if (!session)
    return error{session.error().code == errc::unauthorized ? errc::invalid : session.error().code,
                 "users." + x.user + ".tokens." + x.name + ": it is made with the user's password: " +
                   session.error().what + "\nhint: give the user a password_file"};
  std::error_code fault;
  std::filesystem::create_directories(file.parent_path(), fault);
  if (fault)
    return error{errc::io, "cannot make '" + file.parent_path().string() + "': " + fault.message()};
  if (auto ok = replace_file(file, session->token + "\n"); !ok)
    return ok.error();
  const auto& claim = session->claim;
  auto ok = ask(commands::token_name{{claim.user_id}, claim.id, micros(claim.until), x.name});
  return ok ? result<void>{} : ok.error();
}

} // namespace troupe::node
