#pragma once
// The history of typed lines: `shell_history` in the user's state folder, mode 600, without secrets.

#include "runtime/client/find_server.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::shell {

/// $XDG_STATE_HOME/troupe/shell_history, or below ~/.local/state without the variable.
std::filesystem::path history_file(const client::environment& env);

/// Whether a line may hold a secret, so that it is not kept: it names a password, token, secret, passphrase
/// or key.
bool is_secret(std::string_view line);

class history {
public:
  static constexpr std::size_t most_lines = 1000;

  explicit history(std::filesystem::path file) : file_(std::move(file)) {}
  /// The newest lines, oldest first; empty where the file cannot be read.
  std::vector<std::string> load();
  /// Appends a line, unless it is blank, may be a secret, or equals the last line. Fails with errc::io.
  result<bool> add(const std::string& line);

private:
  std::filesystem::path file_;
  std::string last_;
};

} // namespace troupe::shell
