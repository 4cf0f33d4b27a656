#include "runtime/shell/api.hpp"

namespace troupe::shell {
namespace {

constexpr std::chrono::seconds get_limit{30};
constexpr std::chrono::seconds stream_quiet_limit{45}; ///< the server sends ": alive" every 15 s
constexpr std::size_t most_bytes = 64 << 20;

/// Reads the rest of a refusal.
std::string rest_of(client::http_stream& stream, std::string bytes) {
  while (bytes.size() < 65536) {
    auto more = stream.read(bytes, std::chrono::seconds(1));
    if (!more || !*more)
      break;
  }
  return bytes;
}

} // namespace

row_stream::row_stream(client::server& from, std::string path, client::query with)
    : from_(from), path_(std::move(path)), with_(std::move(with)) {}

result<std::vector<stream_event>> row_stream::read(std::chrono::milliseconds wait) {
  std::vector<stream_event> out;
  if (ended_)
    return out;
  if (!stream_) {
    auto opened = from_.open(path_, with_, {"Accept: text/event-stream"}, stream_quiet_limit);
    if (!opened)
      return opened.error();
    stream_ = *std::move(opened);
  }
  std::string bytes;
  auto more = stream_->read(bytes, wait);
  if (!more)
    return error{more.error().code, from_.where().url + ": the stream broke: " + more.error().what};
  int status = stream_->status();
  if (status != 0 && status != 200) {
    bytes = rest_of(*stream_, std::move(bytes));
    if (status == 401 &&
        !std::exchange(logged_in_again_, true)) { // a token of an earlier start: any request logs in
      if (auto again = from_.get("/troupe/v1/status"); !again)
        return again.error();
      stream_.reset();
      return out;
    }
    return from_.fault_of({status, bytes, {}});
  }
  answered_ = answered_ || status == 200;
  for (auto& event : parser_.feed(bytes)) {
    auto data = parse_json(event.data);
    if (!data)
      continue;
    if (event.type == "end") {
      ended_ = true;
      out.push_back({stream_event::kind::end, *std::move(data)});
    } else if (event.type == "lost") {
      out.push_back({stream_event::kind::lost, *std::move(data)});
    } else if (data->is_object()) {
      out.push_back({stream_event::kind::row, *std::move(data)});
    }
  }
  if (!*more && !ended_ && out.empty()) // what has come is returned first; the next read reports the end
    return error{errc::unreachable, from_.where().url + ": the node went away in the middle of the stream"};
  return out;
}

api::api(client::server_address where, client::server_options options, const std::atomic<bool>* interrupted)
    : server_(std::move(where), std::move(options)), interrupted_(interrupted) {}

result<value> api::get(const std::string& path, const client::query& with) {
  for (bool again = false;; again = true) {
    auto stream = server_.open(path, with, {}, get_limit);
    if (!stream)
      return stream.error();
    std::string bytes;
    for (bool open = true; open;) {
      if ((interrupted_ && interrupted_->load()) || (idle_ && idle_()))
        return error{errc::timeout, "interrupted"};
      auto more = (*stream)->read(bytes, std::chrono::milliseconds(100));
      if (!more) {
        auto why = more.error();
        return error{why.code, where().url + ": " + why.what};
      }
      if (bytes.size() > most_bytes)
        return error{errc::invalid, "the answer is larger than 64 MB\nhint: ask for less: --top N, kind=K"};
      open = *more;
    }
    auto status = (*stream)->status();
    if (status == 401 && !again) {
      if (auto login = server_.get("/troupe/v1/status"); !login)
        return login.error();
      continue;
    }
    if (status != 200)
      return server_.fault_of({status, bytes, {}});
    auto body = parse_json(bytes);
    if (!body)
      return error{errc::unreachable, where().url + " does not answer like a Troupe server"};
    return *std::move(body);
  }
}

result<value> api::post(const std::string& path, const value& body) { return server_.post(path, body); }

} // namespace troupe::shell
