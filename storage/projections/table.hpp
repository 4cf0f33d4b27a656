#pragma once
// One type of row as the folds see it. A row is read from the store when first asked for, changed in memory,
// and written with the batch that holds the facts. So facts of one commit see each other's changes, and a row
// that changes often is decoded once.

#include "model/pack.hpp"
#include "storage/keys.hpp"
#include "storage/store.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <vector>

namespace troupe::storage::projections {

/// Reads a stored row by its key; none where it is absent.
using row_source = std::function<result<std::optional<std::string>>(std::string_view key)>;

template <class Tag>
std::string row_key(char tag, strong_id<Tag> id) {
  return keys::tagged(tag, id.value);
}
inline std::string row_key(char tag, task_id id) { return tag + keys::task(id); }
inline std::string row_key(char tag, const std::string& name) { return keys::tagged(tag, name); }

/// A key that sorts as the numbers of `version` do.
std::string version_key(model_id model, std::uint64_t version);

template <class Id, class Row>
class table {
public:
  table(char tag, const row_source& source) : tag_(tag), source_(&source) {}

  /// The row, or null where there is none. The pointer is valid until `forget`.
  const Row* find(const Id& id) {
    auto* entry = load(id);
    return entry->exists ? &entry->row : nullptr;
  }
  /// The row to change, or null where there is none.
  Row* change(const Id& id) {
    auto* entry = load(id);
    return entry->exists ? &touch(id, *entry) : nullptr;
  }
  /// Returns the row of this id; makes it where there is none.
  Row& make(const Id& id) {
    auto* entry = load(id);
    entry->exists = true;
    return touch(id, *entry);
  }

  /// Replaces the row without reading it.
  void replace(const Id& id, Row by) {
    const auto at = rows_.find(id);
    auto* entry = at == rows_.end() ? look(id) : &at->second;
    if (entry->exists)
      touch(id, *entry) = std::move(by);
  }

  /// Writes every changed row, in the order of ids.
  void write(batch& into) {
    std::sort(changed_.begin(), changed_.end());
    for (const auto& id : changed_) {
      buffer_.clear();
      msgpack::pack(buffer_, rows_.at(id).row);
      into.put(family::rows, row_key(tag_, id), {buffer_.data(), buffer_.size()});
    }
  }
  /// Calls `each` with every changed row and its id.
  template <class Each>
  void each_changed(const Each& each) const {
    for (const auto& id : changed_)
      each(id, rows_.at(id).row);
  }
  /// To be called when the written rows are durable.
  void settle() {
    for (const auto& id : changed_)
      rows_.at(id).dirty = false;
    changed_.clear();
  }
  /// Drops the cached rows where they are more than `limit` and none is changed.
  void forget(std::size_t limit) {
    if (changed_.empty() && rows_.size() > limit)
      rows_.clear();
  }
  const std::optional<error>& fault() const { return fault_; } ///< the first row that could not be read

private:
  struct entry {
    Row row;
    bool exists = false, dirty = false;
  };

  /// Asks only whether the row exists; its content stays empty.
  entry* look(const Id& id) {
    auto& entry = rows_[id];
    const auto bytes = (*source_)(row_key(tag_, id));
    if (!bytes)
      fault_ = bytes.error();
    else
      entry.exists = bytes->has_value();
    return &entry;
  }
  entry* load(const Id& id) {
    auto [at, fresh] = rows_.try_emplace(id);
    if (!fresh)
      return &at->second;
    auto bytes = (*source_)(row_key(tag_, id));
    if (!bytes) {
      fault_ = bytes.error();
    } else if (*bytes) {
      if (auto row = unpack<Row>(**bytes))
        at->second.row = std::move(*row), at->second.exists = true;
      else
        fault_ = error{errc::corrupt, std::string("row ") + tag_ + ": " + row.error().what};
    }
    return &at->second;
  }
  Row& touch(const Id& id, entry& e) {
    if (!std::exchange(e.dirty, true))
      changed_.push_back(id);
    return e.row;
  }

  char tag_;
  const row_source* source_;
  std::unordered_map<Id, entry> rows_; // a node keeps its address
  std::vector<Id> changed_;
  std::optional<error> fault_;
  msgpack::sbuffer buffer_;
};

} // namespace troupe::storage::projections
