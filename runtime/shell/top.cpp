// `top` shows the busiest actors on a screen that is drawn again, or one table without a terminal.

#include "runtime/shell/actions.hpp"
#include "runtime/shell/top_view.hpp"

#include <algorithm>
#include <poll.h>
#include <sstream>
#include <termios.h>
#include <unistd.h>

namespace troupe::shell::actions {
namespace {

/// While it lives, keys are read one by one and not shown.
class raw_keys {
public:
  raw_keys() {
    changed_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (changed_) {
      auto now = before_;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
  }
  ~raw_keys() {
    if (changed_)
      ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  raw_keys(const raw_keys&) = delete;
  raw_keys& operator=(const raw_keys&) = delete;

  /// The next key; 0 where none came within `wait`; 'q' once standard input has ended.
  static char key(std::chrono::milliseconds wait) {
    pollfd on{STDIN_FILENO, POLLIN, 0};
    if (::poll(&on, 1, static_cast<int>(wait.count())) <= 0)
      return 0;
    char c = 0;
    return ::read(STDIN_FILENO, &c, 1) == 1 ? c : 'q';
  }

private:
  termios before_{};
  bool changed_ = false;
};

/// The screen below it comes back afterwards.
class live_screen : public raw_keys {
public:
  explicit live_screen(std::ostream& out) : out_(out) { out_ << "\x1b[?1049h\x1b[?25l" << std::flush; }
  ~live_screen() { out_ << "\x1b[?25h\x1b[?1049l" << std::flush; }

private:
  std::ostream& out_;
};

std::string over_the_last(const std::string& out) { // draws over the last picture, so that nothing flickers
  std::string lines = "\x1b[H";
  for (char c : out)
    lines += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  return lines + "\x1b[J";
}

/// The table with the chosen line reversed, from a row on that shows this line.
std::string table(session& s, const value& rows, std::size_t at) {
  const auto most = static_cast<std::size_t>(std::max(1, s.io().screen.height - 3));
  const auto first = at >= most ? at - most + 1 : 0;
  answer shown{shape::rows, value::array(), ps_columns(), {}};
  for (auto i = first; i < rows.size() && i < first + most; ++i)
    shown.what.push_back(rows[i]);
  std::istringstream lines(render(shown, s.how()));
  std::string out;
  auto below = static_cast<std::ptrdiff_t>(at - first) + 1; // below the header
  for (std::string line; std::getline(lines, line); --below)
    out += below == 0 && !rows.empty() ? "\x1b[7m" + line + "\x1b[0m\n" : line + "\n";
  return out;
}

std::string picture(session& s, const value& rows, top_view& v, const std::string& fault) {
  const auto& screen = s.io().screen;
  const auto shown = v.visible(rows);
  double per_s = 0, backlog = 0;
  for (const auto& row : shown) {
    per_s += number_in(cli::part(row, "msg_per_s")).value_or(0);
    backlog += number_in(cli::part(row, "backlog")).value_or(0);
  }
  auto head = clock_text(to_rfc3339(s.io().now())).substr(0, 8) + "  " + std::to_string(shown.size()) +
              " actors  " + cli::number_text(per_s, 4) + " msg/s  backlog " + cli::number_text(backlog) +
              "  by " + v.sort() + (v.rises() ? ", smallest first" : "");
  if (v.typing() || !v.filter().empty())
    head += "  /" + cli::printable(v.filter()) + (v.typing() ? "_" : "");
  head += v.typing() ? "   Enter keeps it, Esc drops it"
                     : "   q leaves, s sorts, / filters, Enter shows, t traces, ? helps";
  auto out = cli::painted(cli::fitted(head, screen.width, screen.utf8), cli::paint::dim, screen) + "\n" +
             table(s, shown, v.at());
  if (!fault.empty())
    out +=
      cli::painted(cli::fitted(cli::printable(fault), screen.width, screen.utf8), cli::paint::red, screen) +
      "\n";
  return over_the_last(out);
}

std::string help(session& s) {
  const auto& screen = s.io().screen;
  std::string out = cli::painted("top   any key goes back", cli::paint::dim, screen) + "\n";
  for (const char* line : {"j, down    the next actor", "k, up      the one before",
                           "Enter      shows the chosen actor, as info does",
                           "t          traces it for 10 s, at most 100 messages; Ctrl-C ends that",
                           "/          filters by words, as ps does; Enter keeps the filter, Esc drops it",
                           "s          sorts by the next column", "r          turns the order",
                           "?          these keys", "q          leaves"})
    out += cli::fitted(line, screen.width, screen.utf8) + "\n";
  return over_the_last(out);
}

/// The chosen actor, as `info` shows it.
std::string portrait(session& s, const result<value>& got, const std::string& actor) {
  const auto& screen = s.io().screen;
  auto out = cli::painted(cli::fitted(actor + "   any key goes back", screen.width, screen.utf8),
                          cli::paint::dim, screen) +
             "\n";
  if (!got)
    return over_the_last(out + cli::painted(cli::printable(got.error().what), cli::paint::red, screen) +
                         "\n");
  std::istringstream lines(render({shape::info, *got, {}, {}}, s.how()));
  int left = screen.height - 2;
  for (std::string line; left > 0 && std::getline(lines, line); --left)
    out += cli::fitted(line, screen.width, screen.utf8) + "\n";
  return over_the_last(out);
}

} // namespace

outcome top(session& s, const typed_words& g) {
  auto sort = g.text("--sort", "msg_per_s");
  auto window = std::max(g.span("--window", std::chrono::seconds(2)), std::chrono::milliseconds(200));
  bool live = s.to_screen() && s.io().screen.interactive && ::isatty(STDIN_FILENO) &&
              s.how().format == cli::output_format::table;
  if (!live) {
    auto once = g;
    once.options["--sort"] = sort;
    once.options.emplace("--top", "20");
    return ps(s, once);
  }
  top_view v;
  if (!v.sort_by(sort))
    return error{errc::invalid, "'top' cannot sort by '" + sort + "'\nhint: top --sort backlog"};
  auto to = s.cluster();
  if (!to)
    return to.error();
  auto asked = g;
  asked.options.erase("--sort");
  asked.options["--window"] = span_arg(window) + "s";
  std::optional<error> refused;
  {
    std::optional<live_screen> screen(std::in_place, s.io().out);
    value rows = value::array();
    std::string fault;
    bool first = true;
    const auto over = [&] { return v.leaves() || s.interrupted(); };
    const auto draw = [&] {
      cli::refresh_size(s.io().out_fd, s.io().screen);
      s.io().out << (v.helps() ? help(s) : picture(s, rows, v, fault)) << std::flush;
    };
    // Keys are read while the answer is waited for; the last picture obeys them.
    const auto look = [&](std::chrono::milliseconds wait) {
      v.take(live_screen::key(wait));
      if (v.changed() && v.opened().empty() && !v.leaves() && !first)
        draw();
    };
    const auto idle = [&] {
      const auto shown = v.opened();
      look(std::chrono::milliseconds(0));
      return v.leaves() || v.wants_trace() || v.opened() != shown;
    };
    (*to)->set_idle(idle);
    while (!over()) {
      if (const auto actor = v.opened(); !actor.empty()) {
        const auto got = s.get("info", {{"actor", actor}});
        if (over() || v.opened() != actor)
          continue;
        s.io().out << portrait(s, got, actor) << std::flush;
        for (auto until = session::clock::now() + window;
             !over() && v.opened() == actor && session::clock::now() < until;)
          look(std::chrono::milliseconds(50));
        continue;
      }
      if (const auto actor = v.traced(); !actor.empty()) {
        screen.reset();      // messages stay visible after `top` has ended
        (*to)->set_idle({}); // the trace reads the keys meanwhile
        auto trace_it = typed_words{};
        trace_it.words = {actor};
        trace_it.options = {{"--for", "10s"}, {"--max", "100"}};
        if (auto done = trace(s, trace_it); done.fault)
          s.io().out << cli::printable(done.fault->what) << "\n";
        s.interrupt_flag() = false;
        s.io().out << "any key goes back to top" << std::flush;
        for (raw_keys unseen; !s.interrupted() && raw_keys::key(std::chrono::milliseconds(200)) == 0;) {
        }
        s.io().out << "\n";
        screen.emplace(s.io().out);
        (*to)->set_idle(idle);
        continue;
      }
      auto quick = asked;
      if (first)
        quick.options["--window"] = "0.2s"; // shows something at once
      auto got = ps(s, quick);
      if (over() || !v.opened().empty())
        continue;
      if (got.fault && got.fault->code == errc::invalid) {
        refused = got.fault;
        break;
      }
      first = false;
      if (!got.fault)
        rows = got.what.what;
      fault = got.fault ? got.fault->what : "";
      draw();
      for (auto until = session::clock::now() + std::chrono::milliseconds(got.fault ? 1000 : 100);
           !over() && v.opened().empty() && session::clock::now() < until;)
        look(std::chrono::milliseconds(50));
    }
    (*to)->set_idle({});
  }
  s.interrupt_flag() = false; // Ctrl-C ends it, too
  if (refused)
    return *refused;
  return {};
}

} // namespace troupe::shell::actions
