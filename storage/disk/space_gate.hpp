#pragma once
// Keeps a full disk away from RocksDB, which aborts on it. Three levels of free space, from high to low:
// below `reserve` the journal takes nothing new; below `background` flush and compaction wait; below `floor`
// every write waits. What the higher level refuses leaves room for the lower ones to finish.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

namespace troupe::storage {

struct free_space {
  std::uint64_t free = 0, total = 0; ///< bytes; `free` is what an unprivileged process can use
};

struct space_limits {
  std::uint64_t reserve = 0, background = 0, floor = 0;
  std::uint64_t ballast = 0;      ///< size of the file that is given up to open a full store
  std::uint64_t chunk = 0;        ///< blocks are claimed in pieces of this size ahead of writing
  std::uint64_t write_buffer = 0; ///< bytes of the write buffer of one column family
  std::uint64_t log_total = 0;    ///< bytes of all write-ahead logs together
};

/// Limits for a file system of `total_bytes`: the reserve is the smaller of `wanted_reserve` and 5 %, and the
/// other limits follow from it.
space_limits limits_for(std::uint64_t total_bytes, std::uint64_t wanted_reserve);

/// Who writes; `names` are the small files that say which tables and logs count.
enum class writer { journal, log, tables, names };

/// Whether `who` may write `bytes` more while `free` bytes are left.
bool may_write(const space_limits& limits, writer who, std::uint64_t free, std::uint64_t bytes);

/// Thread-safe.
class space_gate {
public:
  /// `probe` returns the free space of now; `notice` is called when waiting begins and when it ends.
  space_gate(space_limits limits, std::function<free_space()> probe,
             std::function<void(std::string_view)> notice);

  const space_limits& limits() const { return limits_; }
  free_space look() const { return probe_(); }
  bool room_for(writer who, std::uint64_t bytes) const;

  /// Returns true once there is room and `claim` (which takes the blocks) has succeeded; waits until then.
  /// False when the gate was closed meanwhile.
  bool pass(writer who, std::uint64_t bytes, const std::function<bool()>& claim);

  bool parked() const; ///< whether any writer waits now
  void relax(bool on); ///< while relaxed only `claim` decides: for opening a full store
  void close();        ///< sends away every writer that waits, now and later

private:
  const space_limits limits_;
  const std::function<free_space()> probe_;
  const std::function<void(std::string_view)> notice_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool relaxed_ = false, closed_ = false;
};

} // namespace troupe::storage
