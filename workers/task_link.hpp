#pragma once
// The agent's side of one troupe-task: the process that starts it, its socket, and a pidfd that shows its
// death.

#include "workers/owned_fd.hpp"
#include "workers/task_spec.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::workers {

/// A line of task_format.hpp from troupe-task.
struct sandbox_state {
  std::string phase; ///< spare starting running frozen ended
  int rank0_pid = 0;
  isolation how = isolation::namespaces;
  std::string remark;
  int helper_pid = 0; ///< pid of troupe-task
};
struct sandbox_started {
  int rank0_pid = 0;
};
struct sandbox_frozen {
  std::string why;
};
struct sandbox_thawed {};
struct sandbox_ended {};
struct sandbox_complaint {
  std::string text;
};
using sandbox_news = std::variant<sandbox_state, sandbox_started, rank_end, sandbox_frozen, sandbox_thawed,
                                  sandbox_ended, sandbox_complaint>;

/// What `line` (without its newline) says. A line of a newer troupe-task that is not known here becomes a
/// complaint.
sandbox_news decode_news(std::string_view line);

/// Starts `program` with `arguments` and returns its pid. Its stdin and stdout are /dev/null, its stderr is
/// appended to `complaints`, and its descriptor 3 is `connection`.
result<int> spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                  const std::filesystem::path& complaints, int connection);

/// One connection. Not thread-safe.
class task_link {
public:
  /// Dials the socket in `folder`. Fails with unreachable where nobody listens, with busy where too many
  /// dial: try again.
  static result<task_link> dial(int folder);

  /// Makes a connection before its troupe-task exists, which is to get `other`. It has no pidfd: troupe-task
  /// says its number in its first line.
  static result<task_link> make(owned_fd& other);

  int socket() const { return socket_.get(); }
  bool connected() const { return static_cast<bool>(socket_); }
  /// A pidfd of troupe-task; can be taken once.
  owned_fd take_helper() { return std::move(helper_); }

  /// Sends one line. Fails with unreachable where the connection is gone.
  result<void> send(const std::string& line);

  /// Reads what has arrived. False at the end of the connection; the lines before it are still given.
  bool receive(std::vector<std::string>& lines);

private:
  owned_fd socket_, helper_;
  std::string partial_;
};

/// Sends one line with at most two descriptors. False where the socket does not take all at once.
bool send_with(int socket, std::string_view line, std::initializer_list<int> descriptors);

/// Makes a file in memory that holds `bytes`.
result<owned_fd> file_in_memory(std::string_view bytes);

bool is_dead(int pidfd);

/// A pidfd of the troupe-task that has said `pid` over `socket`; empty where the number may belong to another
/// process.
owned_fd helper_behind(int socket, int pid);

} // namespace troupe::workers
