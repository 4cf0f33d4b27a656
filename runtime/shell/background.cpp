#include "runtime/shell/background.hpp"
#include "model/back_off.hpp"
#include "runtime/cli/output.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::shell {
namespace {

constexpr std::chrono::seconds fresh_for{3};
constexpr std::chrono::seconds least_quiet{1}; ///< between two times that lines are printed above the prompt
constexpr std::chrono::milliseconds first_retry{1000}, last_retry{15'000};

std::string text(const value& x) { return x.is_string() ? x.get<std::string>() : ""; }

bool wait_unless(const std::atomic<bool>& stop, std::chrono::milliseconds time) {
  for (auto until = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < until;) {
    if (stop)
      return false;
    ::poll(nullptr, 0, 50);
  }
  return !stop;
}

} // namespace

event_feed::event_feed(client::server_address where, client::server_options options, std::string own_user)
    : api_(where, std::move(options), &stop_), where_(where.url), own_user_(std::move(own_user)),
      fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { run(); }) {}

event_feed::~event_feed() {
  stop_ = true;
  thread_.join();
  ::close(fd_);
}

void event_feed::wake() {
  std::uint64_t one = 1;
  static_cast<void>(!::write(fd_, &one, sizeof one));
}

event_feed::news event_feed::take() {
  std::uint64_t ignored = 0;
  static_cast<void>(!::read(fd_, &ignored, sizeof ignored));
  std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void event_feed::run() {
  int failures = 0;
  bool lost = false, due = false;
  auto woken = std::chrono::steady_clock::now() - least_quiet;
  auto wake_in_time = [&] { // a busy cluster must not take the screen from the user who types
    if (auto now = std::chrono::steady_clock::now(); due && now - woken >= least_quiet) {
      due = false;
      woken = now;
      wake();
    }
  };
  while (!stop_) {
    auto stream = api_.stream(route("events"), {{"follow", "true"}});
    for (bool open = true; open && !stop_;) {
      auto got = stream.read(std::chrono::milliseconds(100));
      std::lock_guard lock(mutex_);
      wake_in_time();
      if (!got || stream.ended()) {
        open = false;
        auto code = got ? errc::unreachable : got.error().code;
        if (code == errc::denied || code == errc::unauthorized || code == errc::not_found)
          return; // asking again does not help; commands will report why
        if (!std::exchange(lost, true)) {
          waiting_.link = "the connection to " + where_ + " is lost; trying again";
          wake();
        }
        continue;
      }
      if (stream.open() && std::exchange(lost, false)) {
        waiting_.link = "the connection to " + where_ + " is back";
        failures = 0;
        wake();
      }
      for (auto& event : *got) {
        if (event.what == stream_event::kind::lost)
          waiting_.dropped += static_cast<std::size_t>(number_in(cli::part(event.data, "count")).value_or(1));
        if (event.what != stream_event::kind::row)
          continue;
        if (cli::part(event.data, "kind") == "audit" && !own_user_.empty() &&
            cli::part(event.data, "user") == own_user_)
          continue;
        if (waiting_.rows.size() < most_waiting)
          waiting_.rows.push_back(std::move(event.data));
        else
          ++waiting_.dropped;
        due = true;
      }
      wake_in_time();
    }
    api_.find_again();
    wait_unless(stop_, back_off(++failures, first_retry, last_retry));
  }
}

name_cache::name_cache(client::server_address where, client::server_options options)
    : api_(std::move(where), std::move(options), &stop_), thread_([this] { run(); }) {}

name_cache::~name_cache() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

live_names name_cache::get(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (std::chrono::steady_clock::now() - read_at_ > fresh_for) {
    wanted_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [this] { return !wanted_ && loaded_; });
  }
  return names_;
}

void name_cache::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return wanted_ || stop_; });
      if (stop_)
        return;
    }
    live_names fresh;
    auto take = [](const result<value>& got, const auto& each) {
      if (got)
        if (const auto& rows = cli::part(*got, "rows"); rows.is_array())
          for (const auto& row : rows)
            each(row);
      return static_cast<bool>(got);
    };
    auto listed = api_.get(route("ps"), {{"window", "0"}});
    if (!listed && listed.error().code == errc::invalid)
      listed = api_.get(route("ps"));
    bool ok = take(listed, [&](const value& row) { fresh.actors.push_back(text(cli::part(row, "actor"))); });
    ok = take(api_.get(route("nodes")),
              [&](const value& row) { fresh.nodes.push_back(text(cli::part(row, "node"))); }) &&
         ok;
    ok = take(api_.get(route("messages")),
              [&](const value& row) {
                message_fields m{text(cli::part(row, "name")), {}, {}};
                for (const auto& kind : cli::part(row, "kinds"))
                  m.kinds.push_back(text(kind));
                for (const auto& field : cli::part(row, "fields"))
                  m.fields.push_back(text(cli::part(field, "name")));
                fresh.messages.push_back(std::move(m));
              }) &&
         ok;
    std::sort(fresh.actors.begin(), fresh.actors.end());
    std::lock_guard lock(mutex_);
    if (ok || !loaded_)
      names_ = std::move(fresh);
    wanted_ = false;
    loaded_ = true;
    read_at_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
}

} // namespace troupe::shell
