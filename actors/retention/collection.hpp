#pragma once
// A collection of checkpoints as a task: what its log says of each checkpoint, and how it ended. Pure; the
// shell is collections_part.cpp.

#include "model/facts.hpp"

#include <optional>

namespace troupe {

// Why files of checkpoints are removed; facts hold these words.
namespace collected_by {
inline constexpr const char* policy = "policy";       ///< the policy keeps fewer checkpoints than there are
inline constexpr const char* deletion = "experiment"; ///< the experiment is deleted
inline constexpr const char* trial = "trial";         ///< one trial of the experiment is deleted
inline constexpr const char* tensorboards = "tensorboards"; ///< TensorBoard files are deleted
inline constexpr const char* request = "files";             ///< a user named checkpoints and patterns
} // namespace collected_by

/// A random id of a collection, from 16 random bytes.
task_id collection_id(std::string_view random);

/// What was removed of one checkpoint, or of the experiment's TensorBoard files.
struct removal {
  /// UUID; empty: TensorBoard files, or a fault that kept the whole collection from its work.
  std::string checkpoint;
  std::size_t files = 0; ///< number of files that were removed
  std::string why;       ///< why a file could not be removed; empty: all are gone
};

/// A line of the log.
struct collection_line {
  std::string level, text;
  friend bool operator==(const collection_line&, const collection_line&) = default;
};

/// Not thread-safe: one actor owns it. It counts what was removed since the last start of the master; only
/// the log tells of all removals.
class collection {
public:
  /// `again`: the collection was begun in an earlier life of the master.
  explicit collection(checkpoint_files_removed order, bool again = false)
      : order_(std::move(order)), again_(again) {}

  const checkpoint_files_removed& order() const { return order_; }
  collection_line first_line() const;
  collection_line note(const removal& one);
  collection_line last_line() const;
  /// The fact that the collection has ended: as failed if one removal failed.
  checkpoint_files_removed end(time_point now) const;

private:
  checkpoint_files_removed order_;
  bool again_;
  std::uint64_t removed_ = 0, failed_ = 0;
  std::string why_;
};

/// Whether the mail that collections have for the journal is sent now. Mail that waits for more mail shares
/// its commit. It waits only while a remover is at work, whose answer asks this question again.
bool goes_to_journal(std::size_t waiting, std::size_t open, std::size_t removers_at_work);

/// Whether a new order names the same work as an open one: then that work goes on under the open one's id.
bool same_collection(const checkpoint_files_removed& open, const checkpoint_files_removed& wanted);

} // namespace troupe
