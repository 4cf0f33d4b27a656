#include "runtime/shell/history.hpp"

#include "system/whole_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::shell {
namespace {

/// A line as the file holds it: newlines and backslashes are escaped.
std::string escaped(const std::string& line) {
  std::string out;
  for (char c : line)
    out += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string(1, c);
  return out;
}

std::string unescaped(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    bool pair = line[i] == '\\' && i + 1 < line.size();
    out += pair ? (line[i + 1] == 'n' ? '\n' : line[i + 1]) : line[i];
    i += pair;
  }
  return out;
}

bool write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    auto count = ::write(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    at += static_cast<std::size_t>(count);
  }
  return true;
}

} // namespace

std::filesystem::path history_file(const client::environment& env) {
  return client::pointer_file(env).parent_path() / "shell_history";
}

bool is_secret(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* word : {"password", "passwd", "passphrase", "token", "secret", "credential", "apikey",
                           "api_key", "api-key", "private_key", "bearer"})
    if (lower.find(word) != lower.npos)
      return true;
  auto scheme = lower.find("://"); // a URL that holds a password
  auto at = scheme == lower.npos ? lower.npos : lower.find('@', scheme);
  return at != lower.npos && lower.find_first_of("/ ", scheme + 3) > at && lower.find(':', scheme + 3) < at;
}

std::vector<std::string> history::load() {
  std::vector<std::string> lines;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);)
    if (!line.empty())
      lines.push_back(unescaped(line));
  if (lines.size() > most_lines) {
    bool much = lines.size() > 2 * most_lines;
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most_lines));
    if (much) { // writes the newest lines to a new file that replaces the old one
      std::string text;
      for (const auto& line : lines)
        text += escaped(line) + "\n";
      [[maybe_unused]] auto longer_for_now = replace_file(file_, text, 0600, durability::written);
    }
  }
  if (!lines.empty())
    last_ = lines.back();
  return lines;
}

result<bool> history::add(const std::string& line) {
  if (line.find_first_not_of(" \t\n") == line.npos || line == last_ || is_secret(line))
    return false;
  last_ = line;
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  int fd = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  auto fault = [&] {
    return error{errc::io, file_.string() + ": " + std::strerror(errno) + "\nhint: the history is not kept"};
  };
  if (fd < 0)
    return fault();
  ::fchmod(fd, 0600); // also for a file that others could read
  bool ok = write_all(fd, escaped(line) + "\n");
  auto out = ok ? result<bool>(true) : result<bool>(fault());
  ::close(fd);
  return out;
}

} // namespace troupe::shell
