#pragma once
// Troupe inside another program: a whole cluster in this process, without a port and without a daemon.
//
//   auto node = troupe::node::open({.data_dir = "/var/lib/mine", .http = troupe::http_off, .cpu_slots = 2});
//   if (!node) { node.error().print(stderr); return 1; }
//   auto run = node->client().submit({.entrypoint = "python3 train.py", .context = "job", .hparams = {{"lr",
//   1e-3}}}); run->on_metric([](const troupe::metric& m) { std::printf("%lld %s=%g\n", m.step,
//   m.name.c_str(), m.value); }); return run->wait() == troupe::outcome::completed ? 0 : 1;
//
// What a host can rely on: no exception leaves these calls; no signal handler is installed; nothing is
// written to the standard output, and to the standard error only what no log sink takes; several nodes live
// in one process; no thread is left when stop() returns. This header includes neither CAF, Boost nor RocksDB.
// It cannot be used in one source file with <troupe/trial.hpp>, whose error and result are others.

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

// ---- what a host may put in place of ours; all are called from the node's threads and may throw, which is
// caught and logged

enum class log_level { info, warning, error };
using log_sink = std::function<void(log_level, std::string_view line)>;
/// Wall time, as facts carry it. Timeouts and leases go by the system's monotonic clock. Thread-safe and
/// quick.
using clock_source = std::function<std::chrono::system_clock::time_point()>;
struct measure {
  std::string name{}; ///< "experiments", "experiments_active", "facts", "actors", "messages_handled",
                      ///< "messages_waiting"
  double value = 0;
};
using metrics_sink = std::function<void(const std::vector<measure>&)>;

/// Where the master's journal lives.
enum class store_kind {
  disk,  ///< RocksDB in the data directory: what was acknowledged survives kill -9
  memory ///< nowhere: all is forgotten at stop()
};

/// How the REST API can be reached, besides node::http and troupe_call.
struct http_mode {
  std::string listen{}; ///< "HOST:PORT"; port 0: any free one; empty: no port
};
inline const http_mode http_off{};
/// A port of the node's own. Plain, so on loopback only.
inline http_mode http_on(std::string listen = "127.0.0.1:0") { return {std::move(listen)}; }

struct node_options {
  std::string data_dir{}; ///< made if missing; held by one node at a time
  /// Without a port, tasks speak over the task link alone, which the package `troupe` and troupe::trial do;
  /// scripts of Determined's own library need a port.
  http_mode http = http_off;
  int cpu_slots = 0;  ///< 0: the processors that this process may use
  std::string name{}; ///< name of the agent; empty: the host's name
  store_kind store = store_kind::disk;
  bool shared_rocksdb = false; ///< background threads are those of RocksDB's Env::Default(), and stay after
                               ///< stop(): for hosts that use it too
  std::string
    python{}; ///< folder of the tasks' python3; empty: $TROUPE_PYTHON_BIN, an active environment, PATH
  log_sink log{};
  clock_source clock{};
  metrics_sink metrics{};
  std::chrono::milliseconds metrics_period{10'000};
  bool web = true; ///< the web page, below /ui/ of the port and of node::http; false takes it out
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
  std::string context{};    ///< folder or file that trials start in, copied now; empty: none
  parameters hparams{};
  std::string metric = "loss"; ///< the validation metric that says which trial is best
  bool smaller_is_better = true;
  std::string name{};
  std::optional<int> slots{};        ///< slots of each trial; none: what `config` says, else 1
  std::optional<int> max_restarts{}; ///< none: what `config` says, else 5
  /// A whole experiment's configuration as YAML or JSON, for searches and all else. What is set above goes
  /// before it, except for what has its default there.
  std::string config{};
};

struct metric {
  long long step = 0;
  std::string name{};
  double value = 0; ///< numbers only; NaN and infinities as they were reported
  std::uint64_t trial = 0;
  bool validation = false;
};

enum class outcome { completed, failed, canceled };

struct best_trial {
  std::uint64_t trial = 0;
  double metric = 0;
  std::string hparams{};    ///< JSON
  std::string checkpoint{}; ///< folder of the checkpoint of its best validation, else of its newest one;
                            ///< empty where it has none
};

namespace detail {
struct node_inside;
struct run_inside;
} // namespace detail

/// A submitted experiment. Copies are the same run; any of them may outlive the node, whose calls then fail.
/// Thread-safe.
class run {
public:
  std::uint64_t id() const; ///< id of the experiment
  /// `fn` hears every metric of every trial, those reported before this call first, each once and in order
  /// within a trial, on the node's event thread; it must not wait there. What it throws is logged.
  void on_metric(std::function<void(const metric&)> fn) const;
  /// Blocks until it is over, or the node stops (then `failed`, as why() says). Whoever asked with on_metric
  /// before has heard everything by then. Not from a callback.
  outcome wait() const;
  std::optional<outcome> wait(std::chrono::milliseconds limit) const; ///< nothing where that was too short
  /// Ends it and kills its tasks; `gently` asks the scripts first to save and end, for as long as that takes.
  /// What was reported and saved stays. A repeat, or of one that is over, changes nothing.
  result<void> cancel(bool gently = false) const;
  result<void> pause() const;
  result<void> activate() const;
  result<best_trial> best() const; ///< not_found while no trial has validated
  std::string why() const;         ///< reason of a failure, for people; empty: none

private:
  friend class node;
  friend class node_client;
  explicit run(std::shared_ptr<detail::run_inside> x) : inside_(std::move(x)) {}
  std::shared_ptr<detail::run_inside> inside_;
};

class node_client {
public:
  /// Durable when it returns. errc::invalid names every fault of the configuration or the context.
  result<run> submit(const run_spec& spec) const;
  /// One that was submitted before, perhaps in an earlier life of the node.
  result<run> find(std::uint64_t id) const;

private:
  friend class node;
  explicit node_client(std::shared_ptr<detail::node_inside> x) : inside_(std::move(x)) {}
  std::shared_ptr<detail::node_inside> inside_;
};

// ---- HTTP by the host's own server

struct http_request {
  std::string method = "GET", target{},
              body{}; ///< "/api/v1/experiments?limit=2", without the host's own prefix
  std::vector<std::pair<std::string, std::string>> headers{};
};
struct http_response {
  unsigned status = 200;
  std::string content_type{}, body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// ---- the node

enum class stop_mode {
  drain, ///< takes its time until no experiment is active, then as `now`
  now    ///< tasks end; what was not over goes on at the next open() of the same data directory
};

class node {
public:
  /// Opens or recovers; the agent joins while this returns. Fails with a hint, and then leaves nothing
  /// running.
  static result<node> open(const node_options& options);
  node(node&&) noexcept;
  node& operator=(node&&) noexcept;
  ~node(); ///< does stop(stop_mode::now)

  /// Until work given to it would start.
  result<void> ready(std::chrono::milliseconds limit);
  /// errc::timeout where `drain` met the limit; the node has stopped all the same. A second call changes
  /// nothing. Not from a callback.
  result<void> stop(stop_mode how = stop_mode::now,
                    std::chrono::milliseconds limit = std::chrono::seconds(10));

  node_client client() const;
  std::string url() const; ///< empty without a port
  std::vector<measure> measures() const;

  /// Answers a request of the REST API, from any thread, and blocks for it (some routes are held for long).
  /// The request's own token says who asks. A stream is given to `piece` as it comes, until that returns
  /// false, the stream or the node ends; without `piece` the body holds what there is now.
  http_response http(const http_request& request,
                     const std::function<bool(std::string_view)>& piece = {}) const;
  /// As `http`, for requests of the host itself: they act as the user admin.
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
