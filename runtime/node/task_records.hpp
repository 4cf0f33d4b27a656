#pragma once
// What tasks send over HTTP, in the form that the journal takes. Its client numbers nothing and sends again
// what it got no answer to, so a report's or batch's own bytes name it: each is a stream of one, which the
// journal stores once. Pure.

#include "actors/messages.hpp"

namespace troupe::node {

/// Of trial.report (runtime/api/gate.hpp). `now` stands where the fields name no time.
append_reports report_of(allocation_id task, const value& fields, time_point now);
/// Of task.log.
append_log log_of(allocation_id task, const value& fields);

/// The rank that stands for "over HTTP" in the streams of reports: nobody waits for the search's decision
/// there.
inline constexpr std::int32_t http_rank = -1;

} // namespace troupe::node
