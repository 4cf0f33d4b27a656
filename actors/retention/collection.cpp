#include "actors/retention/collection.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

constexpr std::size_t most_globs_shown = 200; ///< limit of the patterns that a line shows, in bytes

std::string counted_things(std::uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string joined_globs(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words)
    if (out.size() > most_globs_shown)
      return out + ", ...";
    else
      out += (out.empty() ? "" : ", ") + word;
  return out;
}

} // namespace

task_id collection_id(std::string_view random) {
  std::uint64_t halves[2] = {0, 0};
  std::memcpy(halves, random.data(), std::min(random.size(), sizeof halves));
  return task_id::of(task_kind::checkpoint_gc, halves[0], halves[1]);
}

collection_line collection::first_line() const {
  const auto of = " of experiment " + to_string(order_.experiment);
  std::string what = "the checkpoints" + of + " that it does not keep";
  if (order_.cause == collected_by::deletion)
    what = "all checkpoints" + of + ", which is deleted";
  else if (order_.cause == collected_by::trial)
    what = "all checkpoints of trial " + to_string(order_.trial) + of + ", which is deleted alone";
  else if (order_.cause == collected_by::tensorboards)
    what = "the TensorBoard files" + of;
  else if (order_.cause == collected_by::request)
    what = (order_.globs.empty() ? "all files" : "files that match " + joined_globs(order_.globs)) + " of " +
           counted_things(order_.checkpoints.size(), "checkpoint") + of;
  return {"INFO", std::string(again_ ? "The master was restarted; continues to remove " : "Removes ") + what +
                    (order_.by.empty() ? "" : ", as " + order_.by + " asked")};
}

collection_line collection::note(const removal& one) {
  const auto name =
    one.checkpoint.empty() ? std::string("TensorBoard files") : "Checkpoint " + one.checkpoint;
  const bool fine = one.why.empty();
  if (!one.checkpoint.empty() && (one.files || fine))
    ++removed_;
  if (fine)
    return {"INFO",
            name + ": " + (one.files ? counted_things(one.files, "file") + " removed" : "no file was left")};
  failed_ += !one.checkpoint.empty();
  if (why_.empty())
    why_ = one.why;
  return {"ERROR", name + ": not all files could be removed: " + one.why};
}

collection_line collection::last_line() const {
  const auto text = "Files of " + counted_things(removed_, "checkpoint") + " removed";
  if (why_.empty())
    return {"INFO", text};
  return {"ERROR", text + "; of " + counted_things(failed_, "checkpoint") + " some or all are left"};
}

checkpoint_files_removed collection::end(time_point now) const {
  auto out = order_;
  out.at = now;
  out.step = why_.empty() ? deletion_step::done : deletion_step::failed;
  out.removed = removed_;
  out.failed = failed_;
  out.why = why_;
  return out;
}

bool goes_to_journal(std::size_t waiting, std::size_t open, std::size_t removers_at_work) {
  constexpr std::size_t many = 16, of_one_commit = 16;
  return removers_at_work == 0 || open <= many || waiting >= of_one_commit;
}

bool same_collection(const checkpoint_files_removed& open, const checkpoint_files_removed& wanted) {
  return wanted.cause != collected_by::request && open.cause == wanted.cause &&
         open.experiment == wanted.experiment && open.trial == wanted.trial;
}

} // namespace troupe
