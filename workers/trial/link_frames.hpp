#pragma once
// Frames of the task link (docs/task-link.md) as a task writes them. Frames of the agent are read through
// nlohmann's msgpack.

#include "workers/trial/report_sink.hpp"

namespace troupe::trial {

std::string hello_frame(const settings& s, std::uint64_t acked);
std::string report_entry(const char* group, std::int64_t steps, const metrics& m, std::int64_t at_us);
std::string reports_frame(std::uint64_t first, const std::vector<const std::string*>& entries);
std::string checkpoint_frame(std::uint64_t sequence, const std::string& uuid, std::int64_t steps,
                             const file_list& files);
std::string progress_frame(double done);
std::string ping_frame();
std::string worker_frame(std::uint64_t protocol, const std::string& word);

} // namespace troupe::trial
