#pragma once
// A host command that reads what a command of ours prints.

#include "model/result.hpp"

#include <map>
#include <memory>
#include <ostream>
#include <string>

namespace troupe::shell {

class host_pipe {
public:
  /// Starts /bin/sh -c `command` with `more` added to its environment; what it prints goes to this process's
  /// standard output, or, with `capture`, is kept (at most 16 MB).
  static result<std::unique_ptr<host_pipe>>
  start(const std::string& command, const std::map<std::string, std::string>& more, bool capture);
  ~host_pipe();

  /// Standard input of the command; bad once the command has closed it.
  std::ostream& in();
  /// Closes its input and waits for its end; its exit code, 128 + N after signal N.
  int finish();
  const std::string& captured() const; ///< valid after `finish`

private:
  host_pipe();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::shell
