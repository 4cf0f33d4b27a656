#include "actors/retention/open_collections.hpp"

namespace troupe {

std::vector<checkpoint_files_removed> open_collections(const storage::reader& reads) {
  std::vector<checkpoint_files_removed> out;
  const auto open = reads.open_tasks();
  for (const auto& task : open ? *open : std::vector<task_row>()) {
    if (task.id.kind() != task_kind::checkpoint_gc)
      continue;
    auto stored = reads.facts_of(entity(task.id));
    auto first = stored && !stored->empty() ? decode_as<collection_fact>(stored->front())
                                            : result<collection_fact>(error{errc::not_found, ""});
    if (first)
      out.push_back(std::move(std::get<checkpoint_files_removed>(*first)));
  }
  return out;
}

} // namespace troupe
