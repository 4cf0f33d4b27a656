#include "runtime/cli/experiments.hpp"

#include <algorithm>
#include <ostream>

namespace troupe::cli {

result<experiment_id> named_experiment(client::server& cluster, const std::string& word) {
  if (auto id = parse_id<experiment_id>(word))
    return id;
  if (word != "last")
    return error{errc::invalid,
                 "'" + word + "' is not an experiment id\nhint: a number, or last; troupe experiment list"};
  auto newest = cluster.get("/api/v1/experiments",
                            {{"sortBy", "SORT_BY_ID"}, {"orderBy", "ORDER_BY_DESC"}, {"limit", "1"}});
  if (!newest)
    return newest.error();
  const auto& rows = part(newest->body, "experiments");
  if (!rows.is_array() || rows.empty())
    return error{errc::not_found, "there is no experiment yet\nhint: troupe experiment create CONFIG [DIR]"};
  return experiment_id{rows[0].value("id", std::uint64_t{0})};
}

result<trial_id> named_trial(const std::string& word) {
  if (auto id = parse_id<trial_id>(word))
    return id;
  return error{errc::invalid,
               "'" + word + "' is not a trial id\nhint: a number; troupe trial list EXPERIMENT"};
}

result<std::vector<std::string>> last_lines(client::server& cluster, trial_id id, std::size_t most) {
  std::vector<std::string> out;
  auto ok =
    cluster.lines("/api/v1/trials/" + to_string(id) + "/logs",
                  {{"limit", std::to_string(most)}, {"orderBy", "ORDER_BY_DESC"}}, false, [&](value line) {
                    const auto& log = part(line, "result").is_object() ? part(line, "result") : line;
                    if (part(log, "log").is_string())
                      out.push_back(log_text(log));
                    return true;
                  });
  if (!ok)
    return ok.error();
  std::reverse(out.begin(), out.end());
  return out;
}

void say_warning(session& s, const std::string& code) {
  if (code == "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED")
    s.io.err << "warning: its pool has too few slots: it waits for more of them, or for a pool that this one "
                "falls back to\n";
  if (code == "LAUNCH_WARNING_NO_WHOLE_INSTANCES")
    s.io.err << "warning: it waits, as instances of its pool start only for trials that fill whole ones: set "
                "resources.slots_per_trial to a multiple of instance_slots\n";
  if (code == "LAUNCH_WARNING_LARGER_THAN_INSTANCES")
    s.io.err
      << "warning: it waits, as resources.is_single_node keeps it on one agent, and an instance of its "
         "pool has fewer slots: set resources.slots_per_trial to at most instance_slots\n";
}

const std::vector<column>& experiment_columns() {
  static const std::vector<column> all = {{"ID", "id"},
                                          {"NAME", "name"},
                                          {"STATE", "state", show_as::state},
                                          {"PROGRESS", "progress", show_as::percent},
                                          {"TRIALS", "numTrials", show_as::number},
                                          {"BEST TRIAL", "bestTrialId", show_as::number},
                                          {"BEST", "bestTrialSearcherMetric", show_as::number},
                                          {"METRIC", "searcherMetric"},
                                          {"OWNER", "username"},
                                          {"STARTED", "startTime", show_as::age},
                                          {"ENDED", "endTime", show_as::age}};
  return all;
}

} // namespace troupe::cli
