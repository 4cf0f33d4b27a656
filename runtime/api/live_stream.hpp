#pragma once
// The live view of one reader: the objects that it watches, and what has changed of them since it was last
// told.

#include "runtime/api/route.hpp"

#include <set>

namespace troupe::api {

/// The watched objects, read from "experiments,experiment/7,series/7/training/loss,logs/12,cluster".
struct live_topics {
  struct series {
    experiment_id experiment;
    std::string group, metric;
  };
  bool experiments = false, cluster = false;
  std::set<experiment_id> trials_of; ///< experiment/7 means its own row and the rows of its trials
  std::vector<series> curves;
  std::set<trial_id> logs;

  /// Reads at most 100 topics. Fails with errc::invalid, and names a topic that is not known.
  static result<live_topics> read(std::string_view text);
};

/// Server-sent events without end. `id` is the sequence of the newest fact that the rows hold: a reader that
/// connects again with it gets what has changed since; one that is not there yet counts as the newest. Each
/// object is sent at most four times a second.
///
///   hello       {"sequence", "masterId", "version", "user"}
///   experiment  a row of the list of experiments
///   trial       a row of /troupe/v1/experiments/{id}/trials
///   points      {"experiment", "group", "metric", "trial", "row", "steps": [...], "at": [...], "y": [...]}
///   line        {"trial", "line", "at", "level", "rank", "agent", "stream", "text"}
///   cluster     {"status", "agents", "waiting"}
///   gone        {"experiment"}: the experiment was deleted, or may not be seen any more
///   lost        {"topic", "count"}: so many lines or points were left out; with the topic "experiments": the
///               rights of the reader have changed, so that lists may have other rows
///
/// `user` is the number of the user who reads, of whom `hello` tells.
std::unique_ptr<body_stream> live_stream(std::shared_ptr<const services> parts, principal who,
                                         std::uint64_t user, live_topics topics, std::uint64_t after);

} // namespace troupe::api
