#pragma once
// What tasks send over HTTP, in the form that the journal takes. The client numbers nothing and sends again
// what was not answered, so that a report's or batch's own bytes name it: each becomes a stream with one
// record, which the journal stores once. Pure.

#include "actors/messages.hpp"
#include "model/commands/table.hpp"

namespace troupe::node {

/// `now` is used if the report names no time.
append_reports report_of(allocation_id task, const commands::trial_report& x, time_point now);
append_log log_of(allocation_id task, const commands::task_log& x);

/// The rank that stands for "over HTTP" in the streams of reports: nobody waits there for the search's
/// decision.
inline constexpr std::int32_t http_rank = -1;

} // namespace troupe::node
