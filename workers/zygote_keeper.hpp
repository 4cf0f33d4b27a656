#pragma once
// Warmed Python parents (zygotes), one for each interpreter and environment. A trial's process is forked from
// one, so that its start takes milliseconds and skips the import of its libraries. The parent is
// workers/python/troupe/_zygote/.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::workers {

struct zygote_options {
  std::filesystem::path library;               ///< libtroupe-zygote.so
  std::filesystem::path hook;                  ///< folder of the zygote's sitecustomize.py
  std::string owner;                           ///< shown by `ps`
  std::chrono::milliseconds idle{10 * 60'000}; ///< an unused zygote is dropped after this time
  std::chrono::milliseconds warm_up{120'000};  ///< a warm-up that takes longer has failed
  std::chrono::milliseconds answer{5'000};     ///< a warm one that is silent for so long hangs, and is killed
  std::chrono::milliseconds off{10 * 60'000};  ///< pause of a context after a failed warm-up
  std::size_t most = 4; ///< limit of zygotes; the one that was unused for the longest time is dropped first
};

/// What a zygote must have in common with a trial, and what it reads to warm up.
struct zygote_order {
  std::string program;          ///< the interpreter's executable
  std::string name;             ///< argv[0] of the interpreter
  std::vector<std::string> env; ///< environment of the trial; the task's own variables do not count
  std::string context;          ///< names the trial's files: the same name means the same files
  std::string script;           ///< path in the working directory
  owned_fd folder;              ///< the working directory, as the host sees it
};

/// The variables that a zygote is started with and known by: all except the task's own. Sorted.
std::vector<std::string> shared_variables(const std::vector<std::string>& env);

/// Names the zygotes that may serve the order, by interpreter and environment.
std::string zygote_key(const zygote_order& order);

/// Safe from any thread. The zygotes end with this object, and with its process.
class zygote_keeper {
public:
  static result<std::unique_ptr<zygote_keeper>> start(zygote_options options);
  ~zygote_keeper();

  /// Makes a connection for process_runtime::launch(). Through it the sandbox asks a zygote that fits; one is
  /// started where there is none. Returns at once; if no zygote will serve, the connection says why.
  result<owned_fd> attach(zygote_order order);

  /// Notes the installed modules, one name a line, that a trial of this key had imported at its end. Zygotes
  /// import them for later trials; at most 600 for a key are kept, while this keeper lives. A module whose
  /// import cannot be forked ends the learning for its key.
  void learn(const std::string& key, const std::string& modules);

private:
  class inside;
  explicit zygote_keeper(std::unique_ptr<inside> i);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::workers
