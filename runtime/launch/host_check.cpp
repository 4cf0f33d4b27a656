#include "runtime/launch/host_check.hpp"

#include "runtime/api/server.hpp"
#include "runtime/client/find_server.hpp"
#include "runtime/launch/ssh_words.hpp"
#include "workers/owned_fd.hpp"
#include "workers/slot_devices.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using cli::host_finding;

constexpr std::uint64_t least_room = 1ull << 30; ///< bytes
constexpr double most_skew = 2;                  ///< seconds

std::string word(const value& x, const char* key) {
  return x.is_object() ? x.value(key, std::string()) : std::string();
}

host_finding good(std::string path, std::string what) { return {std::move(path), std::move(what), "", true}; }
host_finding bad(std::string path, std::string what, std::string mend) {
  return {std::move(path), std::move(what), std::move(mend), false};
}

/// The address, without its scheme, of a live node that holds the data directory; empty: none holds it.
std::string held_address(const fs::path& data_dir) {
  auto lock = client::read_lock(data_dir);
  if (!lock || !client::alive(*lock))
    return {};
  const auto scheme = lock->url.find("://");
  return scheme == std::string::npos ? lock->url : lock->url.substr(scheme + 3);
}

host_finding look_at_port(const std::string& path, const std::string& address, const std::string& holder) {
  auto listen = api::parse_listen(address);
  if (!listen)
    return bad(path, listen.error().what, "write it as HOST:PORT");
  if (listen->port == 0)
    return good(path, address + ": any free port");
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const auto port = std::to_string(listen->port);
  if (const int why =
        ::getaddrinfo(listen->host.empty() ? nullptr : listen->host.c_str(), port.c_str(), &hints, &found);
      why != 0)
    return bad(path, address + ": " + ::gai_strerror(why), "name an address of this host");
  workers::owned_fd socket{::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int on = 1;
  const bool free = socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                    ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                    ::listen(socket.get(), 1) == 0;
  const int why = errno;
  ::freeaddrinfo(found);
  if (free)
    return good(path, address + " is free");
  if (why == EADDRINUSE && holder.ends_with(":" + port))
    return good(path, address + " is held by the running cluster of this data directory");
  return bad(path, address + ": " + std::strerror(why),
             why == EADDRINUSE ? "choose another port, or stop that process"
                               : "name an address of this host");
}

/// Folders are made when a cluster starts, so the nearest existing folder counts.
host_finding look_at_folder(const std::string& path, const fs::path& folder) {
  auto there = folder;
  std::error_code fault;
  while (!fs::exists(there, fault) && there.has_relative_path())
    there = there.parent_path();
  if (!fs::is_directory(there, fault))
    return bad(path, there.string() + " is not a folder", "choose another path");
  std::string probe = (there / ".troupe-check-XXXXXX").string();
  workers::owned_fd file{::mkostemp(probe.data(), O_CLOEXEC)};
  if (!file)
    return bad(path, there.string() + " cannot be written: " + std::strerror(errno),
               "change its owner or mode, or choose another path");
  ::unlink(probe.c_str());
  const auto room = fs::space(there, fault);
  if (!fault && room.available < least_room)
    return bad(path, fmt::format("only {} MiB are free in {}", room.available >> 20, there.string()),
               "free at least 1 GiB");
  return good(path, fmt::format("{} can be written, {} GiB free", folder.string(), room.available >> 30));
}

/// A number of slots means artificial slots, whatever devices exist.
std::string unused_gpus(const value& node, std::size_t gpus) {
  const auto slots = node.find("slots");
  return gpus != 0 && slots != node.end() && slots->is_number_integer()
           ? fmt::format(", which slots: {} leaves alone (auto takes them)", slots->dump())
           : "";
}

host_finding look_here(const std::string& path, const value& node) {
  std::string why;
  const auto* visible = ::getenv("CUDA_VISIBLE_DEVICES");
  auto gpus =
    workers::find_nvidia_devices(visible ? std::optional<std::string>(visible) : std::nullopt, &why);
  const auto processors = std::to_string(std::thread::hardware_concurrency()) + " processors";
  if (!gpus)
    return good(path, fmt::format("this host: no GPU ({}), {}", why, processors));
  return good(path, fmt::format("this host: {} GPUs{}, {}", gpus->count(), unused_gpus(node, gpus->count()),
                                processors));
}

/// Seconds since 1970.
double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Prints one line each: "clock SECONDS", "room KIB", "gpus N" and "missing PROGRAM".
constexpr const char* look_script =
  "echo clock $(date +%s.%N); echo room $(df -Pk \"$HOME\" | tail -n 1 | awk '{print $4}'); "
  "echo gpus $(nvidia-smi -L 2>/dev/null | wc -l); "
  "for p in flock tar; do command -v $p >/dev/null || echo missing $p; done";

std::vector<host_finding> look_over_ssh(const std::string& path, const value& node) {
  const auto host = word(node, "host");
  const auto mend = "try it by hand: " + command_line(ssh_words(node, "true"));
  const double asked = now();
  // Standard input is closed and the time is limited: a silent host must not delay the others.
  auto* out = ::popen(
    fmt::format("timeout 20 {} 2>&1 </dev/null", command_line(ssh_words(node, look_script))).c_str(), "re");
  if (!out)
    return {bad(path, host + ": cannot start ssh: " + std::strerror(errno), "install openssh-client")};
  std::string said;
  std::array<char, 4096> piece;
  for (std::size_t n; (n = ::fread(piece.data(), 1, piece.size(), out)) > 0;)
    if (said.size() < 64 * 1024)
      said.append(piece.data(), n);
  const int status = ::pclose(out);
  const double answered = now();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    while (!said.empty() && std::isspace(static_cast<unsigned char>(said.back())))
      said.pop_back();
    const bool late = WIFEXITED(status) && WEXITSTATUS(status) == 124;
    return {
      bad(path, host + ": " + (late ? "no answer within 20 s" : said.substr(said.rfind('\n') + 1)), mend)};
  }
  std::vector<host_finding> all;
  std::istringstream lines(said);
  std::string key, rest, gpus = "0";
  double clock = 0;
  std::uint64_t room = 0;
  while (lines >> key && std::getline(lines >> std::ws, rest)) {
    if (key == "clock")
      clock = std::atof(rest.c_str());
    else if (key == "room")
      room = std::strtoull(rest.c_str(), nullptr, 10) << 10;
    else if (key == "gpus")
      gpus = rest;
    else if (key == "missing")
      all.push_back(bad(path, fmt::format("{}: there is no program '{}'", host, rest), "install it there"));
  }
  // It looked at some time between the question and the answer; more is not known.
  const double skew = clock < asked ? clock - asked : clock > answered ? clock - answered : 0;
  if (std::abs(skew) > most_skew) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", std::abs(skew));
    all.push_back(bad(
      path, fmt::format("{}: its clock is {} s {} this one's", host, text, skew < 0 ? "behind" : "ahead of"),
      "run a time service, such as chrony, on both"));
  }
  if (room < least_room)
    all.push_back(bad(path, fmt::format("{}: only {} MiB are free in the home folder", host, room >> 20),
                      "free at least 1 GiB"));
  if (all.empty())
    all.push_back(
      good(path, fmt::format("{} answers over ssh: {} GPUs{}, clock within {} s", host, gpus,
                             unused_gpus(node, std::strtoul(gpus.c_str(), nullptr, 10)), int(most_skew))));
  return all;
}

} // namespace

std::vector<host_finding> check_hosts(const value& config) {
  std::vector<host_finding> all;
  const auto none = value::object();
  const auto& cluster = config.contains("cluster") ? config["cluster"] : none;
  const auto given = word(cluster, "data_dir");
  const fs::path data_dir = given.empty() ? client::default_data_dir() : fs::path(given);
  const auto holder = held_address(data_dir);
  const auto listen = word(cluster, "listen");
  all.push_back(look_at_port("cluster.listen", listen.empty() ? "127.0.0.1:8080" : listen, holder));
  // The lock file has no line for the agents' port: the running node holds both ports.
  if (const auto agents = word(cluster, "agent_listen"); !agents.empty() && holder.empty())
    all.push_back(look_at_port("cluster.agent_listen", agents, holder));
  all.push_back(look_at_folder("cluster.data_dir", data_dir));
  if (config.contains("storage"))
    for (const auto& [name, one] : config["storage"].items())
      if (const auto path = word(one, "path"); !path.empty())
        all.push_back(look_at_folder(fmt::format("storage.{}.path", name), path));

  const auto nodes = config.value("nodes", value::array());
  std::vector<std::vector<host_finding>> of_nodes(nodes.size());
  constexpr std::size_t at_once = 32;
  for (std::size_t begin = 0; begin < nodes.size(); begin += at_once) {
    std::vector<std::jthread> threads;
    for (std::size_t i = begin; i < std::min(nodes.size(), begin + at_once); ++i)
      threads.emplace_back([&, i] {
        const auto& node = nodes[i];
        const auto path = "nodes." + word(node, "name");
        if (node.contains("ssh"))
          of_nodes[i] = look_over_ssh(path, node);
        else if (!node.value("manual", false))
          of_nodes[i] = {look_here(path, node)};
        else
          of_nodes[i] = {good(path, "joins by hand: not looked at")};
      });
  }
  for (auto& some : of_nodes)
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  if (nodes.empty())
    all.push_back(look_here("nodes", none));
  return all;
}

} // namespace troupe::launch
