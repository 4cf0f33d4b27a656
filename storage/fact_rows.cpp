#include "storage/fact_rows.hpp"

#include "storage/keys.hpp"

#include <algorithm>

namespace troupe::storage {
namespace {

constexpr char several = '\xc1';
constexpr std::size_t most_row_bytes = 64 * 1024; ///< limit of a row that holds several facts

void add_length(std::string& data, std::size_t length) {
  for (int shift = 24; shift >= 0; shift -= 8)
    data += static_cast<char>(length >> shift & 0xff);
}

} // namespace

result<std::vector<std::string_view>> facts_in(std::string_view row) {
  std::vector<std::string_view> facts;
  if (row.empty() || row[0] != several) {
    facts.push_back(row);
    return facts;
  }
  for (row.remove_prefix(1); !row.empty();) {
    std::size_t length = 0;
    if (row.size() < 4)
      return error{errc::corrupt, "a row of facts ends within a length"};
    for (int i = 0; i < 4; ++i)
      length = length << 8 | static_cast<unsigned char>(row[i]);
    row.remove_prefix(4);
    if (length > row.size())
      return error{errc::corrupt,
                   "a row of facts ends within a fact of " + std::to_string(length) + " bytes"};
    facts.push_back(row.substr(0, length));
    row.remove_prefix(length);
  }
  if (facts.empty())
    return error{errc::corrupt, "a row of facts is empty"};
  return facts;
}

// ---- writing

void fact_rows::add(const std::string& entity, std::uint64_t number, std::string_view bytes) {
  bytes_ += bytes.size() + 4;
  auto [at, fresh] = open_.try_emplace(entity, rows_.size());
  if (!fresh && rows_[at->second].data.size() + bytes.size() > most_row_bytes) {
    at->second = rows_.size();
    fresh = true;
  }
  if (fresh) {
    auto& row = rows_.emplace_back();
    row.key = keys::fact(entity, number);
    row.data = bytes;
    row.count = 1;
    bytes_ += row.key.size();
    return;
  }
  auto& row = rows_[at->second];
  if (row.count++ == 1) {
    std::string joined(1, several);
    add_length(joined, row.data.size());
    joined += row.data;
    row.data = std::move(joined);
  }
  add_length(row.data, bytes.size());
  row.data += bytes;
}

void fact_rows::write(batch& into) {
  std::sort(rows_.begin(), rows_.end(), [](const row& a, const row& b) { return a.key < b.key; });
  for (const auto& row : rows_)
    into.put(family::facts, row.key, row.data);
}

void fact_rows::clear() {
  rows_.clear();
  open_.clear();
  bytes_ = 0;
}

// ---- reading

fact_walk::fact_walk(const view& of, std::string_view entity, std::uint64_t first) : number_(first) {
  const auto begin = keys::fact(entity, first);
  rows_ = of.scan(family::facts, begin, keys::after_stream(entity));
  if (first != 0 && (!rows_->valid() || rows_->key() != begin)) { // its row may begin before it
    const auto before = of.scan(family::facts, keys::stream(entity), begin, direction::backward);
    if (before->valid())
      rows_ = of.scan(family::facts, before->key(), keys::after_stream(entity));
    else if (auto ok = before->status(); !ok)
      fault_ = ok.error();
  }
  read_row();
  // That row may also end before it.
  while (valid() && number_ < first)
    next();
}

void fact_walk::next() {
  ++number_;
  if (++at_ < facts_.size())
    return;
  rows_->next();
  read_row();
}

void fact_walk::read_row() {
  facts_.clear();
  at_ = 0;
  if (!rows_->valid())
    return;
  number_ = keys::last_number(rows_->key());
  if (auto facts = facts_in(rows_->data()))
    facts_ = std::move(*facts);
  else
    fault_ = facts.error();
}

result<std::optional<std::string>> fact_at(const view& of, std::string_view entity, std::uint64_t number) {
  auto row = of.get(family::facts, keys::fact(entity, number));
  if (!row)
    return row.error();
  if (*row) {
    const auto facts = facts_in(**row);
    if (!facts)
      return facts.error();
    return std::string(facts->front());
  }
  fact_walk at(of, entity, number);
  if (auto ok = at.status(); !ok)
    return ok.error();
  if (!at.valid() || at.number() != number)
    return std::nullopt;
  return std::string(at.data());
}

result<std::uint64_t> stream_length(const view& of, std::string_view entity) {
  auto last = of.scan(family::facts, keys::stream(entity), keys::after_stream(entity), direction::backward);
  if (auto ok = last->status(); !ok)
    return ok.error();
  if (!last->valid())
    return 0;
  auto facts = facts_in(last->data());
  if (!facts)
    return error{facts.error().code, std::string(entity) + ": " + facts.error().what};
  return keys::last_number(last->key()) + facts->size();
}

} // namespace troupe::storage
