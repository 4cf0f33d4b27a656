#pragma once
// `-d`: the program goes on in the background, and the command ends once it serves or has failed.

#include "model/result.hpp"
#include "workers/owned_fd.hpp"

#include <filesystem>
#include <string>

namespace troupe::launch {

/// How the background process tells the waiting command; does nothing where there is none.
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
  int exit_code = 0;    ///< exit code of the parent
  daemon_notice notice; ///< notice of the child
};

/// Must be called before any thread is made. The child has a session of its own and writes to `log`; the
/// parent returns once the child is ready or has failed, having printed what the child printed until then.
result<forked> become_daemon(const std::filesystem::path& log);

} // namespace troupe::launch
