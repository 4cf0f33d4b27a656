#include "runtime/api/accounts.hpp"

#include "model/chosen_name.hpp"
#include "model/hex.hpp"
#include "model/value.hpp"
#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <algorithm>
#include <charconv>
#include <sodium.h>

namespace troupe::api {
namespace {

constexpr const char* blank_hash = "";
constexpr std::size_t mac_bytes = 24;

/// Hashes a password. Fails with errc::busy where the 64 MiB that Argon2id needs are not free.
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

constexpr const char* maker = "troupe"; ///< the first facts name this as their author

user to_user(const user_changed& f) {
  return {.id = f.id.value,
          .name = f.name,
          .display_name = f.display_name,
          .admin = f.admin,
          .active = f.active,
          .remote = f.remote,
          .password = f.password,
          .generation = f.generation,
          .modified = f.at,
          .last_login = {},
          .runs_as = f.runs_as.empty() ? std::nullopt : std::optional{f.runs_as.front()},
          .former = f.former};
}

user_changed to_fact(const user& u) {
  user_changed f;
  f.at = u.modified;
  f.by = maker;
  f.id = {u.id};
  f.name = u.name;
  f.display_name = u.display_name;
  f.admin = u.admin;
  f.active = u.active;
  f.remote = u.remote;
  f.password = u.password;
  f.generation = u.generation;
  if (u.runs_as)
    f.runs_as = {*u.runs_as};
  f.former = u.former;
  return f;
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

result<std::unique_ptr<accounts>> accounts::open(const options& how, time_point now, const recorded& known) {
  if (sodium_init() < 0)
    return error{errc::internal, "libsodium does not start"};
  std::unique_ptr<accounts> a{new accounts(how)};
  const auto nothing = result<std::optional<std::string>>(std::nullopt);
  auto bytes = how.file.empty() ? nothing : read_whole(how.file);
  if (!bytes)
    return bytes.error();
  if (*bytes)
    if (auto loaded = a->load(**bytes); !loaded)
      return loaded.error();
  for (const auto& one : known.users)
    a->users_[one.id.value] = to_user(one);
  for (const auto& one : known.tokens)
    a->take(one);
  auto older = known.users.empty() && !how.old_file.empty() ? read_whole(how.old_file) : nothing;
  if (!older)
    return older.error();
  if (*older)
    if (auto loaded = a->load_older(**older, now); !loaded)
      return loaded.error();
  std::erase_if(a->hashes_, [&](const auto& one) { // drops hashes whose change of user never became durable
    return std::none_of(a->users_.begin(), a->users_.end(),
                        [&](const auto& u) { return u.second.password == one.first; });
  });
  const auto hashes = a->hashes_.size();
  const auto fresh = a->secret_.empty();
  if (fresh)
    a->secret_ = random_hex(32);
  if (auto settled = a->settle(fresh || a->users_.empty(), now); !settled)
    return settled.error();
  if (fresh || *older || a->hashes_.size() != hashes)
    if (auto saved = a->save(); !saved)
      return saved.error();
  for (auto& [id, u] : a->users_)
    if (auto last = a->last_logins_.find(id); last != a->last_logins_.end())
      u.last_login = last->second;
  a->know_names();
  return a;
}

/// Gives users the passwords that they need before anybody logs in. `initial`: nobody's password is known.
result<void> accounts::settle(bool initial, time_point now) {
  auto give = [&](user& u, const std::string& password) -> result<void> {
    auto name = add_hash(password);
    if (!name)
      return name.error();
    u.password = *name;
    u.modified = now;
    ++u.generation;
    first_facts_.push_back(to_fact(u));
    return {};
  };
  if (initial)
    for (auto [id, name] : {std::pair{1, "admin"}, std::pair{2, "determined"}}) {
      auto& u = users_[static_cast<std::uint64_t>(id)];
      if (u.id == 0)
        u = user{.id = static_cast<std::uint64_t>(id), .name = name, .admin = id == 1, .generation = 0};
      u.password.clear();
      if (!how_.loopback && !how_.initial_password)
        continue; // the loop below generates it
      if (auto done = give(u, how_.initial_password.value_or("")); !done)
        return done;
    }
  if (how_.loopback)
    return {};
  for (auto& [id, u] : users_)
    if (u.password.empty() && u.active && !u.remote) {
      auto password = random_hex(8);
      if (auto done = give(u, password); !done)
        return done;
      generated_.emplace_back(u.name, password);
    }
  return {};
}

result<void> accounts::load(const std::string& bytes) {
  auto x = parse_json(bytes);
  if (!x)
    return error{errc::corrupt, how_.file.string() + ": " + x.error().what};
  try {
    secret_ = x->at("secret");
    for (const auto& [name, hash] : x->at("hashes").items())
      hashes_[name] = hash;
    for (const auto& [id, at] : x->at("last_logins").items())
      last_logins_[number(id)] = at_micros(at);
  } catch (const value::exception& fault) {
    return error{errc::corrupt, how_.file.string() + ": " + fault.what()};
  }
  if (secret_.size() < 32)
    return error{errc::corrupt, how_.file.string() +
                                  ": the secret is missing; restore the file, or delete it: then admin and "
                                  "determined have initial passwords again"};
  return {};
}

/// Reads the file of an older build, which held users, their hashes and revoked tokens.
result<void> accounts::load_older(const std::string& bytes, time_point now) {
  const auto fault = [&](const std::string& why) {
    return error{errc::corrupt, how_.old_file.string() + ": " + why};
  };
  auto x = parse_json(bytes);
  if (!x)
    return fault(x.error().what);
  hashes_.clear();
  try {
    secret_ = x->at("secret");
    for (const auto& one : x->at("users")) {
      user u;
      u.id = one.at("id");
      u.name = one.at("name");
      u.display_name = one.at("display_name");
      u.admin = one.at("admin");
      u.active = one.at("active");
      u.generation = one.at("generation");
      u.modified = at_micros(one.at("modified"));
      if (auto last = at_micros(one.at("last_login")); last != time_point{})
        last_logins_[u.id] = last;
      if (auto as = one.find("runs_as"); as != one.end())
        u.runs_as = unix_account{as->at("uid"), as->at("gid"), as->at("user"), as->at("group")};
      if (const auto hash = one.at("hash").get<std::string>(); !hash.empty()) {
        u.password = random_hex(8);
        hashes_[u.password] = hash;
      }
      users_[u.id] = u;
      first_facts_.push_back(to_fact(u));
    }
    for (const auto& [id, until] : x->at("revoked").items()) {
      token_changed f;
      f.at = now;
      f.by = maker;
      f.id = id;
      f.until = at_micros(until);
      f.revoked = true;
      revoked_[id] = f.until;
      first_facts_.push_back(f);
    }
  } catch (const value::exception& bad) {
    return fault(bad.what());
  }
  return secret_.size() < 32 ? result<void>(fault("the secret is missing; restore the file"))
                             : result<void>{};
}

result<void> accounts::save() const {
  if (how_.file.empty())
    return {};
  value x = {{"hashes", value::object()}, {"last_logins", value::object()}};
  {
    std::lock_guard lock{mutex_};
    x["secret"] = secret_;
    for (const auto& [name, hash] : hashes_)
      x["hashes"][name] = hash;
    for (const auto& [id, at] : last_logins_)
      x["last_logins"][std::to_string(id)] = micros(at);
  }
  return replace_file(how_.file, to_json(x, 1) + "\n");
}

result<std::string> accounts::add_hash(const std::string& password) {
  if (password.empty())
    return std::string();
  auto hash = argon(client_hash(password));
  if (!hash)
    return hash.error();
  auto name = random_hex(8);
  hashes_[name] = *hash;
  return name;
}

result<std::string> accounts::keep_password(const std::string& password, bool hashed) {
  if (password.empty() && !how_.loopback)
    return error{errc::invalid, "a blank password is allowed on a loopback address only"};
  if (password.empty())
    return std::string();
  auto hash = argon(as_sent(password, hashed));
  if (!hash)
    return hash.error();
  std::lock_guard one_writer{files_};
  auto name = random_hex(8);
  {
    std::lock_guard lock{mutex_};
    hashes_[name] = *hash;
  }
  if (auto saved = save(); !saved) {
    std::lock_guard lock{mutex_};
    hashes_.erase(name);
    return saved.error();
  }
  return name;
}

void accounts::keep_last_logins() {
  std::lock_guard one_writer{files_};
  static_cast<void>(save());
}

void accounts::take(const catalogue_fact& fact) {
  std::lock_guard lock{mutex_};
  if (const auto* changed = std::get_if<user_changed>(&fact)) {
    auto& known = users_[changed->id.value];
    const auto last = known.last_login;
    known = to_user(*changed);
    known.last_login = last;
    know_names();
    ++version_;
  } else if (const auto* token = std::get_if<token_changed>(&fact); token && token->revoked) {
    std::erase_if(revoked_, [&](const auto& one) { return one.second <= token->at; });
    revoked_[token->id] = token->until;
  }
}

std::vector<catalogue_fact> accounts::take_first_facts() {
  std::lock_guard lock{mutex_};
  return std::exchange(first_facts_, {});
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
                                           time_point now, duration life, const std::string& from) {
  const error wrong{errc::unauthorized, "invalid credentials"};
  if (!from.empty())
    if (auto free = tries_.check(name, from, now); !free)
      return free.error();
  auto u = find(name);
  if (u && u->remote)
    u = wrong; // a remote user has no password
  // An unknown name and an account with a blank password cost the same work as a wrong password, so that the
  // time of an answer does not tell which names exist.
  static const std::string nobody = *argon("nobody");
  std::string hash = nobody;
  const bool blank = u && u->password.empty();
  if (u && !blank) {
    std::lock_guard lock{mutex_};
    if (auto kept = hashes_.find(u->password); kept != hashes_.end())
      hash = kept->second;
    else
      u = wrong; // the user's hash was lost
  }
  const auto sent = as_sent(password, hashed);
  const bool verified = matches(hash, sent), right = blank ? sent.empty() : verified;
  if (!u || !right) {
    if (!from.empty())
      tries_.failed(name, from, now);
    return wrong;
  }
  return begin_session(u->id, now, life);
}

result<accounts::session> accounts::begin_session(std::uint64_t user_id, time_point now, duration life) {
  auto u = find(user_id);
  if (!u)
    return u.error();
  if (!u->active)
    return error{errc::denied, "user '" + u->name + "' is inactive"};
  session s;
  s.claim = {u->id, random_hex(9), now + (life == duration{0} ? how_.session_life : life)};
  s.token = sealed("u1." + std::to_string(u->id) + "." + std::to_string(u->generation) + "." + s.claim.id +
                   "." + std::to_string(micros(s.claim.until)));
  std::lock_guard lock{mutex_};
  auto& kept = users_[u->id];
  kept.last_login = last_logins_[u->id] = now;
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
  if ((parts[0] == "t1" || parts[0] == "s1") && parts.size() == 3) {
    h.what = parts[0] == "t1" ? token_holder::kind::task : token_holder::kind::service;
    h.task = parse_task(parts[1]);
    h.user_id = number(parts[2]);
    auto u = users_.find(h.user_id);
    return h.task && u != users_.end() && u->second.active ? result<token_holder>(h) : wrong;
  }
  if (parts[0] == "p1" && parts.size() == 4) {
    h.user_id = number(parts[1]);
    auto u = users_.find(h.user_id);
    return u != users_.end() && u->second.active &&
               micros(now) < static_cast<std::int64_t>(number(parts[3])) &&
               !revoked_.contains(std::string(parts[2]))
             ? result<token_holder>(h)
             : wrong;
  }
  if (parts[0] == "v1" && parts.size() == 6) {
    h.what = token_holder::kind::view;
    h.task = parse_task(parts[1]);
    h.user_id = number(parts[2]);
    auto u = users_.find(h.user_id);
    return h.task && u != users_.end() && u->second.active && u->second.generation == number(parts[3]) &&
               !revoked_.contains(std::string(parts[4])) &&
               micros(now) < static_cast<std::int64_t>(number(parts[5]))
             ? result<token_holder>(h)
             : wrong;
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

std::optional<session_claim> accounts::session_of(std::string_view token, time_point now) const {
  auto h = holder(token, now);
  if (!h || h->what != token_holder::kind::session)
    return std::nullopt; // this token does not belong to a session
  auto parts = split(token, '.');
  if (parts[0] != "u1") // a logout does not end an access token
    return std::nullopt;
  return session_claim{h->user_id, std::string(parts[3]),
                       at_micros(static_cast<std::int64_t>(number(parts[4])))};
}

result<std::string> accounts::view_token(std::string_view shown, task_id task, time_point now) const {
  auto h = holder(shown, now);
  if (!h)
    return h.error();
  const bool of_one = h->what == token_holder::kind::view || h->what == token_holder::kind::service;
  if (h->what == token_holder::kind::allocation || (of_one && h->task != task))
    return error{errc::unauthorized, "this token opens no page"};
  if (h->what == token_holder::kind::view)
    return std::string(shown);
  const auto parts = split(shown, '.');
  std::string login = "-"; // an experiment's token ends with its experiment alone
  auto until = micros(now + how_.session_life);
  if (parts[0] == "u1" || parts[0] == "p1") {
    login = parts[parts[0] == "u1" ? 3 : 2];
    until = std::min(until, static_cast<std::int64_t>(number(parts[parts[0] == "u1" ? 4 : 3])));
  }
  std::lock_guard lock{mutex_};
  const auto u = users_.find(h->user_id);
  const auto generation = u == users_.end() ? 0 : u->second.generation;
  return sealed("v1." + to_string(task) + "." + std::to_string(h->user_id) + "." +
                std::to_string(generation) + "." + login + "." + std::to_string(until));
}

std::string accounts::access_token(std::uint64_t user_id, const std::string& id, time_point until) const {
  return sealed("p1." + std::to_string(user_id) + "." + id + "." + std::to_string(micros(until)));
}
std::string accounts::new_token_id() { return random_hex(9); }

std::string accounts::experiment_token(experiment_id experiment, std::uint64_t user_id) const {
  return sealed("e1." + to_string(experiment) + "." + std::to_string(user_id));
}

std::string accounts::allocation_token(allocation_id allocation) const {
  return sealed("a1." + to_string(allocation));
}

std::string accounts::task_token(task_id task, std::uint64_t user_id) const {
  return sealed("t1." + to_string(task) + "." + std::to_string(user_id));
}

std::string accounts::service_token(task_id task, std::uint64_t user_id) const {
  return sealed("s1." + to_string(task) + "." + std::to_string(user_id));
}

namespace {

const unsigned char* raw(const std::string& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Derives from the secret the key that seals texts, which differs from the key that seals tokens.
std::string text_key(const std::string& secret) {
  const std::string purpose = "troupe: texts in facts";
  std::string key(crypto_secretbox_KEYBYTES, 0);
  crypto_generichash(reinterpret_cast<unsigned char*>(key.data()), key.size(), raw(purpose), purpose.size(),
                     raw(secret), secret.size());
  return key;
}

} // namespace

std::string accounts::conceal(const std::string& text) const {
  const auto nonce = random_bytes(crypto_secretbox_NONCEBYTES);
  std::string box(text.size() + crypto_secretbox_MACBYTES, 0);
  crypto_secretbox_easy(reinterpret_cast<unsigned char*>(box.data()), raw(text), text.size(), raw(nonce),
                        raw(text_key(secret_)));
  return hex(nonce + box);
}

result<std::string> accounts::reveal(const std::string& concealed) const {
  const error wrong{errc::corrupt, "a sealed text cannot be opened: the secret of this directory is another"};
  constexpr std::size_t around = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
  std::string bytes(concealed.size() / 2, 0);
  std::size_t count = 0;
  if (sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), concealed.data(),
                     concealed.size(), nullptr, &count, nullptr) != 0 ||
      count < around)
    return wrong;
  const auto nonce = bytes.substr(0, crypto_secretbox_NONCEBYTES),
             box = bytes.substr(crypto_secretbox_NONCEBYTES);
  std::string text(box.size() - crypto_secretbox_MACBYTES, 0);
  if (crypto_secretbox_open_easy(reinterpret_cast<unsigned char*>(text.data()), raw(box), box.size(),
                                 raw(nonce), raw(text_key(secret_))) != 0)
    return wrong;
  return text;
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
  if (const auto* u = named(name, false))
    return *u;
  return error{errc::not_found, "user '" + name.substr(0, 64) + "' not found"};
}

result<user> accounts::owner(const std::string& name) const {
  std::lock_guard lock{mutex_};
  if (const auto* u = named(name, true))
    return *u;
  return error{errc::not_found, "user '" + name.substr(0, 64) + "' not found"};
}

std::string accounts::now_named(const std::string& owner) const {
  std::lock_guard lock{mutex_};
  const auto* u = named(owner, true);
  return u ? u->name : owner;
}

void accounts::know_names() {
  names_.clear();
  folded_.clear();
  former_.clear();
  for (const auto& [id, u] : users_) {
    names_[u.name] = id;
    folded_[case_folded(u.name)] = id;
    for (const auto& had : u.former)
      former_[had] = id;
  }
}

const user* accounts::named(const std::string& name, bool formerly) const {
  if (const auto at = names_.find(name); at != names_.end())
    return &users_.at(at->second);
  const auto folded = case_folded(name);
  for (const auto* in : {&folded_, formerly ? &former_ : nullptr})
    if (in)
      if (const auto at = in->find(folded); at != in->end())
        return &users_.at(at->second);
  return nullptr;
}

} // namespace troupe::api
