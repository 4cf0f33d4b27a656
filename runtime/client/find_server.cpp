#include "runtime/client/find_server.hpp"

#include "system/whole_file.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <pwd.h>
#include <sstream>
#include <unistd.h>

namespace troupe::client {
namespace {

std::optional<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return std::nullopt;
  std::ostringstream out; // an iterator would throw where a process ends before its file is read
  out << in.rdbuf();
  return std::move(out).str();
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  return text;
}

std::string this_boot() { return trimmed(read_text("/proc/sys/kernel/random/boot_id").value_or("")); }

/// Field 22 of /proc/PID/stat; 0 where there is no such process, or only its zombie.
std::uint64_t start_of(pid_t pid) {
  auto text = read_text("/proc/" + std::to_string(pid) + "/stat").value_or("");
  auto at = text.rfind(')'); // the name before it may hold anything
  if (at == std::string::npos)
    return 0;
  if (text.compare(at, 3, ") Z") == 0 || text.compare(at, 3, ") X") == 0)
    return 0;
  for (int field = 2; field < 22 && at != std::string::npos; ++field)
    at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 1, nullptr, 10);
}

std::filesystem::path home(const environment& env) {
  if (auto dir = env("HOME"); !dir.empty())
    return dir;
  const auto* entry = ::getpwuid(::geteuid());
  return entry && entry->pw_dir ? entry->pw_dir : "/";
}

error nothing_runs() { return {errc::unreachable, "no cluster is running; start one: troupe up"}; }

/// The live node of a data directory.
std::optional<server_address> node_of(const std::filesystem::path& data_dir) {
  auto lock = read_lock(data_dir);
  if (!lock || lock->url.empty() || !alive(*lock))
    return std::nullopt;
  return server_address{lock->url, "data directory " + data_dir.string(), data_dir, lock->pid};
}

} // namespace

std::string process_environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

lock_content lock_of_this_process(std::string url) {
  return {::getpid(), start_of(::getpid()), this_boot(), std::move(url)};
}

std::string to_text(const lock_content& lock) {
  return "pid " + std::to_string(lock.pid) + "\nstart " + std::to_string(lock.start) + "\nboot " + lock.boot +
         "\nurl " + lock.url + "\n";
}

result<lock_content> parse_lock(std::string_view text) {
  lock_content lock;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto space = line.find(' ');
    auto key = line.substr(0, space);
    auto rest = space == line.npos ? std::string_view{} : line.substr(space + 1);
    if (key == "pid")
      std::from_chars(rest.data(), rest.data() + rest.size(), lock.pid);
    else if (key == "start")
      std::from_chars(rest.data(), rest.data() + rest.size(), lock.start);
    else if (key == "boot")
      lock.boot = rest;
    else if (key == "url")
      lock.url = rest;
  }
  if (lock.pid <= 0)
    return error{errc::corrupt, "the lock file names no process"};
  return lock;
}

result<void> write_lock(int fd, const lock_content& lock) {
  auto text = to_text(lock);
  if (::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(fd, static_cast<off_t>(text.size())) != 0)
    return error{errno == ENOSPC ? errc::no_space : errc::io,
                 std::string("lock file: ") + std::strerror(errno)};
  return {};
}

result<lock_content> read_lock(const std::filesystem::path& data_dir) {
  auto text = read_text(data_dir / "lock");
  if (!text)
    return error{errc::not_found, (data_dir / "lock").string() + ": " + std::strerror(errno)};
  return parse_lock(*text);
}

bool alive(const lock_content& lock) {
  return lock.pid > 0 && lock.start != 0 && lock.boot == this_boot() && start_of(lock.pid) == lock.start;
}

std::filesystem::path default_data_dir(const environment& env) {
  if (auto dir = env("TROUPE_DATA_DIR"); !dir.empty())
    return dir;
  if (auto base = env("XDG_DATA_HOME"); base.starts_with('/'))
    return std::filesystem::path(base) / "troupe";
  return home(env) / ".local/share/troupe";
}

std::filesystem::path pointer_file(const environment& env) {
  if (auto base = env("XDG_STATE_HOME"); base.starts_with('/'))
    return std::filesystem::path(base) / "troupe" / "last-data-dir";
  return home(env) / ".local/state/troupe/last-data-dir";
}

result<void> remember_data_dir(const std::filesystem::path& data_dir, const environment& env) {
  auto file = pointer_file(env);
  std::error_code wrong;
  std::filesystem::create_directories(file.parent_path(), wrong);
  const auto absolute = std::filesystem::absolute(data_dir, wrong);
  return replace_file(file, absolute.string() + "\n", 0644, durability::written);
}

std::filesystem::path data_dir_to_read(const environment& env) {
  if (auto dir = env("TROUPE_DATA_DIR"); !dir.empty())
    return dir;
  if (auto last = trimmed(read_text(pointer_file(env)).value_or("")); !last.empty())
    return last;
  return default_data_dir(env);
}

std::optional<server_address> node_of_this_host(const std::string& url, const environment& env) {
  auto dialled = url;
  if (const auto at = dialled.find("://localhost:"); at != dialled.npos)
    dialled.replace(at, std::strlen("://localhost:"), "://127.0.0.1:");
  for (const auto& dir :
       {std::filesystem::path(env("TROUPE_DATA_DIR")),
        std::filesystem::path(trimmed(read_text(pointer_file(env)).value_or(""))), default_data_dir(env)})
    if (!dir.empty())
      if (auto node = node_of(dir); node && node->url == dialled)
        return node;
  return std::nullopt;
}

result<server_address> find_server(const std::string& master, const environment& env) {
  auto by_url = [](const std::string& text, const char* by) -> result<server_address> {
    auto url = master_url(text);
    if (!url)
      return error{errc::invalid, std::string(by) + " '" + text + "': " + url.error().what};
    return server_address{*url, by, {}, 0};
  };
  if (!master.empty())
    return by_url(master, "--master");
  if (auto text = env("TROUPE_MASTER"); !text.empty())
    return by_url(text, "TROUPE_MASTER");
  if (auto dir = env("TROUPE_DATA_DIR"); !dir.empty()) {
    auto node = node_of(dir);
    return node ? result<server_address>(*node) : nothing_runs();
  }
  if (auto last = trimmed(read_text(pointer_file(env)).value_or("")); !last.empty())
    if (auto node = node_of(last))
      return *node;
  if (auto node = node_of(default_data_dir(env)))
    return *node;
  return nothing_runs();
}

result<std::string> master_url(std::string_view text) {
  std::string scheme = "http";
  auto rest = text;
  if (auto at = text.find("://"); at != text.npos) {
    scheme = text.substr(0, at);
    rest.remove_prefix(at + 3);
  }
  if (scheme != "http" && scheme != "https")
    return error{errc::invalid, "only http and https are known"};
  while (rest.ends_with('/'))
    rest.remove_suffix(1);
  if (rest.empty() || rest.find_first_of("/?#@ \t\n") != rest.npos)
    return error{errc::invalid, "expected HOST:PORT or http://HOST:PORT"};
  auto host_end = rest.starts_with('[') ? rest.find(']') : 0;
  if (host_end == rest.npos)
    return error{errc::invalid, "expected ']' after the IPv6 address"};
  auto colon = rest.find(':', host_end);
  auto host = rest.substr(0, colon);
  if (host.empty())
    return error{errc::invalid, "the host is missing"};
  if (colon == rest.npos)
    return scheme + "://" + std::string(host) + (scheme == "http" ? ":8080" : ":443");
  auto port = rest.substr(colon + 1);
  unsigned number = 0;
  auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (fault != std::errc{} || end != port.data() + port.size() || number == 0 || number > 65535)
    return error{errc::invalid, "the port must be a number from 1 to 65535"};
  return scheme + "://" + std::string(host) + ":" + std::to_string(number);
}

result<std::string> reachable_url(std::string_view listen, bool tls) {
  std::string text(listen);
  for (const char* any : {"0.0.0.0:", "*:", "[::]:"})
    if (text.starts_with(any))
      text = (text[0] == '[' ? "[::1]:" : "127.0.0.1:") + text.substr(std::strlen(any));
  if (text.starts_with(':'))
    text = "127.0.0.1" + text;
  return master_url((tls ? "https://" : "http://") + text);
}

} // namespace troupe::client
