#include "runtime/node/task_records.hpp"

#include "model/hex.hpp"

#include <sodium.h>

namespace troupe::node {
namespace {

/// 128 bits of the bytes' BLAKE2b, in hex.
std::string digest(const std::string& bytes) {
  unsigned char raw[16];
  crypto_generichash(raw, sizeof raw, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     nullptr, 0);
  return hex({reinterpret_cast<const char*>(raw), sizeof raw});
}

time_point at_micros(const value& x, time_point otherwise) {
  return x.is_number() ? time_point{duration{x.get<std::int64_t>()}} : otherwise;
}

} // namespace

append_reports report_of(allocation_id task, const value& fields, time_point now) {
  storage::report_batch::report one;
  one.group = fields.value("group", std::string());
  one.steps = fields.value("steps", std::int64_t{0});
  one.at = at_micros(fields.value("at", value()), now);
  one.metrics = to_msgpack(fields.value("metrics", value::object()));
  if (auto batches = fields.find("batch_metrics"); batches != fields.end())
    one.batches = to_msgpack(*batches);
  append_reports out{task, http_rank, digest(to_msgpack(fields)), 1, {}};
  out.reports.push_back(std::move(one));
  return out;
}

append_log log_of(allocation_id task, const value& fields) {
  const auto lines = fields.value("lines", value::array());
  append_log out{task.task, {}, to_string(task) + "/http-" + digest(to_msgpack(lines)), 1};
  for (const auto& one : lines) {
    log_line line;
    line.at = at_micros(one.value("at", value()), {});
    line.allocation = task;
    line.rank = one.value("rank", 0);
    line.stream = one.value("stream", std::string("stdout"));
    line.level = one.value("level", std::string());
    line.agent = one.value("agent", std::string());
    line.text = one.value("text", std::string());
    out.lines.push_back(std::move(line));
  }
  return out;
}

} // namespace troupe::node
