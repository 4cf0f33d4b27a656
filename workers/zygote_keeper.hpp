#pragma once
// Warmed Python parents (zygotes), one for each interpreter and environment; a trial's process is forked from
// one, so that it costs milliseconds and not the import of its libraries. The parent is
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
  std::chrono::milliseconds idle{10 * 60'000}; ///< then it is dropped
  std::chrono::milliseconds warm_up{120'000};  ///< a longer one has failed
  std::chrono::milliseconds answer{5'000};     ///< a warm one that is silent for so long hangs, and is killed
  std::chrono::milliseconds off{10 * 60'000};  ///< pause after a failed warm-up, for its context
  std::size_t most = 4;                        ///< the one that was not used for the longest time goes first
};

/// What a zygote must have in common with a trial, and what it reads to warm up.
struct zygote_order {
  std::string program;          ///< the interpreter's executable
  std::string name;             ///< argv[0] of the interpreter
  std::vector<std::string> env; ///< environment of the trial; the task's own variables do not count
  std::string context;          ///< which files: the same name, the same files
  std::string script;           ///< path in the working directory
  owned_fd folder;              ///< the working directory, as the host sees it
};

/// The variables that a zygote is started with and known by: all but the task's own. Sorted.
std::vector<std::string> shared_variables(const std::vector<std::string>& env);

/// Which zygotes may serve it: the interpreter and its environment, as text.
std::string zygote_key(const zygote_order& order);

/// Safe from any thread. Its zygotes end with it, and with its process.
class zygote_keeper {
public:
  static result<std::unique_ptr<zygote_keeper>> start(zygote_options options);
  ~zygote_keeper();

  /// A connection for process_runtime::launch(): through it the sandbox asks a zygote that fits, which is
  /// started where there is none. Returns at once; why none will serve is told through the connection too.
  result<owned_fd> attach(zygote_order order);

  /// The installed modules, one name a line, that a trial of this key had imported at its end. They are warm
  /// for those that come later; at most 600 for a key are kept, while this keeper lives. One whose import
  /// cannot be forked ends the learning for its key.
  void learn(const std::string& key, const std::string& modules);

private:
  class inside;
  explicit zygote_keeper(std::unique_ptr<inside> i);
  std::unique_ptr<inside> inside_;
};

} // namespace troupe::workers
