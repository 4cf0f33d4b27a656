#include "workers/task_init/spec.hpp"

#include "workers/task_init/task_format.hpp"

#include <sys/stat.h>

namespace troupe::task_init {
namespace {

struct number_key {
  const char* key;
  std::int64_t task_spec::*field;
  std::int64_t least;
};

struct text_key {
  const char* key;
  const char* task_spec::*field;
};

struct rank_key {
  const char* key;
  list<char*> rank_spec::*field;
};

constexpr number_key number_keys[] = {
  {"lease-ms", &task_spec::lease_ms, 0},
  {"frozen-kill-ms", &task_spec::frozen_kill_ms, 1},
  {"linger-ms", &task_spec::linger_ms, 0},
  {"spool-file-bytes", &task_spec::spool_file_bytes, 64 << 10},
  {"spool-files", &task_spec::spool_files, 2},
  {"memory-bytes", &task_spec::memory_bytes, 1},
  {"open-files", &task_spec::open_files, 1},
  {"cpu-seconds", &task_spec::cpu_seconds, 1},
  {"shm-bytes", &task_spec::shm_bytes, 1},
  {"uid", &task_spec::uid, 0},
  {"gid", &task_spec::gid, 0},
};

constexpr text_key text_keys[] = {
  {"fence", &task_spec::fence},           {"fence-ask", &task_spec::fence_ask},
  {"fence-dead", &task_spec::fence_dead}, {"fence-program", &task_spec::fence_program},
  {"fence-ca", &task_spec::fence_ca},     {"refusal", &task_spec::refusal}};

struct list_key {
  const char* key;
  list<const char*> task_spec::*field;
};
constexpr list_key list_keys[] = {{"keep", &task_spec::keep},
                                  {"keep-read-only", &task_spec::keep_read_only},
                                  {"keep-if-there", &task_spec::keep_if_there},
                                  {"note", &task_spec::notes}};

struct mount_key {
  const char* key;
  const char* mount_spec::*field;
};
constexpr mount_key mount_keys[] = {{"mount-at", &mount_spec::at},
                                    {"mount-read-only", &mount_spec::read_only},
                                    {"mount-propagation", &mount_spec::propagation}};

fault take_pair(task_spec& spec, const char* key, char* value) {
  for (const auto& known : number_keys)
    if (strcmp(key, known.key) == 0) {
      char* end = nullptr;
      errno = 0;
      auto number = strtoll(value, &end, 10);
      if (errno || end == value || *end || number < known.least)
        return complain("spec: %s: '%s' is not a number of at least %lld", key, value,
                        static_cast<long long>(known.least));
      spec.*known.field = number;
      return {};
    }
  if (strcmp(key, "id") == 0) {
    spec.id = value;
    return {};
  }
  for (const auto& known : text_keys)
    if (strcmp(key, known.key) == 0) {
      spec.*known.field = value;
      return {};
    }
  for (const auto& known : list_keys)
    if (strcmp(key, known.key) == 0) {
      (spec.*known.field).push(value);
      return {};
    }
  if (strcmp(key, "mount") == 0) {
    spec.mounts.push(mount_spec{}).from = value;
    return {};
  }
  for (const auto& known : mount_keys)
    if (strcmp(key, known.key) == 0) {
      if (spec.mounts.size == 0)
        return complain("spec: '%s' stands before the first mount", key);
      spec.mounts[spec.mounts.size - 1].*known.field = value;
      return {};
    }
  if (strcmp(key, "rank") == 0) {
    if (spec.ranks.size == task_format::max_ranks)
      return complain("spec: more than %u ranks", task_format::max_ranks);
    spec.ranks.push(rank_spec{}).cwd = value;
    return {};
  }
  constexpr rank_key rank_keys[] = {{"arg", &rank_spec::argv},
                                    {"env", &rank_spec::env},
                                    {"direct-arg", &rank_spec::direct_argv},
                                    {"direct-env", &rank_spec::direct_env}};
  for (const auto& known : rank_keys)
    if (strcmp(key, known.key) == 0) {
      if (spec.ranks.size == 0)
        return complain("spec: '%s' stands before the first rank", key);
      (spec.ranks[spec.ranks.size - 1].*known.field).push(value);
      return {};
    }
  return complain("spec: unknown key '%s'", key);
}

fault read_whole(int fd, char*& bytes, std::size_t& size) {
  struct stat about {};
  fstat(fd, &about);
  if (static_cast<std::uint64_t>(about.st_size) > task_format::max_spec_bytes)
    return complain("spec: %lld bytes, more than %llu", static_cast<long long>(about.st_size),
                    static_cast<unsigned long long>(task_format::max_spec_bytes));
  bytes = static_cast<char*>(malloc(static_cast<std::size_t>(about.st_size) + 1));
  if (!bytes)
    abort();
  while (size < static_cast<std::size_t>(about.st_size)) {
    auto n =
      pread(fd, bytes + size, static_cast<std::size_t>(about.st_size) - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    size += static_cast<std::size_t>(n);
  }
  return size == 0 ? complain("spec: empty") : fault{};
}

} // namespace

fault read_spec(int fd, task_spec& spec) {
  char* bytes = nullptr;
  std::size_t size = 0;
  if (auto f = read_whole(fd, bytes, size))
    return f;
  if (bytes[size - 1] != 0)
    return complain("spec: cut off after %zu bytes", size);
  bool first = true;
  for (std::size_t at = 0; at < size;) {
    const char* key = bytes + at;
    at += strlen(key) + 1;
    if (at >= size)
      return complain("spec: key '%.40s' has no value", key);
    char* value = bytes + at;
    at += strlen(value) + 1;
    if (first && (strcmp(key, task_format::spec_key) != 0 || strcmp(value, "1") != 0))
      return complain("spec: not a task specification of version 1");
    if (!first)
      if (auto f = take_pair(spec, key, value))
        return f;
    first = false;
  }
  if (!*spec.id)
    return complain("spec: no id");
  if (spec.ranks.size == 0)
    return complain("spec: no rank");
  for (auto& rank : spec.ranks) {
    if (rank.argv.size == 0)
      return complain("spec: a rank without a command");
    rank.argv.push(nullptr);
  }
  return {};
}

} // namespace troupe::task_init
