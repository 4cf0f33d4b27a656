#pragma once
// Reads what troupe-task spooled of a task's output, from any position, while the spool grows and rotates.

#include "model/result.hpp"
#include "model/time.hpp"
#include "workers/owned_fd.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::workers {

enum class log_stream { out, err, notice }; ///< notice: a line of troupe-task itself

struct log_line {
  std::uint64_t number = 0; ///< counts from 1 over all ranks of the task; a gap means lines that were lost
  int rank = 0;
  log_stream stream = log_stream::out;
  time_point at;          ///< when troupe-task read it
  std::string text;       ///< bytes as the task wrote them, without the newline; at most 16 KiB
  bool continues = false; ///< a longer line was split: the next line of this rank and stream continues it
  bool unended = false;   ///< the stream ended without a newline
};

/// Where to read on. To be stored as a value; {0, 0} is the beginning of what is left.
struct log_position {
  std::uint64_t file = 0;   ///< number in the file's name
  std::uint64_t offset = 0; ///< bytes
  std::uint64_t line = 0;   ///< number of the last line before the position
  friend bool operator==(const log_position&, const log_position&) = default;
};

struct log_batch {
  std::vector<log_line> lines;
  log_position next;
  std::uint64_t lost =
    0; ///< lines after the position that are lost by rotation or a full disk, before the first line given
  bool at_end = false; ///< there is nothing more for now
};

/// Reads up to `max_lines` lines of about `max_bytes` from `from` on, at least one where there is one. Fails
/// with not_found where the folder is gone; with corrupt, and the file and offset, where bytes are not
/// records. `skip_damage` then gives the position at which the next file begins.
result<log_batch> read_log(const std::filesystem::path& spool, const log_position& from,
                           std::size_t max_lines, std::size_t max_bytes);
result<log_position> skip_damage(const std::filesystem::path& spool, const log_position& at);

/// Tells when any of several spools has grown, without looking at the others.
class log_watch {
public:
  static result<log_watch> open();
  /// Becomes readable when a watched spool has grown; for poll(2).
  int descriptor() const { return inotify_.get(); }
  /// Starts to watch a spool's folder; returns its number in changed(). Fails with not_found where there is
  /// no such folder.
  result<int> add(const std::filesystem::path& spool);
  void remove(int watch);
  /// The watches whose spools have grown since the last call, each once. Never waits.
  std::vector<int> changed();

private:
  owned_fd inotify_;
};

} // namespace troupe::workers
