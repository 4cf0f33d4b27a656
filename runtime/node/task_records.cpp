#include "runtime/node/task_records.hpp"

#include "model/hex.hpp"

#include <sodium.h>

namespace troupe::node {
namespace {

/// The bytes' BLAKE2b with 128 bits, in hexadecimal.
std::string digest(const std::string& bytes) {
  unsigned char raw[16];
  crypto_generichash(raw, sizeof raw, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     nullptr, 0);
  return hex({reinterpret_cast<const char*>(raw), sizeof raw});
}

time_point at_micros(std::int64_t x) { return time_point{duration{x}}; }

} // namespace

append_reports report_of(allocation_id task, const commands::trial_report& x, time_point now) {
  storage::report_batch::report one;
  one.group = x.group;
  one.steps = x.steps;
  one.at = x.at ? at_micros(*x.at) : now;
  one.metrics = to_msgpack(x.metrics);
  if (x.batch_metrics)
    one.batches = to_msgpack(*x.batch_metrics);
  append_reports out{task, http_rank, digest(to_msgpack(commands::write(x))), 1, {}};
  out.reports.push_back(std::move(one));
  return out;
}

append_log log_of(allocation_id task, const commands::task_log& x) {
  append_log out{task.task, {}, "", 1};
  value written = value::array();
  for (const auto& one : x.lines) {
    log_line line;
    line.at = at_micros(one.at);
    line.allocation = task;
    line.rank = one.rank;
    line.stream = one.stream;
    line.level = one.level;
    line.agent = one.agent;
    line.text = one.text;
    out.lines.push_back(std::move(line));
    written.push_back(commands::write(one));
  }
  out.source = to_string(task) + "/http-" + digest(to_msgpack(written));
  return out;
}

} // namespace troupe::node
