#pragma once
// Facts of one stream that are committed together lie in one row, under the number of the first. The row of a
// single fact is its bytes. A row of several facts begins with 0xc1, which no msgpack value does, and holds
// for each fact its length (4 bytes, big-endian) and its bytes.

#include "storage/store.hpp"

#include <unordered_map>
#include <vector>

namespace troupe::storage {

/// The facts of a row, as pointers into it. Fails with errc::corrupt.
result<std::vector<std::string_view>> facts_in(std::string_view row);

/// Collects the rows of one commit.
class fact_rows {
public:
  void add(const std::string& entity, std::uint64_t number, std::string_view bytes);
  std::size_t bytes() const { return bytes_; }
  void write(batch& into); ///< writes the rows in the order of streams
  void clear();

private:
  struct row {
    std::string key, data;
    std::uint64_t count = 0;
  };
  std::vector<row> rows_;
  std::unordered_map<std::string, std::size_t> open_; ///< newest row of each entity
  std::size_t bytes_ = 0;
};

/// Walks the facts of a stream from number `first` on.
class fact_walk {
public:
  fact_walk(const view& of, std::string_view entity, std::uint64_t first);

  bool valid() const { return at_ < facts_.size(); }
  std::uint64_t number() const { return number_; }
  std::string_view data() const { return facts_[at_]; } ///< valid until `next`
  void next();
  result<void> status() const { return fault_ ? result<void>(*fault_) : rows_->status(); }

private:
  void read_row();

  std::unique_ptr<cursor> rows_;
  std::vector<std::string_view> facts_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0;
  std::optional<error> fault_;
};

/// One fact, or none where the stream does not have it. Faster than a walk where the fact begins its row.
result<std::optional<std::string>> fact_at(const view& of, std::string_view entity, std::uint64_t number);

/// The number after that of a stream's last fact; 0 where it has none.
result<std::uint64_t> stream_length(const view& of, std::string_view entity);

} // namespace troupe::storage
