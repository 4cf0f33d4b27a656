#pragma once
// A command of the host that reads the output of a shell command.

#include "model/result.hpp"

#include <map>
#include <memory>
#include <ostream>
#include <string>

namespace troupe::shell {

class host_pipe {
public:
  /// Starts /bin/sh -c `command` with `more` added to its environment. Its output goes to this process's
  /// standard output, or is kept with `capture` (at most 16 MB).
  static result<std::unique_ptr<host_pipe>>
  start(const std::string& command, const std::map<std::string, std::string>& more, bool capture);
  ~host_pipe();

  /// The command's standard input; its state is bad once the command has closed it.
  std::ostream& in();
  /// Closes the command's input and waits for its end. Returns its exit code, or 128 + N after signal N.
  int finish();
  const std::string& captured() const; ///< valid after `finish`

private:
  host_pipe();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::shell
