#pragma once
// One invocation: where it reads and writes, the server it talks to, and how it ends.

#include "runtime/cli/arguments.hpp"
#include "runtime/cli/exit_codes.hpp"
#include "runtime/cli/hooks.hpp"
#include "runtime/cli/output.hpp"
#include "runtime/cli/selection.hpp"
#include "runtime/client/server.hpp"

#include <iosfwd>
#include <memory>

namespace troupe::cli {

int exit_of(errc code);
/// For verbs that live in the node: prints the error as `session::fail` does, without colour, and returns its
/// exit code.
int exit_after(const error& why);
/// The exit code for an experiment that ended: "COMPLETED", "STATE_ERROR", ...
int exit_of_state(std::string_view state);
std::string exit_codes_text();

struct console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  terminal screen; ///< terminal behind `out`
  terminal err_screen;
  int out_fd = -1; ///< terminal whose size is read again; -1: never
  std::function<time_point()> now;
  client::environment env;
};

struct session {
  const hooks& node;
  console& io;
  const arguments& given;
  bool only_reads = false; ///< whether the verb changes nothing: a data directory without a node will do
  std::shared_ptr<void> own_node = {}; ///< node that was opened for this invocation
  std::unique_ptr<client::server> cluster = {};

  result<client::server_address> open_here(const error& otherwise);
  /// The cluster that --master, the environment or a data directory names. Does not connect.
  result<client::server*> server();
  /// Prints "error: ..." and a hint on standard error; returns the exit code of its kind.
  int fail(const error& why);
  int print(const result<std::string>& text);
  output_options output() const;
  /// The rows of a list that --where and --sort choose. Fails with errc::invalid.
  result<value> chosen(value rows, const grid& of) const;
};

/// "error: what" with "hint: ..." below it, for standard error.
std::string error_text(const error& why, const terminal& screen);

} // namespace troupe::cli
