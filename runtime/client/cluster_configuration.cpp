#include "runtime/client/cluster_configuration.hpp"

#include "runtime/client/submission.hpp"
#include "workers/owned_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::client {
namespace {

constexpr off_t most_bytes = 4 << 20; ///< limit of the YAML reader

result<std::string> read_file(const std::string& path) {
  workers::owned_fd in{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!in)
    return error{errc::io, std::strerror(errno)};
  struct stat is {};
  if (::fstat(in.get(), &is) != 0)
    return error{errc::io, std::strerror(errno)};
  if (S_ISDIR(is.st_mode))
    return error{errc::invalid, "is a folder"};
  if (is.st_size > most_bytes)
    return error{errc::invalid, "has " + std::to_string(is.st_size >> 20) + " MB; at most 4 MB are read"};
  std::string text;
  char block[65536];
  for (ssize_t n; (n = ::read(in.get(), block, sizeof block)) != 0;) {
    if (n < 0)
      return error{errc::io, std::strerror(errno)};
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > static_cast<std::size_t>(most_bytes))
      return error{errc::invalid, "has more than 4 MB"};
  }
  return text;
}

} // namespace

config::file_world host_files(const environment&) {
  std::error_code ignored;
  return {read_file,
          [](const std::string& path) {
            std::error_code none;
            return std::filesystem::exists(path, none);
          },
          std::filesystem::current_path(ignored).string(),
          [](const std::string& name) -> std::optional<std::string> {
            const char* text = std::getenv(name.c_str());
            return text ? std::optional<std::string>(text) : std::nullopt;
          }};
}

result<live_configuration> live(server& cluster) {
  auto got = cluster.get("/troupe/v1/configuration");
  if (!got)
    return got.error();
  live_configuration out;
  out.configuration = got->body.value("configuration", value());
  out.by_hand = got->body.value("byHand", value::object());
  out.revision = got->body.value("revision", std::uint64_t{0});
  return out;
}

std::vector<std::string> prunable(const value& by_hand, const value& wanted) {
  std::vector<std::string> out;
  for (const auto& name : by_hand.value("users", value::array())) {
    const auto& users = wanted.value("users", value::array());
    if (std::none_of(users.begin(), users.end(),
                     [&](const value& u) { return u.value("name", value()) == name; }))
      out.push_back(name.get<std::string>());
  }
  return out;
}

result<std::vector<std::pair<std::string, new_experiment>>> experiments_of(const value& configuration) {
  std::vector<std::pair<std::string, new_experiment>> out;
  for (const auto& one : configuration.value("experiments", value::array())) {
    const auto name = one.value("name", std::string());
    const auto context = one.value("context", value());
    submission s;
    s.config = one.value("file", std::string());
    if (context.is_string())
      s.context = context.get<std::string>();
    s.key = "configuration/" + name; // makes a repeat give the first id
    s.name = name;
    s.cluster = configuration;
    std::istringstream none;
    auto ready = prepare(s, none);
    if (!ready)
      return ready.error();
    out.emplace_back(name, std::move(ready->what));
  }
  return out;
}

result<void> put_in_force(server& cluster, const wanted_configuration& what, std::uint64_t seen,
                          const std::function<void(const std::string&)>& say) {
  auto experiments = experiments_of(what.configuration); // a bad file of theirs changes nothing
  if (!experiments)
    return experiments.error();
  auto done = cluster.post("/troupe/v1/configuration", {{"configuration", what.configuration},
                                                        {"secrets", what.secrets},
                                                        {"prune", what.prune},
                                                        {"revision", seen}});
  if (!done)
    return done.error();
  for (const auto& warning : done->value("warnings", value::array()))
    if (warning.is_string())
      say("warning: " + warning.get<std::string>());
  for (const auto& token : done->value("tokens", value::array()))
    say("token " + token.value("user", std::string()) + "." + token.value("name", std::string()) + " is in " +
        token.value("file", std::string()) + " on the master's host");
  auto known = cluster.list("/api/v1/experiments", "experiments");
  for (const auto& [name, ready] : *experiments) {
    auto id = cluster.create(ready);
    if (!id)
      return error{id.error().code, "experiments." + name + ": " + id.error().what};
    const bool fresh = !known || std::none_of(known->begin(), known->end(), [&](const value& row) {
      auto number = row.value("id", value());
      return number == id->value || number == std::to_string(id->value);
    });
    if (fresh)
      say("experiment " + std::to_string(id->value) + " " + name);
  }
  return {};
}

} // namespace troupe::client
