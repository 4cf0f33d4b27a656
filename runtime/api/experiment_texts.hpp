#pragma once
// The texts of experiments in a list of them. The part that only edits change is read and formatted once, so
// that a list right after a new fact costs only the experiment that the fact was about. Thread-safe.

#include "runtime/api/place_shapes.hpp"
#include "runtime/api/text_order.hpp"
#include "storage/journal.hpp"

#include <array>

namespace troupe::api {

class experiment_texts {
public:
  /// The fields by which a list is filtered and sorted.
  struct face {
    std::string name, owner, description, pool;
    value labels; ///< an array of texts
    time_point created;
    experiment_id parent; ///< 0: none
  };
  struct entry {
    experiment_standing now;
    std::shared_ptr<const face> lasting;
  };
  /// Every experiment that this reader shows, in the order of their ids.
  result<std::vector<entry>> all(const storage::reader& storage);
  /// The texts by which a list can be sorted.
  enum class text { name, owner, description, pool };
  static const std::string& text_of(const entry& of, text which);

  struct listing {
    std::shared_ptr<const std::vector<entry>> rows;
    text_order::ranks ranks; ///< ranks by the wanted text; null: compare the texts
  };
  /// The same for a reader that shows everything. The list is kept where the reader is a
  /// `storage::standing_watch`, and then costs only what has changed since the last list.
  result<listing> kept(const storage::reader& everything, std::optional<text> sorted_by);
  /// Appends the JSON of `experiment_shape` for that standing to `out`.
  result<void> write(const entry& of, const storage::reader& storage, const accounts& users,
                     const place_book& places, std::string& out);

  /// Limit of all texts; beyond it all of them are forgotten and made again.
  static constexpr std::size_t most_bytes = 64u << 20;

private:
  struct known {
    std::shared_ptr<const face> lasting;
    std::uint64_t edits = 0; ///< number of edits of the experiment that `lasting` and `constant` contain
    /// The fields that only an edit changes, as JSON without the closing brace; empty: not kept.
    std::string constant;
    experiment_standing now;
    std::uint64_t users = 0;
    std::string changing; ///< the other fields, for `now` and `users`
  };
  /// Forgets everything where the pool of experiments that name none has changed.
  result<void> look_at_pool(const storage::reader& storage);
  result<known*> found(const experiment_standing& now, const storage::reader& storage, bool with_text);

  std::mutex mutex_;
  /// Experiments of the reader `of_` at `version_`. Changed in place only where no list that was handed out
  /// shares them.
  std::shared_ptr<std::vector<entry>> entries_;
  std::array<text_order, 4> orders_; ///< order of `entries_`, one for each `text`
  const storage::reader* of_ = nullptr;
  std::uint64_t version_ = 0;
  std::map<experiment_id, known> known_;
  std::string usual_pool_; ///< the pool that `known_` and `entries_` were made with
  std::size_t bytes_ = 0;
};

} // namespace troupe::api
