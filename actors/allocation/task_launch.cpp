#include "actors/allocation/task_launch.hpp"

#include "model/pack.hpp"

namespace troupe {
namespace {

constexpr const char* modes[] = {"per_agent", "per_slot"};

/// Takes the members out of an object. The first member that has the wrong kind becomes the fault.
class members {
public:
  explicit members(value& from) : from_(from) {}

  template <class T>
  void take(const char* key, T& to) {
    auto it = from_.find(key);
    if (it == from_.end() || it->is_null())
      return;
    if (!read(*it, to) && !fault_)
      fault_ = error{errc::corrupt, std::string("a launch order with another kind of '") + key + "'"};
  }
  std::optional<error> fault() const { return fault_; }

private:
  template <class T>
  static bool read(value& x, T& to) {
    if constexpr (std::is_same_v<T, value>)
      to = std::move(x);
    else if constexpr (std::is_same_v<T, shared_value>)
      to = shared_value(std::move(x));
    else if constexpr (std::is_same_v<T, std::string>)
      return x.is_string() && (to = std::move(x.get_ref<std::string&>()), true);
    else if constexpr (std::is_same_v<T, sandbox_terms>) {
      auto terms = sandbox_terms_in(x);
      if (terms)
        to = std::move(*terms);
      return terms.has_value();
    } else if constexpr (std::is_same_v<T, experiment_id>)
      return x.is_number_integer() && (to = {x.get<std::uint64_t>()}, true);
    else
      return x.is_number_integer() && (to = x.get<T>(), true);
    return true;
  }
  static bool read(value& x, task_service& to) {
    if (!x.is_object())
      return false;
    members from{x};
    from.take("id", to.id);
    from.take("port", to.port);
    from.take("tcp", to.tcp);
    from.take("unauthenticated", to.unauthenticated);
    from.take("socket", to.socket);
    return !from.fault();
  }
  static bool read(value& x, bool& to) { return x.is_boolean() && (to = x.get<bool>(), true); }
  static bool read(value& x, launch_mode& to) {
    if (!x.is_string() || (x != modes[0] && x != modes[1]))
      return false;
    to = x == modes[1] ? launch_mode::per_slot : launch_mode::per_agent;
    return true;
  }
  template <class T>
  static bool read(value& x, std::vector<T>& to) {
    to.clear();
    if (!x.is_array())
      return false;
    for (auto& one : x)
      if (!read(one, to.emplace_back()))
        return false;
    return true;
  }
  template <class T>
  static bool read(value& x, std::optional<T>& to) {
    return read(x, to.emplace());
  }
  static bool read(value& x, std::map<std::string, std::string>& to) {
    to.clear();
    if (!x.is_object())
      return false;
    for (auto& [key, one] : x.items())
      to[key] = one.is_string() ? one.get<std::string>() : one.dump();
    return true;
  }

  value& from_;
  std::optional<error> fault_;
};

/// Calls `use` for every member, with its key on the wire.
template <class Launch, class Use>
void each(Launch& x, Use use) {
  use("experiment", x.experiment);
  use("task_id", x.task_name);
  use("owner", x.owner);
  use("user_token", x.user_token);
  use("cluster_id", x.cluster_id);
  use("master_id", x.master_id);
  use("config", x.config);
  use("hparams", x.hparams);
  use("seed", x.seed);
  use("context", x.context);
  use("entrypoint", x.entrypoint);
  use("launch", x.mode);
  use("env", x.env);
  use("checkpoint_dir", x.checkpoint_dir);
  use("checkpoint_store", x.checkpoint_store);
  use("allocation_name", x.allocation_name);
  use("session_token", x.session_token);
  use("token", x.token);
  use("resume", x.resume);
  use("resume_steps", x.resume_steps);
  use("node_rank", x.node_rank);
  use("nodes", x.nodes);
  use("resources_id", x.resources_id);
  use("slots", x.slots);
  use("first_rank", x.first_rank);
  use("ranks", x.ranks);
  use("ports", x.ports);
  use("gpu_uuids", x.gpu_uuids);
  use("sandbox", x.sandbox);
  use("services", x.services);
}

value shown(const experiment_id& x) { return x.value; }
value shown(const shared_value& x) { return x.get(); }
value shown(const sandbox_terms& x) { return to_value(x); }
value shown(const launch_mode& x) { return modes[static_cast<int>(x)]; }
value shown(const std::vector<task_service>& x) {
  value all = value::array();
  for (const auto& one : x)
    all.push_back({{"id", one.id},
                   {"port", one.port},
                   {"tcp", one.tcp},
                   {"unauthenticated", one.unauthenticated},
                   {"socket", one.socket}});
  return all;
}
template <class T>
value shown(const T& x) {
  return x;
}

error bad(const std::string& field, const std::string& why) {
  return {errc::invalid, "cannot start the task: " + field + " " + why};
}

std::optional<launch_doors> doors_in(std::string_view bytes) {
  msgpack::zone zone;
  std::size_t used = 0;
  try {
    const auto whole = msgpack::unpack(zone, bytes.data(), bytes.size(), used, packing::refer);
    if (whole.type != msgpack::type::MAP)
      return {};
    launch_doors found;
    const auto text = [](const msgpack::object& x) {
      return x.type == msgpack::type::STR ? std::string_view(x.via.str.ptr, x.via.str.size)
                                          : std::string_view();
    };
    for (std::uint32_t n = 0; n < whole.via.map.size; ++n) {
      const auto& pair = whole.via.map.ptr[n];
      if (text(pair.key) == "token")
        found.token = text(pair.val);
      else if (text(pair.key) == "checkpoint_dir")
        found.checkpoint_dir = text(pair.val);
    }
    return found;
  } catch (const std::exception&) { // msgpack throws where the bytes are cut off or nested too deeply
    return {};
  }
}

} // namespace

result<void> check(const task_launch& x) {
  if (x.entrypoint.empty() || x.entrypoint[0].empty())
    return bad("entrypoint", "names no program");
  for (const auto& word : x.entrypoint)
    if (word.find('\0') != word.npos)
      return bad("entrypoint", "holds a zero byte");
  for (const auto& [name, text] : x.env)
    if (name.empty() || name.find('=') != name.npos || (name + text).find('\0') != name.npos)
      return bad("the environment variable '" + name + "'",
                 "has a name that is empty or holds '=', or a zero byte in its value");
  if (!x.checkpoint_dir.empty() && x.checkpoint_dir[0] != '/')
    return bad("the checkpoint folder '" + x.checkpoint_dir + "'", "is not an absolute path");
  return {};
}

std::string encode(const task_launch& x) {
  value out = value::object();
  each(x, [&](const char* key, const auto& one) {
    if constexpr (requires { one.has_value(); }) {
      if (one)
        out[key] = shown(*one);
    } else if (auto as = shown(one); !as.is_null()) {
      out[key] = std::move(as);
    }
  });
  return to_msgpack(out);
}

result<task_launch> decode_launch(std::string_view bytes) {
  auto whole = parse_msgpack(bytes);
  if (!whole)
    return whole.error();
  if (!whole->is_object())
    return error{errc::corrupt, "a launch order that is not a map"};
  task_launch x;
  members from{*whole};
  each(x, [&](const char* key, auto& one) { from.take(key, one); });
  if (auto fault = from.fault())
    return *fault;
  return x;
}

launch_spec::launch_spec(task_launch launch)
    : launch_(std::make_shared<const task_launch>(std::move(launch))) {}

std::string launch_spec::bytes() const { return launch_ ? encode(*launch_) : bytes_; }

result<task_launch> launch_spec::read() const {
  return launch_ ? result<task_launch>(*launch_) : decode_launch(bytes_);
}

std::optional<launch_doors> launch_spec::doors() const {
  return launch_ ? launch_doors{launch_->token, launch_->checkpoint_dir} : doors_in(bytes_);
}

} // namespace troupe
