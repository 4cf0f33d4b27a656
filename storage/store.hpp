#pragma once
// An ordered key-value store with atomic batches, on which the journal stands. There are two: one in memory,
// one on RocksDB. A store knows nothing of facts or rows; the journal above it decides about them.

#include "model/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

/// Key spaces that are kept and tuned apart; each is a column family on disk.
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

/// The store at one moment. Any thread may make one; one thread at a time uses it, and only briefly, because
/// it may hold back the writer.
class view {
public:
  virtual ~view() = default;
  virtual result<std::optional<std::string>> get(family where, std::string_view key) const = 0;
  /// Walks the keys in [from, until), ascending or, backward, from the greatest.
  virtual std::unique_ptr<cursor> scan(family where, std::string_view from, std::string_view until,
                                       direction towards = direction::forward) const = 0;
};

/// Changes that become true together. The last change of a key counts.
class batch {
public:
  virtual ~batch() = default;
  virtual void put(family where, std::string_view key, std::string_view data) = 0;
  virtual void erase(family where, std::string_view key) = 0;
  /// `from` has at most 8 bytes. RocksDB 7.8 looks for the place of a range with a hint that belongs to the
  /// list of keys, and corrupts its list of ranges where a key is long enough to have a hint (disk_store.cpp,
  /// neighbours).
  virtual void erase_range(family where, std::string_view from, std::string_view until) = 0;
  virtual void clear() = 0;
  virtual std::size_t bytes() const = 0;
};

class store {
public:
  virtual ~store() = default;
  virtual std::unique_ptr<view> look() const = 0; ///< thread-safe
  virtual result<std::optional<std::string>> get(family where,
                                                 std::string_view key) const = 0; ///< the newest value
  virtual std::unique_ptr<batch> make_batch() const = 0;

  /// Whether there is room for about `bytes` more. Fails with errc::no_space below the reserve, with errc::io
  /// once a write has failed.
  virtual result<void> admit(std::size_t bytes) = 0;
  /// With `sync` the batch survives a power failure once this returns; without, only the death of the
  /// process. After errc::no_space nothing was written, and the same batch may be tried again. errc::io is
  /// final.
  virtual result<void> write(batch& changes, bool sync) = 0;

  /// Keeps bytes whole under a name that the caller derives from them; durable when the call returns.
  virtual result<void> put_blob(std::string_view name, std::string_view bytes) = 0;
  virtual result<std::string> blob(std::string_view name) const = 0; ///< thread-safe; errc::not_found
};

/// Its contents end with it.
std::shared_ptr<store> make_memory_store();

} // namespace troupe::storage
