#include "actors/retention/bucket_order.hpp"

#include "model/names.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t most_bytes_of_globs = 32'768; ///< beside the names of most_of_one_task checkpoints
constexpr std::string_view mark = "troupe: ";       ///< begins the lines in which a program says why it ends

} // namespace

std::vector<std::string> all_files() { return {"**/*"}; }

bucket_order first_part(bucket_order of) {
  if (of.checkpoints.size() > most_of_one_task) {
    of.checkpoints.resize(most_of_one_task);
    of.tensorboards = false; // the last task removes them
  }
  return of;
}

result<void> check(const bucket_order& of) {
  std::size_t bytes = 0;
  for (const auto& glob : of.globs)
    bytes += glob.size();
  if (bytes > most_bytes_of_globs)
    return error{errc::invalid, "the patterns have " + std::to_string(bytes) + " bytes; at most " +
                                  std::to_string(most_bytes_of_globs) + " at once"};
  return {};
}

value details_of(const bucket_order& of) {
  value out{{"experiment", of.experiment.value},
            {"trial", of.trial ? value(of.trial.value) : value()},
            {"cause", of.cause},
            {"by", of.by},
            {"checkpoints", of.checkpoints},
            {"globs", of.globs},
            {"tensorboards", of.tensorboards}};
  if (of.storage)
    out[storage_of_continuation] = *of.storage;
  return out;
}

bool covers(const value& details, const bucket_order& wanted) {
  auto own = details, its = details_of(wanted);
  if (!own.is_object())
    return false;
  const auto there = own.value("checkpoints", value::array());
  for (auto* one : {&own, &its}) {
    one->erase("checkpoints");
    one->erase("by");
  }
  return own == its &&
         std::all_of(wanted.checkpoints.begin(), wanted.checkpoints.end(), [&](const auto& uuid) {
           return std::find(there.begin(), there.end(), value(uuid)) != there.end();
         });
}

std::vector<std::string> removed_by(const value& details) {
  std::vector<std::string> out;
  if (details.is_object() && !details.value("globs", value::array()).empty())
    for (const auto& uuid : details.value("checkpoints", value::array()))
      out.push_back(uuid.get<std::string>());
  return out;
}

value creation_of(const bucket_order& of, workspace_id workspace) {
  const auto kind = task_kind::checkpoint_gc;
  return {
    {"kind", name(kind)},
    {"workspace", workspace.value},
    {"config",
     {{"description", people_name(of.experiment, task_id::of(kind, 0, 0))}, {"resources", {{"slots", 0}}}}},
    {"details", details_of(of)}};
}

std::string failure_of(const task_detail& ended, const std::vector<log_line>& last) {
  if (ended.state == task_state::completed)
    return {};
  const auto said =
    std::find_if(last.begin(), last.end(), [](const log_line& line) { return line.text.starts_with(mark); });
  auto why = said != last.end() ? said->text.substr(mark.size()) : ended.why;
  while (!why.empty() && why.back() == '\n')
    why.pop_back();
  return "task " + to_string(ended.made.id) +
         ", which removes files from the bucket: " + (why.empty() ? "it ended without a reason" : why);
}

} // namespace troupe
