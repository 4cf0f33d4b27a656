#pragma once
// `-d` lets the program go on in the background; the command ends once the program serves or has failed.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <filesystem>
#include <string>

namespace troupe::launch {

/// How the background process informs the waiting command; does nothing where no command waits.
class daemon_notice {
public:
  daemon_notice() = default;
  explicit daemon_notice(workers::owned_fd pipe) : pipe_(std::move(pipe)) {}
  void ready(const std::string& greeting);
  void failed(const error& why);

private:
  workers::owned_fd pipe_;
};

struct forked {
  bool parent = false;
  int exit_code = 0;    ///< for the parent
  daemon_notice notice; ///< for the child
};

/// Must be called before any thread is made. The child has its own session and writes to `log`. The parent
/// returns once the child is ready or has failed, and has then printed what the child told it.
result<forked> become_daemon(const std::filesystem::path& log);

} // namespace troupe::launch
