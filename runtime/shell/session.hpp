#pragma once
// One session of the shell: its cluster, its mode, its variables, and the statements that run in it.

#include "runtime/cli/session.hpp"
#include "runtime/shell/answer.hpp"
#include "runtime/shell/api.hpp"
#include "runtime/shell/command.hpp"
#include "runtime/shell/line.hpp"

#include <iosfwd>

namespace troupe::shell {

/// How a command ended: with an answer to show, with a fault to report, or with neither where it has shown
/// everything itself.
struct outcome {
  outcome() = default;
  outcome(answer a) : what(std::move(a)) {}
  outcome(error why) : fault(std::move(why)) {}
  outcome(int code) : code(code) {}

  answer what;
  std::optional<error> fault;
  int code = 0; ///< exit code of a verb of `troupe` that has reported its fault itself
};

struct variable {
  value what;
  std::string id; ///< name in the first row
};

class session {
public:
  using clock = std::chrono::steady_clock;

  /// `troupe` verbs run with `node`. Both `node` and `io` must outlive this session. Ctrl-C sets
  /// `interrupted`.
  session(const cli::hooks& node, cli::console& io, std::atomic<bool>& interrupted);

  // ---- the cluster
  /// "" means the cluster that is found. Connects only at the first call.
  result<void> attach(const std::string& where);
  result<api*> cluster();
  result<value> get(const std::string& name,
                    const client::query& with = {}); ///< calls one of the shell's routes
  result<value> post(const std::string& name, const value& body);
  std::string url() const;

  // ---- running
  /// Runs a complete text of one or more statements. The first that fails gives the exit code; later ones are
  /// not run. Prints faults on standard error, with `place` ("file:3: ") before them. Clear `interrupted`
  /// before the call.
  int run(std::string_view text, const std::string& place = "");
  int run_file(const std::string& path, bool keep_going);
  int run_stream(std::istream& in, const std::string& name, bool keep_going);
  int run_statement(const statement& s);
  /// Prints a fault; returns its exit code.
  int fail(const error& why);
  bool quitting() const { return quitting_; }
  void quit() { quitting_ = true; }
  bool interrupted() const { return interrupted_.load(); }
  std::atomic<bool>& interrupt_flag() { return interrupted_; }
  /// Waits at most this long; returns false at once after Ctrl-C.
  bool pause(std::chrono::milliseconds time) const;

  // ---- what commands need
  cli::console& io() { return io_; }
  std::ostream& out() { return *out_; } ///< the terminal, a file or a host command
  bool to_screen() const { return out_ == &io_.out; }
  look how() const; ///< of the running command
  void set_own_format(const std::string& name);
  cli::output_format format() const { return format_; }
  void set_format(cli::output_format f) { format_ = f; }
  /// Rows of a stream are shown at once, or kept where a filter or `let` takes them (at most 10,000; then
  /// false).
  void begin_rows(std::vector<cli::column> columns);
  bool take_row(const value& row);
  outcome end_rows();
  void note(const std::string& text); ///< prints a line on standard error

  /// The connection for changes, where another user makes them; null: the same connection.
  void set_operator(std::unique_ptr<api> who) { operator_ = std::move(who); }
  bool may_write() const { return clock::now() < writable_until_; }
  void set_writable(std::chrono::minutes time) {
    writable_until_ = time.count() ? clock::now() + time : clock::time_point{};
  }
  const std::string& actor_scope() const { return actor_; }
  const std::string& node_scope() const { return node_; }
  void set_scope(std::string actor, std::string node) { actor_ = std::move(actor), node_ = std::move(node); }
  const std::map<std::string, variable>& variables() const { return variables_; }
  std::string prompt() const;
  bool interactive = false;
  std::function<bool(const std::string& question)>
    confirm; ///< asks the user at the terminal; empty: there is none

private:
  int run_here(std::string_view text);
  int run_pipeline(const std::vector<word>& words, const statement& s);
  int finish_pipeline(outcome got, const std::vector<std::vector<std::string>>& filters);
  outcome evaluate(std::vector<std::string> words, std::vector<bool> quoted);
  outcome run_command(const command& c, const std::vector<std::string>& words,
                      const std::vector<bool>& quoted);
  outcome run_verb(const std::vector<std::string>& words);
  int run_let(const statement& s);
  int run_watch(const statement& s);
  int run_repeat(const statement& s);
  int run_script(std::istream& in, const std::string& name, bool keep_going);
  result<std::string> text_of(const std::string& name) const;
  lookup variables_as_text() const;
  void remember(const answer& a);

  const cli::hooks& node_hooks_;
  cli::console& io_;
  std::atomic<bool>& interrupted_;
  std::string attach_;
  std::unique_ptr<api> api_, operator_;
  cli::output_format format_ = cli::output_format::table;
  std::optional<cli::output_format> own_format_; ///< format of the running command only
  clock::time_point writable_until_{};
  std::string actor_, node_;
  std::map<std::string, variable> variables_;
  std::ostream* out_;
  std::istream* in_; ///< verbs read it as standard input
  answer rows_;      ///< rows of the running stream
  std::size_t row_count_ = 0;
  bool collecting_ = false; ///< whether rows and the output of verbs are kept and not shown
  bool capturing_ = false;  ///< whether `let` takes the answer
  bool quitting_ = false;
  int depth_ = 0;     ///< depth of nested `source` commands
  std::string place_; ///< FILE:LINE of the running line
  answer captured_;
};

/// Words that begin a command of the shell or a verb of `troupe`.
std::vector<std::string> first_words();
/// Whether a verb of `troupe` changes something, and so needs :rw.
bool verb_acts(std::string_view path);

} // namespace troupe::shell
