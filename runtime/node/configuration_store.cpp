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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

} // namespace

result<std::unique_ptr<configuration_store>> configuration_store::open(setup how) {
  std::unique_ptr<configuration_store> out(new configuration_store(std::move(how)));
  auto text = read_whole(out->how_.file);
  if (!text)
    return text.error();
  if (!*text)
    return out;
  auto x = parse_json(**text);
  if (!x || !x->is_object() || !x->contains("configuration") || !x->contains("revision") ||
      !(*x)["revision"].is_number_unsigned())
    return error{errc::corrupt,
                 out->how_.file.string() +
                   " does not decode\nhint: restore the file, or delete it and apply the cluster file again"};
  out->in_force_ = (*x)["configuration"];
  out->revision_ = (*x)["revision"].get<std::uint64_t>();
  return out;
}

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

void configuration_store::call(const api::principal&, const std::string& command, value fields,
                               api::answer done) {
  std::unique_lock lock(mutex_);
  if (end_ || orders_.size() >= most_orders) {
    lock.unlock();
    return done(error{errc::busy, "too many ask for the configuration at once; try again"});
  }
  orders_.push_back({command, std::move(fields), std::move(done)});
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
  cluster_->order({"admin", true, ""}, std::move(what),
                  [answered](result<value> x) { answered->set_value(std::move(x)); });
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
        !how_.accounts_file.loopback && !how_.users->find(name) && text_of(passwords, name).empty())
      return error{
        errc::invalid,
        "users." + name +
          ": a blank password is allowed on a loopback address only\nhint: give it a password_file"};
  if (auto may = ask(commands::configuration_may{wanted}); !may)
    return may.error();
  const auto before = in_force_;
  if (wanted != in_force_) {
    value text{{"configuration", wanted}, {"revision", revision_ + 1}};
    if (auto ok = replace_file(how_.file, to_json(text, 1) + "\n"); !ok)
      return ok.error();
    in_force_ = wanted;
    ++revision_;
  }
  if (auto ok = ask(commands::configuration_enforce{wanted}); !ok)
    return ok.error();
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
  std::optional<std::string> password;
  if (auto given = text_of(passwords, name); !given.empty())
    password = given;
  auto at = [&](const error& why) { return error{why.code, "users." + name + ": " + why.what}; };
  auto there = users.find(name);
  if (!there) {
    api::user fresh;
    fresh.name = name;
    fresh.admin = admin;
    auto made = users.create(fresh, password.value_or(""), false, now());
    return made ? result<void>{} : at(made.error());
  }
  api::user_change change;
  if (!there->active)
    change.active = true;
  if (there->admin != admin && !is_built_in(name))
    change.admin = admin;
  if (password && !users.log_in(name, *password, false, now()))
    change.password = password;
  if (!change.active && !change.admin && !change.password)
    return {};
  auto changed = users.change(there->id, change, now());
  return changed ? result<void>{} : at(changed.error());
}

/// As in Determined, an account is never deleted.
result<void> configuration_store::dismiss(const std::string& name) {
  auto there = how_.users->find(name);
  if (!there || !there->active || is_built_in(name))
    return {};
  api::user_change change;
  change.active = false;
  auto changed = how_.users->change(there->id, change, now());
  return changed ? result<void>{} : changed.error();
}

std::filesystem::path configuration_store::token_file(const std::string& user,
                                                      const std::string& token) const {
  return how_.file.parent_path() / "tokens" / (user + "." + token);
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
    if (auto ok = how_.users->log_out(first_line(**text), now()); !ok)
      return ok;
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
  auto long_lived = how_.accounts_file;
  long_lived.session_life = std::chrono::seconds(config::duration_seconds(text_of(token, "expires")));
  auto reader = api::accounts::open(long_lived, now());
  if (!reader)
    return reader.error();
  auto session = (*reader)->log_in(user, text_of(passwords, user), false, now());
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
  return file;
}

} // namespace troupe::node
