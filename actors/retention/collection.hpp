#pragma once
// A collection of checkpoints as a task: what its log says of each checkpoint, and how it ended. Pure; the
// shell is collections_part.cpp.

#include "model/facts.hpp"

#include <optional>

namespace troupe {

// Why files of checkpoints are removed; facts hold these words.
namespace collected_by {
inline constexpr const char* policy = "policy";             ///< the experiment keeps fewer than it has
inline constexpr const char* deletion = "experiment";       ///< the experiment is deleted
inline constexpr const char* trial = "trial";               ///< one trial of it is
inline constexpr const char* tensorboards = "tensorboards"; ///< its TensorBoard files are
inline constexpr const char* request = "files";             ///< a user named checkpoints and patterns
} // namespace collected_by

/// A random id of a collection, from 16 random bytes.
task_id collection_id(std::string_view random);

/// What came of one checkpoint, or of the TensorBoard files of the experiment.
struct removal {
  std::string checkpoint; ///< UUID; empty: TensorBoard files, or what kept the collection from its work
  std::size_t files = 0;  ///< that were removed
  std::string why;        ///< why one could not be removed; empty: all are gone
};

/// A line of the log.
struct collection_line {
  std::string level, text;
  friend bool operator==(const collection_line&, const collection_line&) = default;
};

/// Not thread-safe: one actor owns it. It counts what was removed since the last start of the master; the log
/// has all.
class collection {
public:
  /// `again`: it was begun in an earlier life of the master.
  explicit collection(checkpoint_files_removed order, bool again = false)
      : order_(std::move(order)), again_(again) {}

  const checkpoint_files_removed& order() const { return order_; }
  collection_line first_line() const;
  collection_line note(const removal& one);
  collection_line last_line() const;
  /// The fact that it is over: failed where one removal was.
  checkpoint_files_removed end(time_point now) const;

private:
  checkpoint_files_removed order_;
  bool again_;
  std::uint64_t removed_ = 0, failed_ = 0;
  std::string why_;
};

/// Whether what collections have for the journal goes there now, or waits for more, so that one commit serves
/// many. It waits only beside a remover that is at work, whose answer leads here again.
bool goes_to_journal(std::size_t waiting, std::size_t open, std::size_t removers_at_work);

/// Whether a new order is the same work as an open one: then it goes on under its id.
bool same_collection(const checkpoint_files_removed& open, const checkpoint_files_removed& wanted);

} // namespace troupe
