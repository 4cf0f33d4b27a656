#include "workers/harness_frames.hpp"

#include <msgpack.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace troupe::workers {

namespace {

constexpr int max_frame_levels = 512;

/// Checks one metrics map while the parser walks over it, and keeps no value. After the first fault the walk
/// goes on, to find the end of the report.
struct report_check : msgpack::null_visitor {
  int level = 0, keys = 0;
  bool in_key = false, too_deep = false;
  std::string fault;

  void blame(std::string why) {
    if (fault.empty())
      fault = std::move(why);
  }
  bool scalar() {
    if (level == 0)
      blame("metrics must be a map of names to values");
    if (in_key)
      blame("the name of a metric must be a string");
    return true;
  }
  bool visit_nil() { return scalar(); }
  bool visit_boolean(bool) { return scalar(); }
  bool visit_positive_integer(std::uint64_t) { return scalar(); }
  bool visit_negative_integer(std::int64_t) { return scalar(); }
  bool visit_float32(float) { return scalar(); }
  bool visit_float64(double) { return scalar(); }
  bool visit_str(const char*, std::uint32_t size) {
    if (in_key && size > max_name_bytes)
      blame("a name of " + std::to_string(size) + " bytes; at most " + std::to_string(max_name_bytes));
    if (level == 0)
      scalar();
    return true;
  }
  bool visit_bin(const char*, std::uint32_t) {
    blame("metrics cannot hold binary values");
    return true;
  }
  bool visit_ext(const char*, std::uint32_t) {
    blame("metrics cannot hold msgpack extension types");
    return true;
  }
  bool enter() {
    if (in_key)
      blame("the name of a metric must be a string");
    in_key = false;
    if (++level > max_report_levels)
      blame("metrics nest deeper than " + std::to_string(max_report_levels) + " levels");
    too_deep = level > max_frame_levels;
    return !too_deep;
  }
  bool start_array(std::uint32_t) {
    if (level == 0)
      blame("metrics must be a map of names to values");
    return enter();
  }
  bool end_array() { return --level, true; }
  bool start_map(std::uint32_t pairs) {
    keys += static_cast<int>(std::min<std::uint32_t>(pairs, max_report_keys + 1));
    if (keys > max_report_keys) {
      keys = max_report_keys + 1;
      blame("a report of more than " + std::to_string(max_report_keys) + " keys");
    }
    return enter();
  }
  bool end_map() { return --level, true; }
  bool start_map_key() { return in_key = true; }
  bool end_map_key() { return in_key = false, true; }
};

/// Reads a frame from its front. The first unexpected thing makes it `bad`; from then on every read returns
/// an empty value.
class cursor {
public:
  explicit cursor(std::string_view body) : body_(body) {}
  bool bad() const { return !fault_.empty(); }
  const std::string& fault() const { return fault_; }
  void blame(std::string why) {
    if (fault_.empty())
      fault_ = std::move(why);
  }

  std::uint32_t array(const char* what) {
    auto head = byte();
    if ((head & 0xf0) == 0x90)
      return head & 0x0f;
    if (head == 0xdc)
      return static_cast<std::uint32_t>(big_endian(2));
    if (head == 0xdd)
      return static_cast<std::uint32_t>(big_endian(4));
    return wrong(what, "an array"), 0;
  }
  std::uint32_t map(const char* what) {
    auto head = byte();
    if ((head & 0xf0) == 0x80)
      return head & 0x0f;
    if (head == 0xde)
      return static_cast<std::uint32_t>(big_endian(2));
    if (head == 0xdf)
      return static_cast<std::uint32_t>(big_endian(4));
    return wrong(what, "a map"), 0;
  }
  std::string_view text(const char* what) {
    auto head = byte();
    std::size_t size = 0;
    if ((head & 0xe0) == 0xa0)
      size = head & 0x1f;
    else if (head >= 0xd9 && head <= 0xdb)
      size = big_endian(std::size_t{1} << (head - 0xd9));
    else
      return wrong(what, "a string"), std::string_view{};
    return take(size);
  }
  std::string_view bytes(const char* what) {
    const auto head = byte();
    if (head < 0xc4 || head > 0xc6)
      return wrong(what, "binary"), std::string_view{};
    return take(big_endian(std::size_t{1} << (head - 0xc4)));
  }
  /// An integer from 0 to 2^63-1.
  std::int64_t number(const char* what) {
    auto x = integer(what);
    if (x < 0)
      wrong(what, "a number from 0");
    return bad() ? 0 : x;
  }
  std::int64_t integer(const char* what) {
    auto head = byte();
    if (head < 0x80)
      return head;
    if (head >= 0xe0)
      return static_cast<std::int8_t>(head);
    if (head >= 0xcc && head <= 0xcf) {
      auto x = big_endian(std::size_t{1} << (head - 0xcc));
      if (x > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        wrong(what, "a number below 2^63");
      return static_cast<std::int64_t>(x);
    }
    switch (head) {
    case 0xd0:
      return static_cast<std::int8_t>(big_endian(1));
    case 0xd1:
      return static_cast<std::int16_t>(big_endian(2));
    case 0xd2:
      return static_cast<std::int32_t>(big_endian(4));
    case 0xd3:
      return static_cast<std::int64_t>(big_endian(8));
    default:
      return wrong(what, "an integer"), 0;
    }
  }
  double real(const char* what) {
    if (at_ < body_.size() && static_cast<unsigned char>(body_[at_]) == 0xcb) {
      byte();
      auto bits = big_endian(8);
      double x = 0;
      std::memcpy(&x, &bits, sizeof x);
      return x;
    }
    return static_cast<double>(integer(what));
  }
  /// The bytes of one value that should be a metrics map; `refusal` says why it is not.
  std::string_view metrics(std::string& refusal) {
    if (bad())
      return {};
    report_check check;
    auto end = at_;
    if (!msgpack::parse(body_.data(), body_.size(), end, check)) {
      blame(check.too_deep ? "nests deeper than 512 levels" : "is cut off or no msgpack");
      return {};
    }
    auto bytes = body_.substr(at_, end - at_);
    at_ = end;
    if (bytes.size() > max_report_bytes)
      check.blame("a report of " + std::to_string(bytes.size()) + " bytes; at most " +
                  std::to_string(max_report_bytes) + "; save large things in a checkpoint");
    refusal = std::move(check.fault);
    return bytes;
  }
  std::size_t left() const { return body_.size() - at_; }

private:
  void wrong(const char* what, const char* expected) { blame(std::string(what) + " must be " + expected); }
  std::string_view take(std::size_t size) {
    if (bad() || size > left())
      return blame("is cut off"), std::string_view{};
    auto part = body_.substr(at_, size);
    at_ += size;
    return part;
  }
  unsigned char byte() {
    auto part = take(1);
    return part.empty() ? 0xc1 : static_cast<unsigned char>(part[0]); // 0xc1 is never used in msgpack
  }
  std::uint64_t big_endian(std::size_t size) {
    std::uint64_t x = 0;
    for (unsigned char c : take(size))
      x = x << 8 | c;
    return x;
  }

  std::string_view body_;
  std::size_t at_ = 0;
  std::string fault_;
};

hello decode_hello(cursor& in, std::uint32_t fields) {
  hello x;
  if (fields < 2)
    return in.blame("hello needs a version"), x;
  x.version = static_cast<std::uint64_t>(in.number("version"));
  if (x.version != task_link_version)
    return x; // the rest may mean something else
  if (fields < 7)
    return in.blame("hello has 7 fields in version 1"), x;
  x.token = in.text("token");
  x.allocation = parse_allocation(in.text("allocation"));
  auto rank = in.number("rank");
  x.process = in.text("process");
  x.acked = static_cast<std::uint64_t>(in.number("acked"));
  if (rank > std::numeric_limits<std::int32_t>::max())
    in.blame("rank must be below 2^31");
  x.rank = static_cast<std::int32_t>(rank);
  if (!in.bad() && (x.process.empty() || x.process.size() > 64 || x.token.size() > 1024))
    in.blame("process must have 1 to 64 bytes and the token at most 1,024");
  return x;
}

report_row decode_row(cursor& in) {
  report_row row;
  if (in.array("a report") < 4)
    return in.blame("a report has 4 fields: group, steps, metrics, time"), row;
  auto group = in.text("group");
  row.validation = group == "validation";
  if (!row.validation && group != "training" && !in.bad())
    row.refusal = "the group of a report must be training or validation";
  row.steps = in.number("steps");
  std::string refusal;
  auto metrics = in.metrics(refusal);
  row.at = time_point(duration(in.integer("time")));
  if (row.refusal.empty())
    row.refusal = std::move(refusal);
  if (row.refusal.empty())
    row.metrics = metrics;
  return row;
}

reports decode_reports(cursor& in, std::uint32_t fields) {
  reports x;
  if (fields < 3)
    return in.blame("reports has 3 fields: first, rows"), x;
  x.first = static_cast<std::uint64_t>(in.number("first"));
  auto count = in.array("rows");
  if (x.first == 0 && !in.bad())
    in.blame("reports are numbered from 1");
  x.rows.reserve(std::min<std::size_t>(count, in.left() / 5)); // a row has at least 5 bytes
  for (std::uint32_t i = 0; i < count && !in.bad(); ++i)
    x.rows.push_back(decode_row(in));
  return x;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36)
    return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex)
      return false;
  }
  return true;
}

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/')
    return false;
  for (std::size_t at = 0; at <= path.size();) {
    auto end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..")
      return false;
    at = end + 1;
  }
  return true;
}

task_checkpoint decode_checkpoint(cursor& in, std::uint32_t fields) {
  task_checkpoint x;
  if (fields < 6)
    return in.blame("checkpoint has 6 fields: sequence, uuid, steps, files, metadata"), x;
  x.sequence = static_cast<std::uint64_t>(in.number("sequence"));
  x.uuid = in.text("uuid");
  if (!in.bad() && (!is_uuid(x.uuid) || x.sequence == 0))
    in.blame("a checkpoint needs a sequence from 1 and a UUID in lower case");
  x.steps = in.number("steps");
  auto count = in.map("files");
  for (std::uint32_t i = 0; i < count && !in.bad(); ++i) {
    auto path = in.text("path");
    auto bytes = in.number("bytes");
    if (!in.bad() && !stays_inside(path))
      in.blame("the path of a checkpoint's file must be relative and stay inside it");
    x.files.emplace_back(path, static_cast<std::uint64_t>(bytes));
  }
  std::string refusal;
  x.metadata = in.metrics(refusal);
  if (!refusal.empty())
    in.blame("metadata: " + refusal);
  return x;
}

task_progress decode_progress(cursor& in, std::uint32_t fields) {
  task_progress x;
  if (fields < 2)
    return in.blame("progress needs a fraction"), x;
  x.done = in.real("progress");
  if (!(x.done >= 0 && x.done <= 1))
    in.blame("progress must be between 0 and 1");
  return x;
}

worker_mail decode_worker_mail(cursor& in, std::uint32_t fields) {
  worker_mail x;
  if (fields < 3)
    return in.blame("worker has 3 fields: version, word"), x;
  x.protocol = static_cast<std::uint64_t>(in.number("version"));
  x.body = in.bytes("word");
  if (x.body.size() > max_worker_mail_bytes)
    in.blame("a worker's word has at most " + std::to_string(max_worker_mail_bytes) + " bytes");
  return x;
}

} // namespace

task_frame decode_task_frame(std::string_view body) {
  cursor in(body);
  auto fields = in.array("a frame");
  if (fields == 0)
    in.blame("a frame has a kind");
  auto kind = in.text("kind");
  task_frame frame;
  if (kind == "reports")
    frame = decode_reports(in, fields);
  else if (kind == "ping")
    frame = ping{};
  else if (kind == "hello")
    frame = decode_hello(in, fields);
  else if (kind == "progress")
    frame = decode_progress(in, fields);
  else if (kind == "worker")
    frame = decode_worker_mail(in, fields);
  else if (kind == "checkpoint")
    frame = decode_checkpoint(in, fields);
  else
    in.blame("unknown kind");
  if (in.bad())
    return malformed{"not a frame of the task link: " + in.fault()};
  return frame;
}

namespace {

using packer = msgpack::packer<msgpack::sbuffer>;

void pack_stop(packer& out, const std::string& reason) {
  if (reason.empty())
    out.pack_nil();
  else
    out.pack(reason);
}

struct pack_frame {
  packer& out;
  packer& head(std::uint32_t fields, const char* kind) const { return out.pack_array(fields).pack(kind); }

  void operator()(const welcome& x) const {
    head(5, "welcome").pack(task_link_version).pack(x.acked);
    pack_stop(out, x.stop);
    out.pack(x.window_bytes);
  }
  void operator()(const ack& x) const { head(2, "ack").pack(x.up_to); }
  void operator()(const decision& x) const {
    head(4, "decision").pack(x.sequence).pack(x.stop).pack(x.reason);
  }
  void operator()(const refused& x) const { head(3, "refused").pack(x.sequence).pack(x.why); }
  void operator()(const saved& x) const { head(2, "saved").pack(x.sequence); }
  void operator()(const unsaved& x) const { head(3, "unsaved").pack(x.sequence).pack(x.why); }
  void operator()(const stop& x) const { head(2, "stop").pack(x.reason); }
  void operator()(const pong& x) const {
    head(3, "pong").pack(x.acked);
    pack_stop(out, x.stop);
  }
  void operator()(const again&) const { head(1, "again"); }
  void operator()(const worker_mail& x) const {
    head(3, "worker").pack(x.protocol);
    out.pack_bin(static_cast<std::uint32_t>(x.body.size()))
      .pack_bin_body(x.body.data(), static_cast<std::uint32_t>(x.body.size()));
  }
  void operator()(const link_error& x) const { head(3, "error").pack(x.code).pack(x.why); }
};

} // namespace

std::string encode(const agent_frame& frame) {
  msgpack::sbuffer buffer;
  packer out(buffer);
  std::visit(pack_frame{out}, frame);
  return {buffer.data(), buffer.size()};
}

} // namespace troupe::workers
