#pragma once
// The layer between the public headers and the node. It uses types of neither, because both have the names
// troupe::node and troupe::error: its users may include one of them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caf {
class actor_system;
class actor_system_config;
} // namespace caf

namespace troupe::embedding {

using std::chrono::milliseconds;
using named_numbers = std::vector<std::pair<std::string, double>>;
using header_list = std::vector<std::pair<std::string, std::string>>;

/// The codes are those of model/result.hpp and of <troupe/result.hpp>, by name. An empty code means no fault.
struct fault {
  std::string code, message, hint;
  explicit operator bool() const { return !code.empty(); }
};

struct settings {
  std::string data_dir, listen, name, python; ///< an empty `listen` means no port
  int cpu_slots = 0;
  bool web = true; ///< whether the web page is served below /ui/
  bool in_memory = false, shared_rocksdb = false;
  caf::actor_system* actors = nullptr;
  std::function<void(int level, std::string_view)> log; ///< level: 0 info, 1 warning, 2 error; never throws
  std::function<std::chrono::system_clock::time_point()> clock;
  std::function<void(const named_numbers&)> metrics; ///< never throws
  milliseconds metrics_period{10'000};
};

struct submission {
  std::string config, config_name; ///< the text, and its name in diagnostics
  std::string context;             ///< folder or file; empty: none
  std::string key;
};

struct reported {
  long long step = 0;
  std::string name;
  double value = 0;
  std::uint64_t trial = 0;
  bool validation = false;
};

enum class ending { open, completed, failed, canceled };

struct best {
  std::uint64_t trial = 0;
  double metric = 0;
  std::string hparams, checkpoint;
};

struct answer {
  unsigned status = 0;
  std::string type, body;
  header_list headers;
};

/// A node, and one thread that tells its host what happens. Thread-safe. After stop() every call fails with
/// `unreachable`.
class engine {
public:
  static std::unique_ptr<engine> open(settings how, fault& why);
  ~engine();

  fault ready(milliseconds limit);
  fault stop(bool drain, milliseconds limit);
  bool stopped() const;

  std::uint64_t submit(const submission& what, fault& why);
  fault known(std::uint64_t experiment) const;
  fault cancel(std::uint64_t experiment);
  fault kill(std::uint64_t experiment);
  fault pause(std::uint64_t experiment);
  fault activate(std::uint64_t experiment);
  fault best_of(std::uint64_t experiment, best& out) const;
  /// `fn` never throws. Called on the event thread.
  void on_metric(std::uint64_t experiment, std::function<void(const reported&)> fn);
  /// Like on_metric, for all experiments, from now on.
  void on_every_metric(std::function<void(std::uint64_t experiment, const reported&)> fn);
  ending wait(std::uint64_t experiment, std::optional<milliseconds> limit, std::string& why);

  /// Calls `fn` with facts from now on, each as one JSON object, on the event thread. `fn` never throws.
  void on_fact(std::function<void(std::uint64_t sequence, const std::string& entity, const std::string& type,
                                  const std::string& json)>
                 fn);

  /// `as_host` acts as the user admin, without a token.
  answer http(const std::string& method, const std::string& target, const header_list& headers,
              std::string body, bool as_host, const std::function<bool(std::string_view)>& piece);

  /// Runs a command of model/commands/table.hpp by its name, as the user admin. `fields` is msgpack; empty:
  /// none. The status is that of HTTP, the body is JSON.
  answer command(const std::string& name, std::string_view fields);
  /// Whether `command` accepts this name: hosts may not send what tasks, agents and the node itself send.
  static bool takes_command(std::string_view name);

  /// Writes to the log of settings::log what is reported outside of the engine.
  void log(int level, std::string_view line) const;

  std::string url() const;
  named_numbers measures() const;
  caf::actor_system* actors() const; ///< null once the node has stopped
  bool owns_actors() const;

private:
  template <class Order>
  fault order(std::uint64_t experiment);
  class inside;
  engine();
  std::unique_ptr<inside> inside_;
};

/// The configuration of a submission is made from these; `more` is the user's own text, YAML or JSON.
struct parts {
  std::string entrypoint, metric, name, hparams_json; ///< empty: not given
  bool smaller_is_better = true;
  std::optional<int> slots, max_restarts; ///< none: the value in `more`, or the configuration's default
  std::string more;
};
std::string config_of(const parts& from, fault& why);

/// Makes the tar of a folder or file.
std::string pack(const std::string& context, fault& why);

void add_messages(caf::actor_system_config& to);

} // namespace troupe::embedding
