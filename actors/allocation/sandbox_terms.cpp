#include "actors/allocation/sandbox_terms.hpp"

#include "model/config/memory_size.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr const char* propagations[] = {"private", "rprivate", "slave", "rslave", "shared", "rshared"};

error bad(const std::string& key, const std::string& why) { return {errc::invalid, key + ": " + why}; }

const value& member(const value& x, const char* key) {
  static const value none;
  if (!x.is_object())
    return none;
  const auto it = x.find(key);
  return it == x.end() ? none : *it;
}

bool has_zero_byte(const std::string& text) { return text.find('\0') != text.npos; }

/// The text at the key; empty where the key is absent.
result<std::string> text_at(const value& x, const char* key, const std::string& name) {
  const auto& got = member(x, key);
  if (got.is_null())
    return std::string();
  if (!got.is_string())
    return bad(name, "expected a text, got " + to_json(got));
  if (has_zero_byte(got.get_ref<const std::string&>()))
    return bad(name, "holds a zero byte");
  return got.get<std::string>();
}

result<bind_mount> mount_of(const value& x, const std::string& name) {
  bind_mount out;
  for (auto [key, to] : {std::pair{"host_path", &out.host_path},
                         {"container_path", &out.container_path},
                         {"propagation", &out.propagation}}) {
    auto text = text_at(x, key, name + "." + key);
    if (!text)
      return text.error();
    if (!text->empty())
      *to = std::move(*text);
  }
  if (!out.host_path.starts_with('/'))
    return bad(name + ".host_path", "expected an absolute path, got '" + out.host_path + "'");
  if (out.container_path.empty())
    return bad(name + ".container_path", "names no path");
  if (std::find(std::begin(propagations), std::end(propagations), out.propagation) == std::end(propagations))
    return bad(name + ".propagation",
               "'" + out.propagation + "' is not private, rprivate, slave, rslave, shared or rshared");
  const auto& read_only = member(x, "read_only");
  if (!read_only.is_null() && !read_only.is_boolean())
    return bad(name + ".read_only", "expected true or false, got " + to_json(read_only));
  out.read_only = read_only == true;
  return out;
}

result<std::int64_t> bytes_of(const value& x, const char* name) {
  std::int64_t bytes = 0;
  if (x.is_number_integer())
    bytes = x.get<std::int64_t>();
  else if (x.is_string()) {
    const auto read = config::parse_memory_size(x.get_ref<const std::string&>());
    if (!read)
      return bad(name, "expected a memory size as 512 MiB or 1.5G, got " + to_json(x));
    bytes = *read;
  } else if (!x.is_null())
    return bad(name, "expected a memory size as 512 MiB or 1.5G, got " + to_json(x));
  if (bytes < 0)
    return bad(name, "is below 0");
  return bytes;
}

} // namespace

result<sandbox_terms> sandbox_terms_of(const value& config) {
  sandbox_terms out;
  auto work_dir = text_at(config, "work_dir", "work_dir");
  if (!work_dir)
    return work_dir.error();
  out.work_dir = std::move(*work_dir);
  if (!out.work_dir.empty() && !out.work_dir.starts_with('/'))
    return bad("work_dir", "expected an absolute path, got '" + out.work_dir + "'");
  const auto& mounts = member(config, "bind_mounts");
  if (!mounts.is_null() && !mounts.is_array())
    return bad("bind_mounts", "expected a list, got " + to_json(mounts));
  for (std::size_t n = 0; n < mounts.size(); ++n) {
    auto one = mount_of(mounts[n], "bind_mounts[" + std::to_string(n) + "]");
    if (!one)
      return one.error();
    out.mounts.push_back(std::move(*one));
  }
  auto bytes = bytes_of(member(member(config, "resources"), "shm_size"), "resources.shm_size");
  if (!bytes)
    return bytes.error();
  out.shm_bytes = *bytes;
  return out;
}

void add_defaults(sandbox_terms& to, sandbox_defaults below) {
  if (to.work_dir.empty())
    to.work_dir = std::move(below.work_dir);
  to.startup_hook = std::move(below.startup_hook);
  to.account = std::move(below.account);
}

value to_value(const sandbox_terms& x) {
  if (x == sandbox_terms{})
    return nullptr;
  value mounts = value::array();
  for (const auto& one : x.mounts)
    mounts.push_back({{"host_path", one.host_path},
                      {"container_path", one.container_path},
                      {"read_only", one.read_only},
                      {"propagation", one.propagation}});
  value out = {{"work_dir", x.work_dir},
               {"mounts", std::move(mounts)},
               {"shm_bytes", x.shm_bytes},
               {"startup_hook", x.startup_hook}};
  if (x.account)
    out["account"] = {{"uid", x.account->uid},
                      {"gid", x.account->gid},
                      {"user", x.account->user},
                      {"group", x.account->group}};
  return out;
}

std::optional<sandbox_terms> sandbox_terms_in(const value& x) {
  sandbox_terms out;
  if (x.is_null())
    return out;
  if (!x.is_object())
    return {};
  bool fine = true;
  const auto text = [&fine](const value& from, const char* key) {
    const auto& got = member(from, key);
    fine = fine && (got.is_null() || got.is_string());
    return got.is_string() ? got.get<std::string>() : std::string();
  };
  const auto number = [&fine](const value& from, const char* key) {
    const auto& got = member(from, key);
    fine = fine && (got.is_null() || got.is_number_integer());
    return got.is_number_integer() ? got.get<std::int64_t>() : 0;
  };
  out.work_dir = text(x, "work_dir");
  out.shm_bytes = number(x, "shm_bytes");
  out.startup_hook = text(x, "startup_hook");
  const auto& mounts = member(x, "mounts");
  fine = fine && (mounts.is_null() || mounts.is_array());
  if (mounts.is_array())
    for (const auto& one : mounts)
      out.mounts.push_back({text(one, "host_path"), text(one, "container_path"),
                            member(one, "read_only") == true, text(one, "propagation")});
  if (const auto& account = member(x, "account"); account.is_object())
    out.account = {number(account, "uid"), number(account, "gid"), text(account, "user"),
                   text(account, "group")};
  return fine ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace troupe
