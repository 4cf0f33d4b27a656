#pragma once
// Experiments as the list of them prints each: what never changes is read and shaped once, so that a list
// right after a new fact costs the one that the fact was about. Thread-safe.

#include "runtime/api/place_shapes.hpp"
#include "runtime/api/text_order.hpp"
#include "storage/journal.hpp"

#include <array>

namespace troupe::api {

class experiment_texts {
public:
  /// What a list is filtered and sorted by.
  struct face {
    std::string name, owner, description, pool;
    value labels; ///< an array
    time_point created;
    experiment_id parent; ///< 0: none
  };
  struct entry {
    experiment_standing now;
    std::shared_ptr<const face> lasting;
  };
  /// Every experiment that this reader shows, in the order of their ids.
  result<std::vector<entry>> all(const storage::reader& storage);
  /// The texts that a list is sorted by.
  enum class text { name, owner, description, pool };
  static const std::string& text_of(const entry& of, text which);

  struct listing {
    std::shared_ptr<const std::vector<entry>> rows;
    text_order::ranks ranks; ///< by the text that was asked for; null: compare the texts
  };
  /// The same of a reader that shows everything: kept, where it is a `storage::standing_watch`, so that a
  /// list costs what has changed since the last one.
  result<listing> kept(const storage::reader& everything, std::optional<text> sorted_by);
  /// Appends the JSON of `experiment_shape` for that standing to `out`.
  result<void> write(const entry& of, const storage::reader& storage, const accounts& users,
                     const place_book& places, std::string& out);

  static constexpr std::size_t most_bytes =
    64u << 20; ///< limit of the texts; beyond it all are forgotten and made again

private:
  struct known {
    std::shared_ptr<const face> lasting;
    std::uint64_t edits = 0; ///< of `lasting` and `constant`
    std::string constant;    ///< the fields that never change, without the closing brace; empty: not kept
    experiment_standing now;
    std::uint64_t users = 0;
    std::string changing; ///< the rest, for `now` and `users`
  };
  /// Forgets all where the pool of those that name none has another name now.
  result<void> look_at_pool(const storage::reader& storage);
  result<known*> found(const experiment_standing& now, const storage::reader& storage, bool with_text);

  std::mutex mutex_;
  std::shared_ptr<std::vector<entry>> entries_; ///< of `of_`, at `version_`; changed where nobody else has it
  std::array<text_order, 4> orders_;            ///< of `entries_`, by `text`
  const storage::reader* of_ = nullptr;
  std::uint64_t version_ = 0;
  std::map<experiment_id, known> known_;
  std::string usual_pool_; ///< that all of `known_` and `entries_` were made with
  std::size_t bytes_ = 0;
};

} // namespace troupe::api
