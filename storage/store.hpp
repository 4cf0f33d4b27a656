#pragma once
// An ordered key-value store with atomic batches: what the journal stands on. Two members: one in memory, one
// on RocksDB. It knows nothing of facts or rows; what is decided about them is in the journal above it.

#include "model/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

/// Key spaces with a life of their own; each is a column family on disk.
enum class family : std::uint8_t {
  facts,  ///< entity streams, the commit index, report marks, log positions, versions
  rows,   ///< projections only: all of it can be erased and folded again
  series, ///< metric rows
  logs,   ///< task log lines
};
inline constexpr std::size_t family_count = 4;

/// Walks keys in one direction. Its strings live until the next call.
class cursor {
public:
  virtual ~cursor() = default;
  virtual bool valid() const = 0;
  virtual std::string_view key() const = 0;
  virtual std::string_view data() const = 0;
  virtual void next() = 0;
  virtual result<void> status() const = 0; ///< errc::corrupt or errc::io when the walk stopped on a fault
};

enum class direction { forward, backward };

/// One moment of the store. Thread-safe to make; used by one thread, one at a time and for a short while: it
/// may hold back the writer.
class view {
public:
  virtual ~view() = default;
  virtual result<std::optional<std::string>> get(family where, std::string_view key) const = 0;
  /// Keys in [from, until), ascending, or descending from the greatest.
  virtual std::unique_ptr<cursor> scan(family where, std::string_view from, std::string_view until,
                                       direction towards = direction::forward) const = 0;
};

/// Changes that become true together. Later changes of a key win.
class batch {
public:
  virtual ~batch() = default;
  virtual void put(family where, std::string_view key, std::string_view data) = 0;
  virtual void erase(family where, std::string_view key) = 0;
  /// `from` has at most 8 bytes: RocksDB 7.8 looks for the place of a range in its own list with the hint of
  /// the keys' list, and corrupts it, where a key is long enough to have a hint (disk_store.cpp, neighbours).
  virtual void erase_range(family where, std::string_view from, std::string_view until) = 0;
  virtual void clear() = 0;
  virtual std::size_t bytes() const = 0;
};

class store {
public:
  virtual ~store() = default;
  virtual std::unique_ptr<view> look() const = 0; ///< thread-safe
  virtual result<std::optional<std::string>> get(family where,
                                                 std::string_view key) const = 0; ///< the newest
  virtual std::unique_ptr<batch> make_batch() const = 0;

  /// Is there room for about `bytes` more? errc::no_space below the reserve, errc::io once a write has
  /// failed.
  virtual result<void> admit(std::size_t bytes) = 0;
  /// With `sync` the batch survives power loss once this returns; without, only the death of the process.
  /// errc::no_space: nothing was written and the same batch may be tried again. errc::io is final.
  virtual result<void> write(batch& changes, bool sync) = 0;

  /// Bytes kept whole under a name that the caller derives from them; durable when the call returns.
  virtual result<void> put_blob(std::string_view name, std::string_view bytes) = 0;
  virtual result<std::string> blob(std::string_view name) const = 0; ///< thread-safe; errc::not_found
};

/// Forgets everything when it is destroyed.
std::shared_ptr<store> make_memory_store();

} // namespace troupe::storage
