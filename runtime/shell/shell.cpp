#include "runtime/shell/shell.hpp"
#include "runtime/shell/background.hpp"
#include "runtime/shell/history.hpp"
#include "runtime/shell/line_editor.hpp"
#include "runtime/shell/session.hpp"

#include <csignal>
#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace troupe::shell {
namespace {

using cli::part;

std::atomic<bool> interrupted{false}, ended{false}, resized{false}; // signal handlers set these
static_assert(std::atomic<bool>::is_always_lock_free);

/// Ctrl-C ends what runs. If that has no effect, the second Ctrl-C ends the process as usual.
void on_interrupt(int number) {
  if (interrupted.exchange(true)) {
    std::signal(number, SIG_DFL);
    ::raise(number);
  }
}

void on_end(int) { ended = interrupted = true; }

class signal_watch {
public:
  explicit signal_watch(bool interactive) {
    interrupted = ended = resized = false;
    set(SIGINT, on_interrupt);
    set(SIGPIPE, SIG_IGN); // writing to a host command or reader that has gone then fails with an error
    if (interactive) {     // these end a script like any other program
      set(SIGTERM, on_end);
      set(SIGHUP, on_end);
      set(SIGWINCH, [](int) { resized = true; });
    }
  }
  ~signal_watch() {
    for (const auto& [number, before] : before_)
      ::sigaction(number, &before, nullptr);
  }
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

private:
  void set(int number, void (*handler)(int)) {
    struct sigaction act {
    }, before{};
    act.sa_handler = handler;
    ::sigaction(number, &act, &before);
    before_.emplace_back(number, before);
  }
  std::vector<std::pair<int, struct sigaction>> before_;
};

cli::output_format format_of(const std::string& name) {
  return name == "json"   ? cli::output_format::json
         : name == "csv"  ? cli::output_format::csv
         : name == "yaml" ? cli::output_format::yaml
                          : cli::output_format::table;
}

std::string text(const value& x) { return x.is_string() ? x.get<std::string>() : ""; }

/// The first line of an interactive session; fails where no cluster answers.
result<std::string> greeting(session& s, const std::string& version, std::string& user) {
  auto got = s.get("nodes");
  if (!got)
    return got.error();
  double slots = 0, actors = 0;
  std::size_t nodes = 0;
  for (const auto& row : part(*got, "rows")) {
    ++nodes;
    slots += number_in(part(row, "slots")).value_or(0);
    actors += number_in(part(row, "actors")).value_or(0);
  }
  auto to = s.cluster();
  if (auto me = (*to)->get("/api/v1/me"))
    user = text(part(*me, "user.username"));
  return "troupe " + version + "   " + std::to_string(nodes) + (nodes == 1 ? " node, " : " nodes, ") +
         cli::number_text(slots) + " slots, " + cli::number_text(actors) + " actors   attached to " +
         s.url() + (user.empty() ? "" : " as " + user) +
         " (read-only, :rw to change)\nhelp lists the commands, Tab completes, Ctrl-D leaves";
}

std::filesystem::path rc_file(const client::environment& env) {
  if (auto config = env("XDG_CONFIG_HOME"); !config.empty())
    return std::filesystem::path(config) / "troupe" / "shellrc";
  return std::filesystem::path(env("HOME")) / ".config" / "troupe" / "shellrc";
}

std::vector<std::string> lines_of(event_feed::news news, const cli::terminal& screen) {
  std::vector<std::string> out;
  if (!news.link.empty())
    out.push_back(news.link);
  constexpr std::size_t most_shown = 5; // each second; a command shows the rest
  auto skipped = news.dropped + (news.rows.size() > most_shown ? news.rows.size() - most_shown : 0);
  look how{cli::output_format::table, screen, {}};
  for (std::size_t i = news.rows.size() > most_shown ? news.rows.size() - most_shown : 0;
       i < news.rows.size(); ++i) {
    auto line = stream_row({}, news.rows[i], false, how);
    line.pop_back();
    out.push_back(line);
  }
  if (skipped > 0)
    out.push_back("... and " + std::to_string(skipped) + " events more (events shows them)");
  for (auto& line : out)
    line = cli::painted(line, cli::paint::dim, screen);
  return out;
}

/// The background of one attachment; `:attach` makes a new one.
struct background {
  std::string url;
  std::unique_ptr<event_feed> feed;
  std::unique_ptr<name_cache> names;

  void follow(session& s, line_editor& editor, const std::string& user) {
    auto to = s.cluster();
    if (!to || (*to)->where().url == url)
      return;
    editor.set_news(-1, {});
    auto where = (*to)->where();
    url = where.url;
    feed = std::make_unique<event_feed>(where, client::options_from(s.io().env), user);
    names = std::make_unique<name_cache>(where, client::options_from(s.io().env));
    editor.set_news(feed->fd(), [this, &s] {
      cli::refresh_size(s.io().out_fd, s.io().screen);
      return lines_of(feed->take(), s.io().screen);
    });
  }
};

int interact(session& s, const std::string& version) {
  std::string user;
  auto hello = greeting(s, version, user);
  if (!hello)
    return s.fail(hello.error());
  auto& io = s.io();
  io.out << *hello << std::endl;
  auto editor = libedit_editor(most_line_bytes, {&interrupted, &ended, &resized});
  history past(history_file(io.env));
  for (const auto& line : past.load())
    editor->remember(line);
  std::error_code ignored;
  if (auto rc = rc_file(io.env); std::filesystem::exists(rc, ignored))
    s.run_file(rc.string(), true);
  background behind;
  editor->set_completer([&](const std::string& before) {
    std::vector<std::string> variables;
    for (const auto& [name, x] : s.variables())
      variables.push_back(name);
    return complete(before, behind.names ? behind.names->get(std::chrono::milliseconds(300)) : live_names{},
                    variables);
  });
  s.confirm = [&](const std::string& question) {
    auto got = editor->read(question + " [y/N] ");
    return got.what == line_editor::input::kind::line &&
           (got.text == "y" || got.text == "Y" || got.text == "yes");
  };
  std::string typed;
  bool history_fails = false;
  while (!s.quitting() && !ended) {
    interrupted = false;
    behind.follow(s, *editor, user);
    auto got = editor->read(typed.empty() ? s.prompt() : "... ");
    cli::refresh_size(io.out_fd, io.screen);
    using kind = line_editor::input::kind;
    if (got.what == kind::end)
      break;
    if (got.what != kind::line) {
      typed.clear();
      interrupted = false;
      if (got.what == kind::too_long)
        s.fail({errc::invalid, "a line of " + std::to_string(got.bytes) + " bytes; at most " +
                                 std::to_string(most_line_bytes) +
                                 " are read\nhint: put the commands into a file: source FILE"});
      continue;
    }
    typed += (typed.empty() ? "" : "\n") + got.text;
    if (auto line = parse_line(typed); line && line->open)
      continue;
    if (!is_secret(typed))
      editor->remember(typed);
    if (auto kept = past.add(typed); !kept && !std::exchange(history_fails, true))
      s.fail(kept.error());
    interrupted = false;
    s.run(std::exchange(typed, ""));
  }
  s.confirm = {};
  return cli::exit_done;
}

int run_commands(session& s, const cli::shell_options& options) {
  if (auto ok = s.attach(options.attach); !ok)
    return s.fail(ok.error());
  s.set_format(format_of(options.format));
  int first = 0;
  for (const auto& text : options.commands) {
    if (s.quitting())
      break;
    int code = s.run(text);
    first = first ? first : code;
    if (code != 0 && (!options.keep_going || code == cli::exit_interrupted))
      return first;
  }
  if (!options.file.empty() && !s.quitting()) {
    int code = s.run_file(options.file.string(), options.keep_going);
    first = first ? first : code;
  } else if (options.commands.empty() && options.file.empty()) {
    first = s.run_stream(s.io().in, "standard input", options.keep_going);
  }
  return first;
}

} // namespace

int run_batch(const cli::shell_options& options, const cli::hooks& node, cli::console& io) {
  signal_watch watch(false);
  session s(node, io, interrupted);
  return run_commands(s, options);
}

int run(const cli::shell_options& options, const cli::hooks& node) {
  bool no_colour = !client::process_environment("NO_COLOR").empty();
  bool force = !client::process_environment("CLICOLOR_FORCE").empty();
  auto colours = cli::colour_when_of(options.color);
  cli::console io{std::cin,
                  std::cout,
                  std::cerr,
                  cli::terminal_of(STDOUT_FILENO, colours, no_colour, force),
                  cli::terminal_of(STDERR_FILENO, colours, no_colour, force),
                  STDOUT_FILENO,
                  [] { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); },
                  client::process_environment};
  bool asks =
    options.commands.empty() && options.file.empty() && ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO);
  if (!asks)
    return run_batch(options, node, io);
  signal_watch watch(true);
  session s(node, io, interrupted);
  s.interactive = true;
  if (auto ok = s.attach(options.attach); !ok)
    return s.fail(ok.error());
  s.set_format(format_of(options.format));
  return interact(s, node.version);
}

} // namespace troupe::shell
