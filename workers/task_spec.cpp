#include "workers/task_spec.hpp"

#include "workers/task_init/task_format.hpp"

#include <algorithm>

namespace troupe::workers {
namespace {

// The kernel's own limit of one argument or variable (MAX_ARG_STRLEN); the final zero counts.
constexpr std::size_t max_string_bytes = 128 << 10;

error wrong(const std::string& where, const std::string& what) {
  return {errc::invalid, where + ": " + what};
}

result<void> check_strings(const std::string& where, const std::vector<std::string>& strings) {
  for (const auto& s : strings) {
    if (s.find('\0') != std::string::npos)
      return wrong(where, "'" + s.substr(0, s.find('\0')) + "' has more text after a zero byte");
    if (s.size() >= max_string_bytes)
      return wrong(where, "'" + s.substr(0, 40) + "...' has " + std::to_string(s.size()) +
                            " bytes; the kernel takes less than " + std::to_string(max_string_bytes) +
                            ": put it into a file");
  }
  return {};
}

result<void> check_rank(const std::string& where, const rank_spec& rank) {
  if (rank.argv.empty() || rank.argv[0].empty())
    return wrong(where, "no command");
  if (rank.cwd.empty() || rank.cwd[0] != '/')
    return wrong(where, "the working directory '" + rank.cwd + "' is not an absolute path");
  for (const auto& entry : rank.env)
    if (entry.find('=') == std::string::npos || entry[0] == '=')
      return wrong(where, "the variable '" + entry.substr(0, 40) + "' is not NAME=VALUE");
  for (const auto* strings : {&rank.argv, &rank.env, &rank.direct_argv, &rank.direct_env})
    if (auto ok = check_strings(where, *strings); !ok)
      return ok;
  return check_strings(where, {rank.cwd});
}

} // namespace

bool valid_task_id(const std::string& id) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !id.empty() && id.size() <= 128 && id[0] != '.' && !id.starts_with("spare-") &&
         std::all_of(id.begin(), id.end(), plain);
}

result<void> check(const task_spec& spec) {
  if (!valid_task_id(spec.id))
    return wrong("task '" + spec.id.substr(0, 140) + "'", "the id is not 1 to 128 of A-Z a-z 0-9 . _ -");
  auto where = "task " + spec.id;
  if (spec.ranks.empty() || spec.ranks.size() > task_format::max_ranks)
    return wrong(where, std::to_string(spec.ranks.size()) + " ranks; 1 to " +
                          std::to_string(task_format::max_ranks) + " can share a sandbox");
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < spec.ranks.size(); ++n) {
    if (auto ok = check_rank(where + ", rank " + std::to_string(n), spec.ranks[n]); !ok)
      return ok;
    for (const auto* strings :
         {&spec.ranks[n].argv, &spec.ranks[n].env, &spec.ranks[n].direct_argv, &spec.ranks[n].direct_env})
      for (const auto& s : *strings)
        bytes += s.size() + 5;
  }
  if (bytes > task_format::max_spec_bytes / 2)
    return wrong(where, "arguments and variables of all ranks take " + std::to_string(bytes) +
                          " bytes, more than " + std::to_string(task_format::max_spec_bytes / 2));
  for (const auto& path : spec.keep)
    if (path.empty() || path[0] != '/')
      return wrong(where, "the path to keep '" + path + "' is not absolute");
  for (auto [what, limit] : {std::pair{"memory_bytes", spec.limits.memory_bytes},
                             {"open_files", spec.limits.open_files},
                             {"cpu_seconds", spec.limits.cpu_seconds}})
    if (limit && (*limit == 0 || *limit > INT64_MAX))
      return wrong(where, std::string("the limit ") + what + " is out of range");
  if (auto ok = check_strings(
        where, {spec.fence.address, spec.fence.ask, spec.fence.dead, spec.fence.program, spec.fence.ca});
      !ok)
    return ok;
  for (const auto& path : spec.keep_read_only)
    if (path.empty() || path[0] != '/')
      return wrong(where, "the path to keep '" + path + "' is not absolute");
  if (auto ok = check_strings(where, spec.keep_read_only); !ok)
    return ok;
  for (const auto& one : spec.mounts) {
    if (one.from.empty() || one.at.empty() || one.at[0] != '/')
      return wrong(where, "the mount of '" + one.from + "' at '" + one.at + "' is not at an absolute path");
    if (auto ok = check_strings(where, {one.from, one.at, one.propagation}); !ok)
      return ok;
  }
  if (spec.shm_bytes && (*spec.shm_bytes == 0 || *spec.shm_bytes > INT64_MAX))
    return wrong(where, "the size of /dev/shm is out of range");
  if (auto ok = check_strings(where, spec.notes); !ok)
    return ok;
  if (auto ok = check_strings(where, {spec.refusal}); !ok)
    return ok;
  return check_strings(where, spec.keep);
}

const char* name(isolation how) { return how == isolation::namespaces ? "namespaces" : "process-group"; }

const char* name(end_reason why) {
  switch (why) {
  case end_reason::exited:
    return "exited";
  case end_reason::killed:
    return "killed";
  case end_reason::lease:
    return "lease";
  case end_reason::failed:
    return "failed";
  }
  return "failed";
}

} // namespace troupe::workers
