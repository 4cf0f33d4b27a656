#include "runtime/api/accounts.hpp"

#include "model/hex.hpp"
#include "model/value.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <charconv>
#include <sodium.h>

namespace troupe::api {
namespace {

constexpr const char* blank_hash = "";
constexpr std::size_t mac_bytes = 24;

/// errc::busy where the 64 MiB that Argon2id works in are not to be had.
result<std::string> argon(const std::string& text) {
  if (text.empty())
    return std::string(blank_hash);
  char out[crypto_pwhash_STRBYTES];
  if (crypto_pwhash_str(out, text.data(), text.size(), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                        crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
    return error{errc::busy, "not enough memory to hash a password; try again"};
  return std::string(out);
}

bool matches(const std::string& hash, const std::string& text) {
  if (hash.empty() || text.empty())
    return hash.empty() && text.empty();
  return crypto_pwhash_str_verify(hash.c_str(), text.data(), text.size()) == 0;
}

std::string as_sent(const std::string& password, bool hashed) {
  return hashed ? password : client_hash(password);
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == text.npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

std::uint64_t number(std::string_view text) {
  std::uint64_t n = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  return bad == std::errc{} && end == text.data() + text.size() ? n : 0;
}

std::int64_t micros(time_point at) { return at.time_since_epoch().count(); }
time_point at_micros(std::int64_t us) { return time_point{duration{us}}; }

value to_value(const user& u) {
  value x = {{"id", u.id},
             {"name", u.name},
             {"display_name", u.display_name},
             {"admin", u.admin},
             {"active", u.active},
             {"hash", u.hash},
             {"generation", u.generation},
             {"modified", micros(u.modified)},
             {"last_login", micros(u.last_login)}};
  if (u.runs_as)
    x["runs_as"] = {{"uid", u.runs_as->uid},
                    {"gid", u.runs_as->gid},
                    {"user", u.runs_as->user},
                    {"group", u.runs_as->group}};
  return x;
}

user to_user(const value& x) {
  user u;
  u.id = x.at("id");
  u.name = x.at("name");
  u.display_name = x.at("display_name");
  u.admin = x.at("admin");
  u.active = x.at("active");
  u.hash = x.at("hash");
  u.generation = x.at("generation");
  u.modified = at_micros(x.at("modified"));
  u.last_login = at_micros(x.at("last_login"));
  if (auto as = x.find("runs_as"); as != x.end())
    u.runs_as = unix_account{as->at("uid"), as->at("gid"), as->at("user"), as->at("group")};
  return u;
}

/// 1 to 64 letters, digits and `._-@+`: names stand in URLs and in the environment of tasks.
result<void> check_name(const std::string& name) {
  bool fine = !name.empty() && name.size() <= 64;
  for (char c : name)
    fine = fine && (std::isalnum(static_cast<unsigned char>(c)) ||
                    std::string_view("._-@+").find(c) != std::string_view::npos);
  if (!fine)
    return error{errc::invalid, "a user name has 1 to 64 letters, digits, or one of ._-@+"};
  return {};
}

} // namespace

std::string client_hash(const std::string& password) {
  if (password.empty())
    return {};
  std::string salted = "GubPEmmotfiK9TMD6Zdw" + password; // the stock client's fixed salt
  unsigned char out[crypto_hash_sha512_BYTES];
  crypto_hash_sha512(out, reinterpret_cast<const unsigned char*>(salted.data()), salted.size());
  return hex({reinterpret_cast<const char*>(out), sizeof out});
}

result<std::unique_ptr<accounts>> accounts::open(const options& how, time_point now) {
  if (sodium_init() < 0)
    return error{errc::internal, "libsodium does not start"};
  std::unique_ptr<accounts> a{new accounts(how)};
  bool changed = false;
  auto bytes = how.file.empty() ? result<std::optional<std::string>>(std::nullopt) : read_whole(how.file);
  if (!bytes)
    return bytes.error();
  if (*bytes) {
    if (auto loaded = a->load(**bytes); !loaded)
      return loaded.error();
  } else {
    changed = true;
    a->secret_ = random_hex(32);
    auto initial = argon(as_sent(how.initial_password.value_or(""), false));
    if (!initial)
      return initial.error();
    for (auto [id, name] : {std::pair{1, "admin"}, std::pair{2, "determined"}})
      a->users_[id] = user{.id = static_cast<std::uint64_t>(id),
                           .name = name,
                           .admin = id == 1,
                           .hash = *initial,
                           .modified = now};
  }
  if (!how.loopback)
    for (auto& [id, u] : a->users_)
      if (u.hash.empty() && u.active) {
        auto password = random_hex(8);
        auto hashed = argon(as_sent(password, false));
        if (!hashed)
          return hashed.error();
        u.hash = *hashed;
        ++u.generation;
        u.modified = now;
        a->generated_.emplace_back(u.name, password);
        changed = true;
      }
  if (changed)
    if (auto saved = a->save(); !saved)
      return saved.error();
  return a;
}

result<void> accounts::load(const std::string& bytes) {
  auto x = parse_json(bytes);
  if (!x)
    return error{errc::corrupt, how_.file.string() + ": " + x.error().what};
  try {
    secret_ = x->at("secret");
    for (const auto& one : x->at("users")) {
      auto u = to_user(one);
      users_[u.id] = u;
    }
    for (const auto& [id, until] : x->at("revoked").items())
      revoked_[id] = at_micros(until);
  } catch (const value::exception& fault) {
    return error{errc::corrupt, how_.file.string() + ": " + fault.what()};
  }
  if (secret_.size() < 32)
    return error{errc::corrupt,
                 how_.file.string() +
                   ": the secret is missing; restore the file, or delete it to begin with new users"};
  return {};
}

result<void> accounts::save() const {
  if (how_.file.empty())
    return {};
  value x = {{"secret", secret_}, {"users", value::array()}, {"revoked", value::object()}};
  for (const auto& [id, u] : users_)
    x["users"].push_back(to_value(u));
  for (const auto& [id, until] : revoked_)
    x["revoked"][id] = micros(until);
  return replace_file(how_.file, to_json(x, 1) + "\n");
}

std::vector<std::pair<std::string, std::string>> accounts::take_generated() {
  std::lock_guard lock{mutex_};
  return std::exchange(generated_, {});
}

std::string accounts::sealed(const std::string& claim) const {
  unsigned char mac[mac_bytes];
  crypto_generichash(mac, sizeof mac, reinterpret_cast<const unsigned char*>(claim.data()), claim.size(),
                     reinterpret_cast<const unsigned char*>(secret_.data()), secret_.size());
  return claim + "." + hex({reinterpret_cast<const char*>(mac), sizeof mac});
}

result<accounts::session> accounts::log_in(const std::string& name, const std::string& password, bool hashed,
                                           time_point now) {
  const error wrong{errc::unauthorized, "invalid credentials"};
  auto u = find(name);
  // An unknown name costs the same work as a wrong password, so that names cannot be found by the clock.
  static const std::string nobody = *argon("nobody");
  bool right = matches(u ? u->hash : nobody, as_sent(password, hashed));
  if (!u || !right)
    return wrong;
  if (!u->active)
    return error{errc::denied, "user '" + name + "' is inactive"};
  auto until = now + how_.session_life;
  session s;
  s.token = sealed("u1." + std::to_string(u->id) + "." + std::to_string(u->generation) + "." + random_hex(9) +
                   "." + std::to_string(micros(until)));
  std::lock_guard lock{mutex_};
  auto& kept = users_[u->id];
  kept.last_login = now; // written with the next change: losing it costs nothing
  s.who = kept;
  return s;
}

result<token_holder> accounts::holder(std::string_view token, time_point now) const {
  const error wrong{errc::unauthorized, "invalid or expired token"};
  auto dot = token.rfind('.');
  if (dot == token.npos || token.size() > 200)
    return wrong;
  std::lock_guard lock{mutex_};
  auto expected = sealed(std::string(token.substr(0, dot)));
  if (expected.size() != token.size() || sodium_memcmp(expected.data(), token.data(), token.size()) != 0)
    return wrong;
  auto parts = split(token.substr(0, dot), '.');
  token_holder h;
  if (parts[0] == "a1" && parts.size() == 3) {
    h.what = token_holder::kind::allocation;
    h.allocation = parse_allocation(token.substr(3, dot - 3));
    return h.allocation ? result<token_holder>(h) : wrong;
  }
  if (parts[0] == "e1" && parts.size() == 3) {
    h.what = token_holder::kind::experiment;
    h.experiment = experiment_id{number(parts[1])};
    h.user_id = number(parts[2]);
    auto u = users_.find(h.user_id);
    return u != users_.end() && u->second.active ? result<token_holder>(h) : wrong;
  }
  if (parts[0] != "u1" || parts.size() != 5)
    return wrong;
  h.user_id = number(parts[1]);
  auto u = users_.find(h.user_id);
  if (u == users_.end() || !u->second.active || u->second.generation != number(parts[2]) ||
      micros(now) >= static_cast<std::int64_t>(number(parts[4])) || revoked_.contains(std::string(parts[3])))
    return wrong;
  return h;
}

result<void> accounts::log_out(const std::string& token, time_point now) {
  auto h = holder(token, now);
  if (!h || h->what != token_holder::kind::session)
    return {}; // an experiment's token ends with its experiment
  auto parts = split(token, '.');
  std::lock_guard lock{mutex_};
  std::erase_if(revoked_, [&](const auto& one) { return one.second <= now; });
  revoked_[std::string(parts[3])] = at_micros(static_cast<std::int64_t>(number(parts[4])));
  return save();
}

std::string accounts::experiment_token(experiment_id experiment, std::uint64_t user_id) const {
  return sealed("e1." + to_string(experiment) + "." + std::to_string(user_id));
}

std::string accounts::allocation_token(allocation_id allocation) const {
  return sealed("a1." + to_string(allocation));
}

std::vector<user> accounts::users() const {
  std::lock_guard lock{mutex_};
  std::vector<user> all;
  for (const auto& [id, u] : users_)
    all.push_back(u);
  return all;
}

result<user> accounts::find(std::uint64_t id) const {
  std::lock_guard lock{mutex_};
  auto u = users_.find(id);
  if (u == users_.end())
    return error{errc::not_found, "user " + std::to_string(id) + " not found"};
  return u->second;
}

result<user> accounts::find(const std::string& name) const {
  std::lock_guard lock{mutex_};
  for (const auto& [id, u] : users_)
    if (u.name == name)
      return u;
  return error{errc::not_found, "user '" + name.substr(0, 64) + "' not found"};
}

result<user> accounts::create(const user& wanted, const std::string& password, bool hashed, time_point now) {
  if (auto fine = check_name(wanted.name); !fine)
    return fine.error();
  if (password.empty() && !how_.loopback)
    return error{errc::invalid, "a blank password is allowed on a loopback address only"};
  auto hash = argon(as_sent(password, hashed));
  if (!hash)
    return hash.error();
  std::lock_guard lock{mutex_};
  for (const auto& [id, u] : users_)
    if (u.name == wanted.name)
      return error{errc::invalid, "user already exists"};
  user u = wanted;
  u.id = users_.empty() ? 1 : users_.rbegin()->first + 1;
  u.hash = *hash;
  u.modified = now;
  users_[u.id] = u;
  if (auto saved = save(); !saved) {
    users_.erase(u.id);
    return saved.error();
  }
  ++version_;
  return u;
}

result<user> accounts::change(std::uint64_t id, const user_change& what, time_point now) {
  if (what.name)
    if (auto fine = check_name(*what.name); !fine)
      return fine.error();
  std::optional<std::string> hash;
  if (what.password) {
    if (what.password->empty() && !how_.loopback)
      return error{errc::invalid, "a blank password is allowed on a loopback address only"};
    auto made = argon(as_sent(*what.password, what.password_is_hashed));
    if (!made)
      return made.error();
    hash = *made;
  }
  std::lock_guard lock{mutex_};
  auto found = users_.find(id);
  if (found == users_.end())
    return error{errc::not_found, "user " + std::to_string(id) + " not found"};
  if (what.name)
    for (const auto& [other, u] : users_)
      if (other != id && u.name == *what.name)
        return error{errc::invalid, "user already exists"};
  user before = found->second;
  user& u = found->second;
  u.name = what.name.value_or(u.name);
  u.display_name = what.display_name.value_or(u.display_name);
  u.active = what.active.value_or(u.active);
  u.admin = what.admin.value_or(u.admin);
  if (what.runs_as)
    u.runs_as = what.runs_as;
  if (hash)
    u.hash = *hash;
  if (hash || !u.active)
    ++u.generation;
  u.modified = now;
  if (auto saved = save(); !saved) {
    u = before;
    return saved.error();
  }
  ++version_;
  return u;
}

} // namespace troupe::api
