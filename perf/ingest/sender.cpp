// Reports metrics as many Python processes would, in the Python package's own frames (docs/task-link.md), and
// counts what was acknowledged. Run it inside a task (it reads the same environment), or give the flags.
//
//   ingest_sender [--senders 16] [--seconds 10] [--metrics 8] [--rate 0] [--batch 64] [--give-up 30]
//                 [--record FILE] [--endpoint E] [--token T,...] [--allocation A,...] [--rank 0]
//
// Each sender is a library instance: it has its own connection, process id, sequence numbers and window, and
// repeats everything after a reconnection. Several allocations (and their tokens) are given to the senders in
// turn. --rate limits all senders together, in reports a second; 0: as fast as acknowledgements allow. After
// --seconds it sends no more and waits for the last acknowledgement, at most --give-up seconds. Prints one
// line of JSON; --record writes it to a file too, followed by a line for each sender with what was
// acknowledged to it. Metric "i" of a report is its number, so that a reader can tell what is missing.

#include <msgpack.hpp>
#include <zmq.hpp>

#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;
using packer = msgpack::packer<msgpack::sbuffer>;

struct options {
  int senders = 16, metrics = 8, batch = 64, rank = 0;
  double seconds = 10, rate = 0, give_up = 30;
  std::string endpoint, record;
  std::vector<std::string> tokens, allocations;
};

double seconds_between(steady::time_point a, steady::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

/// One library instance.
class sender {
public:
  sender(zmq::context_t& context, const options& o, int index)
      : context_(context), options_(o), token_(o.tokens[static_cast<std::size_t>(index) % o.tokens.size()]),
        allocation_(o.allocations[static_cast<std::size_t>(index) % o.allocations.size()]) {
    std::random_device random;
    std::ostringstream name;
    for (int i = 0; i < 4; ++i)
      name << std::hex << std::setw(8) << std::setfill('0') << random();
    process_ = name.str();
    open();
  }

  zmq::socket_t& socket() { return *socket_; }
  std::uint64_t acked() const { return acked_; }
  std::uint64_t sent() const { return made_; }
  const std::string& process() const { return process_; }
  const std::string& fault() const { return fault_; }
  std::vector<double>& waits() { return waits_; } ///< ms from a frame to the acknowledgement that covers it

  void hear(steady::time_point now) {
    zmq::message_t body;
    while (socket_->recv(body, zmq::recv_flags::dontwait)) {
      heard_ = now;
      auto handle = msgpack::unpack(static_cast<const char*>(body.data()), body.size());
      auto fields = handle.get().as<std::vector<msgpack::object>>();
      auto kind = fields.at(0).as<std::string>();
      if (kind == "ack" || kind == "pong")
        advance(fields.at(1).as<std::uint64_t>(), now);
      else if (kind == "welcome") {
        advance(fields.at(2).as<std::uint64_t>(), now);
        window_ = fields.at(4).as<std::size_t>();
        sent_ = acked_; // everything without an acknowledgement is sent again
        flying_.clear();
        greeted_ = true;
      } else if (kind == "again")
        greeted_ = false, greet_at_ = now;
      else if (kind == "refused")
        fault_ = "refused: " + fields.at(2).as<std::string>();
      else if (kind == "error") {
        auto code = fields.at(1).as<std::string>();
        greeted_ = false, greet_at_ = now + 1s;
        if (code != "unknown")
          fault_ = code + ": " + fields.at(2).as<std::string>();
      }
    }
  }

  /// Greets, pings, and sends up to `allowed` new reports; returns how many.
  int act(steady::time_point now, int allowed) {
    if (now - heard_ > 3s)
      open();
    if (!greeted_) {
      if (now >= greet_at_ && send([&](packer& p) {
            p.pack_array(7)
              .pack("hello")
              .pack(1)
              .pack(token_)
              .pack(allocation_)
              .pack(options_.rank)
              .pack(process_)
              .pack(acked_);
          }))
        greet_at_ = now + 1s;
      return 0;
    }
    if (now - heard_ > 1s && now >= ping_at_) {
      send([](packer& p) { p.pack_array(1).pack("ping"); });
      ping_at_ = now + 1s;
    }
    int made = 0;
    while (true) {
      auto repeat = made_ - sent_;
      auto room =
        (window_ - std::min<std::size_t>(window_, (sent_ - acked_) * report_bytes())) / report_bytes();
      auto count = std::min<std::uint64_t>({static_cast<std::uint64_t>(options_.batch), room,
                                            repeat ? repeat : static_cast<std::uint64_t>(allowed - made)});
      if (count == 0 || !send_reports(sent_ + 1, count, now))
        return made;
      sent_ += count;
      if (!repeat) {
        made_ += count;
        made += static_cast<int>(count);
      }
    }
  }

private:
  void open() {
    socket_ = std::make_unique<zmq::socket_t>(context_, zmq::socket_type::dealer);
    socket_->set(zmq::sockopt::immediate, true);
    socket_->set(zmq::sockopt::linger, 0);
    socket_->set(zmq::sockopt::reconnect_ivl, 50);
    socket_->connect(options_.endpoint);
    greeted_ = false;
    heard_ = greet_at_ = steady::now();
  }

  std::size_t report_bytes() const { return 40 + static_cast<std::size_t>(options_.metrics) * 16; }

  template <class F>
  bool send(F&& write) {
    buffer_.clear();
    packer p(buffer_);
    write(p);
    return socket_->send(zmq::buffer(buffer_.data(), buffer_.size()), zmq::send_flags::dontwait).has_value();
  }

  bool send_reports(std::uint64_t first, std::uint64_t count, steady::time_point now) {
    auto time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
    bool sent = send([&](packer& p) {
      p.pack_array(3).pack("reports").pack_fix_uint64(first);
      p.pack_array(static_cast<std::uint32_t>(count));
      for (auto n = first; n < first + count; ++n) {
        p.pack_array(4)
          .pack("training")
          .pack_fix_uint64(n)
          .pack_map(static_cast<std::uint32_t>(options_.metrics));
        p.pack("i").pack_double(static_cast<double>(n));
        for (int m = 1; m < options_.metrics; ++m)
          p.pack(names_[static_cast<std::size_t>(m)])
            .pack_double(1.0 / static_cast<double>(n + static_cast<std::uint64_t>(m)));
        p.pack_fix_int64(time.count());
      }
    });
    if (sent)
      flying_.emplace_back(first + count - 1, now);
    return sent;
  }

  void advance(std::uint64_t up_to, steady::time_point now) {
    acked_ = std::max(acked_, up_to);
    for (; !flying_.empty() && flying_.front().first <= acked_; flying_.pop_front())
      waits_.push_back(seconds_between(flying_.front().second, now) * 1e3);
  }

  zmq::context_t& context_;
  const options& options_;
  std::unique_ptr<zmq::socket_t> socket_;
  std::string token_, allocation_, process_, fault_;
  bool greeted_ = false;
  std::uint64_t acked_ = 0, sent_ = 0, made_ = 0;
  std::size_t window_ = 1 << 20;
  steady::time_point heard_, greet_at_, ping_at_;
  std::deque<std::pair<std::uint64_t, steady::time_point>> flying_;
  std::vector<double> waits_;
  msgpack::sbuffer buffer_;
  std::vector<std::string> names_ = [] {
    std::vector<std::string> names;
    for (int i = 0; i < 1000; ++i)
      names.push_back("metric" + std::to_string(i));
    return names;
  }();
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    parts.push_back(part);
  return parts;
}

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

int usage(const std::string& why) {
  std::cerr << "ingest_sender: " << why << "\n";
  return 2;
}

} // namespace

int main(int count, char** words) {
  options o;
  o.endpoint = environment("TROUPE_HARNESS");
  o.tokens = split(environment("TROUPE_TASK_TOKEN"));
  o.allocations = split(environment("TROUPE_ALLOCATION_ID"));
  for (int i = 1; i + 1 < count; i += 2) {
    std::string name = words[i], text = words[i + 1];
    if (name == "--senders")
      o.senders = std::atoi(text.c_str());
    else if (name == "--seconds")
      o.seconds = std::atof(text.c_str());
    else if (name == "--metrics")
      o.metrics = std::clamp(std::atoi(text.c_str()), 1, 1000);
    else if (name == "--batch")
      o.batch = std::max(1, std::atoi(text.c_str()));
    else if (name == "--rate")
      o.rate = std::atof(text.c_str());
    else if (name == "--give-up")
      o.give_up = std::atof(text.c_str());
    else if (name == "--rank")
      o.rank = std::atoi(text.c_str());
    else if (name == "--record")
      o.record = text;
    else if (name == "--endpoint")
      o.endpoint = text;
    else if (name == "--token")
      o.tokens = split(text);
    else if (name == "--allocation")
      o.allocations = split(text);
    else
      return usage("unknown flag " + name);
  }
  if (count % 2 == 0)
    return usage("the last flag has no value");
  if (o.endpoint.empty() || o.tokens.empty() || o.allocations.empty() || o.senders < 1)
    return usage(
      "needs an endpoint, a token, an allocation and a sender; see the top of perf/ingest/sender.cpp");

  zmq::context_t context(1);
  std::deque<sender> senders;
  for (int i = 0; i < o.senders; ++i)
    senders.emplace_back(context, o, i);
  auto total = [&](auto get) {
    std::uint64_t sum = 0;
    for (auto& s : senders)
      sum += get(s);
    return sum;
  };
  auto acked = [&] { return total([](sender& s) { return s.acked(); }); };
  auto sent = [&] { return total([](sender& s) { return s.sent(); }); };
  auto fault = [&] {
    for (auto& s : senders)
      if (!s.fault().empty())
        return s.fault();
    return std::string();
  };

  const auto began = steady::now();
  const auto last_send =
    began + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(o.seconds));
  const auto last_wait =
    last_send + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(o.give_up));
  auto ended = began;
  std::uint64_t acked_in_time = 0;
  while (fault().empty()) {
    auto now = steady::now();
    bool sending = now < last_send;
    if (sending)
      acked_in_time = acked();
    else if (acked() == sent() || now > last_wait)
      break;
    int allowed = 0;
    if (sending)
      allowed = o.rate > 0 ? static_cast<int>(std::max(0.0, o.rate * seconds_between(began, now) -
                                                              static_cast<double>(sent())))
                           : o.senders * std::max(1024, 4 * o.batch); // the window is the bound
    std::vector<zmq::pollitem_t> items;
    for (auto& s : senders) {
      s.hear(now);
      s.act(now, std::min(allowed, (allowed + o.senders - 1) / o.senders));
      items.push_back({s.socket().handle(), 0, ZMQ_POLLIN, 0});
    }
    zmq::poll(items, o.rate > 0 && sending ? 2ms : 20ms);
    ended = steady::now();
  }

  std::vector<double> waits;
  for (auto& s : senders)
    waits.insert(waits.end(), s.waits().begin(), s.waits().end());
  std::sort(waits.begin(), waits.end());
  auto percentile = [&](double q) {
    return waits.empty() ? 0.0
                         : waits[std::min(waits.size() - 1,
                                          static_cast<std::size_t>(q * static_cast<double>(waits.size())))];
  };
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto cpu = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  nlohmann::json line{
    {"senders", o.senders},
    {"metrics", o.metrics},
    {"sent", sent()},
    {"acked", acked()},
    {"seconds", seconds_between(began, ended)},
    {"acked_per_s", static_cast<double>(acked_in_time) / o.seconds},
    {"ack_ms", {{"p50", percentile(0.5)}, {"p99", percentile(0.99)}, {"max", percentile(1)}}},
    {"sender_cpu_s", cpu(used.ru_utime) + cpu(used.ru_stime)}};
  if (auto why = fault(); !why.empty())
    line["fault"] = why;
  std::cout << line.dump() << std::endl;
  if (!o.record.empty()) {
    std::ofstream file(o.record);
    file << line.dump() << "\n";
    for (auto& s : senders)
      file << nlohmann::json{{"process", s.process()}, {"acked", s.acked()}, {"sent", s.sent()}}.dump()
           << "\n";
  }
  return fault().empty() && acked() == sent() ? 0 : 1;
}
