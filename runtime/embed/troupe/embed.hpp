#pragma once
// Troupe inside another program: a whole cluster in this process, without a port and without a daemon.
//
//   auto node = troupe::node::open({.data_dir = "/var/lib/mine", .http = troupe::http_off, .cpu_slots = 2});
//   if (!node) { node.error().print(stderr); return 1; }
//   auto run = node->client().submit(
//     {.entrypoint = "python3 train.py", .context = "job", .hparams = {{"lr", 1e-3}}});
//   run->on_metric([](const troupe::metric& m) {
//     std::printf("%lld %s=%g\n", m.step, m.name.c_str(), m.value);
//   });
//   return run->wait() == troupe::outcome::completed ? 0 : 1;
//
// What a host can rely on: no exception leaves these calls; no signal handler is installed; nothing is
// written to the standard output, and only what no log sink accepts to the standard error; several nodes can
// live in one process; no thread is left when stop() returns. This header includes neither CAF, Boost nor
// RocksDB. One source file cannot include both this header and <troupe/trial.hpp>, which has its own error
// and result.

#include "troupe/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {
inline namespace v0 {

// ---- what a host may replace; the node's threads call all of these, and catch and log what they throw

enum class log_level { info, warning, error };
using log_sink = std::function<void(log_level, std::string_view line)>;
/// Wall time for facts. Timeouts and leases use the system's monotonic clock. Must be thread-safe and fast.
using clock_source = std::function<std::chrono::system_clock::time_point()>;
struct measure {
  std::string name{}; ///< "experiments", "experiments_active", "facts", "actors", "messages_handled",
                      ///< "messages_waiting"
  double value = 0;
};
using metrics_sink = std::function<void(const std::vector<measure>&)>;

/// Where the master's journal is kept.
enum class store_kind {
  disk,  ///< RocksDB in the data directory: acknowledged writes survive kill -9
  memory ///< in memory only: everything is forgotten at stop()
};

/// How the REST API can be reached, besides node::http and troupe_call.
struct http_mode {
  std::string listen{}; ///< "HOST:PORT"; port 0: any free one; empty: no port
};
inline const http_mode http_off{};
/// A port of the node itself, without TLS and so only on loopback.
inline http_mode http_on(std::string listen = "127.0.0.1:0") { return {std::move(listen)}; }

struct node_options {
  std::string data_dir{}; ///< made where it is missing; only one node at a time holds it
  /// Without a port, tasks use only the task link, as the package `troupe` and troupe::trial do; scripts of
  /// Determined's own library need a port.
  http_mode http = http_off;
  int cpu_slots = 0;  ///< 0: the processors that this process may use
  std::string name{}; ///< name of the agent; empty: the host's name
  store_kind store = store_kind::disk;
  bool shared_rocksdb = false; ///< background threads are those of RocksDB's Env::Default() and stay after
                               ///< stop(): for hosts that use it too
  std::string
    python{}; ///< folder of the tasks' python3; empty: $TROUPE_PYTHON_BIN, an active environment, PATH
  log_sink log{};
  clock_source clock{};
  metrics_sink metrics{};
  std::chrono::milliseconds metrics_period{10'000};
  bool web = true; ///< whether the web page is served below /ui/ of the port and of node::http
};

// ---- runs

/// A hyperparameter's value, or a range of a search as JSON text (`json`).
class parameter {
public:
  struct json {
    std::string text;
  };
  parameter(double x) : held_(x) {}
  parameter(int x) : held_(std::int64_t{x}) {}
  parameter(long x) : held_(std::int64_t{x}) {}
  parameter(long long x) : held_(static_cast<std::int64_t>(x)) {}
  parameter(unsigned x) : held_(std::int64_t{x}) {}
  parameter(bool x) : held_(x) {}
  parameter(std::string x) : held_(std::move(x)) {}
  parameter(const char* x) : held_(std::string(x)) {}
  parameter(json x) : held_(std::move(x)) {}
  const std::variant<double, std::int64_t, bool, std::string, json>& held() const { return held_; }

private:
  std::variant<double, std::int64_t, bool, std::string, json> held_;
};
using parameters = std::vector<std::pair<std::string, parameter>>;

struct run_spec {
  std::string entrypoint{}; ///< the command of each trial
  std::string context{};    ///< folder or file that trials start in, copied by submit(); empty: none
  parameters hparams{};
  std::string metric = "loss"; ///< the validation metric that decides which trial is best
  bool smaller_is_better = true;
  std::string name{};
  std::optional<int> slots{};        ///< slots of each trial; none: as `config` says, otherwise 1
  std::optional<int> max_restarts{}; ///< none: as `config` says, otherwise 5
  /// The configuration of a whole experiment as YAML or JSON, for searches and all other settings. The fields
  /// above win where they are set to something else than their defaults.
  std::string config{};
};

struct metric {
  long long step = 0;
  std::string name{};
  double value = 0; ///< only numbers are told; NaN and infinities as reported
  std::uint64_t trial = 0;
  bool validation = false;
};

enum class outcome { completed, failed, canceled };

struct best_trial {
  std::uint64_t trial = 0;
  double metric = 0;
  std::string hparams{};    ///< JSON
  std::string checkpoint{}; ///< folder of the checkpoint of its best validation, otherwise of its newest
                            ///< checkpoint; empty: none
};

namespace detail {
struct node_inside;
struct run_inside;
} // namespace detail

/// A submitted experiment. Copies are the same run. They may outlive the node; their calls then fail.
/// Thread-safe.
class run {
public:
  std::uint64_t id() const; ///< id of the experiment
  /// Calls `fn` with every metric of every trial, those reported before this call first, each once and in
  /// order within a trial. It runs on the node's event thread and must not wait there. What it throws is
  /// logged.
  void on_metric(std::function<void(const metric&)> fn) const;
  /// Blocks until the run is over, or the node stops (then `failed`, as why() says). Earlier on_metric
  /// callbacks have then heard everything. Not to be called from a callback.
  outcome wait() const;
  std::optional<outcome> wait(std::chrono::milliseconds limit) const; ///< nothing where that was too short
  /// Ends the run and kills its tasks; `gently` first asks the scripts to save and end, for as long as that
  /// takes. What was reported and saved stays. Does nothing for a run that is over, or at a repeat.
  result<void> cancel(bool gently = false) const;
  result<void> pause() const;
  result<void> activate() const;
  result<best_trial> best() const; ///< fails with not_found while no trial has validated
  std::string why() const;         ///< reason of a failure, for people; empty: none

private:
  friend class node;
  friend class node_client;
  explicit run(std::shared_ptr<detail::run_inside> x) : inside_(std::move(x)) {}
  std::shared_ptr<detail::run_inside> inside_;
};

class node_client {
public:
  /// The submission is durable when it returns. errc::invalid names every fault of the configuration or the
  /// context.
  result<run> submit(const run_spec& spec) const;
  /// Finds a run that was submitted before, perhaps before the node was last opened.
  result<run> find(std::uint64_t id) const;

private:
  friend class node;
  explicit node_client(std::shared_ptr<detail::node_inside> x) : inside_(std::move(x)) {}
  std::shared_ptr<detail::node_inside> inside_;
};

// ---- HTTP by the host's own server

struct http_request {
  std::string method = "GET", target{},
              body{}; ///< "/api/v1/experiments?limit=2"; lacks the host's own prefix
  std::vector<std::pair<std::string, std::string>> headers{};
};
struct http_response {
  unsigned status = 200;
  std::string content_type{}, body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// ---- the node

enum class stop_mode {
  drain, ///< waits until no experiment is active, then does as `now`
  now    ///< ends tasks; unfinished runs go on at the next open() of the same data directory
};

class node {
public:
  /// Opens or recovers; the agent joins while this returns. An error has a hint, and leaves nothing running.
  static result<node> open(const node_options& options);
  node(node&&) noexcept;
  node& operator=(node&&) noexcept;
  ~node(); ///< calls stop(stop_mode::now)

  /// Waits until work that is given to the node would start.
  result<void> ready(std::chrono::milliseconds limit);
  /// Fails with errc::timeout where `drain` met the limit; the node has stopped nevertheless. A second call
  /// changes nothing. Not to be called from a callback.
  result<void> stop(stop_mode how = stop_mode::now,
                    std::chrono::milliseconds limit = std::chrono::seconds(10));

  node_client client() const;
  std::string url() const; ///< empty where there is no port
  std::vector<measure> measures() const;

  /// Answers a request of the REST API, from any thread, and blocks meanwhile (some routes wait long). The
  /// request's own token names the caller. `piece` gets a stream as it comes, until it returns false or the
  /// stream or the node ends; without `piece` the body holds what exists now.
  http_response http(const http_request& request,
                     const std::function<bool(std::string_view)>& piece = {}) const;
  /// Does the same for requests of the host itself: they act as the user admin.
  http_response call(const http_request& request) const;

  detail::node_inside* inside() const { return inside_.get(); } ///< for embed_caf.hpp

private:
  explicit node(std::shared_ptr<detail::node_inside> x) : inside_(std::move(x)) {}
  static result<node> open_in(void* actors, const node_options& options);
  friend struct caf_door;
  std::shared_ptr<detail::node_inside> inside_;
};

} // namespace v0
} // namespace troupe
