// `top`: the busiest actors on a screen that is drawn again; without a terminal, one table.

#include "runtime/shell/actions.hpp"

#include <algorithm>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

namespace troupe::shell::actions {
namespace {

const std::vector<std::string>& sort_keys() {
  static const std::vector<std::string> keys = {"msg_per_s", "backlog",  "run_us_p99", "wait_us_p99",
                                                "messages",  "restarts", "actor"};
  return keys;
}

/// Keys come one by one and unseen while this lives; the screen under it comes back afterwards.
class live_screen {
public:
  explicit live_screen(std::ostream& out) : out_(out) {
    changed_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (changed_) {
      auto now = before_;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    out_ << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~live_screen() {
    out_ << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (changed_)
      ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  live_screen(const live_screen&) = delete;
  live_screen& operator=(const live_screen&) = delete;

  /// The next key, 0 where none is there within `wait`; 'q' once standard input has ended.
  static char key(std::chrono::milliseconds wait) {
    pollfd on{STDIN_FILENO, POLLIN, 0};
    if (::poll(&on, 1, static_cast<int>(wait.count())) <= 0)
      return 0;
    char c = 0;
    return ::read(STDIN_FILENO, &c, 1) == 1 ? c : 'q';
  }

private:
  std::ostream& out_;
  termios before_{};
  bool changed_ = false;
};

struct view {
  std::size_t sort = 0;
  bool rises = false, leaves = false, redraw = false;

  void take(char key) {
    if (key == 'q' || key == 'Q' || key == 3 || key == 4)
      leaves = true;
    if (key == 's')
      sort = (sort + 1) % sort_keys().size(), redraw = true;
    if (key == 'r')
      rises = !rises, redraw = true;
  }
};

void order(value& rows, const view& v) {
  const auto& key = sort_keys()[v.sort];
  bool by_name = key == "actor";
  std::stable_sort(rows.begin(), rows.end(), [&](const value& a, const value& b) {
    const auto& x = cli::part(a, key);
    const auto& y = cli::part(b, key);
    if (by_name)
      return v.rises ? y < x : x < y;
    return v.rises ? number_in(x).value_or(0) < number_in(y).value_or(0) : number_in(y).value_or(0) < number_in(x).value_or(0);
  });
}

std::string picture(session& s, const value& rows, const view& v, const std::string& fault) {
  const auto& screen = s.io().screen;
  double per_s = 0, backlog = 0;
  for (const auto& row : rows) {
    per_s += number_in(cli::part(row, "msg_per_s")).value_or(0);
    backlog += number_in(cli::part(row, "backlog")).value_or(0);
  }
  auto head = clock_text(to_rfc3339(s.io().now())).substr(0, 8) + "  " + std::to_string(rows.size()) + " actors  " +
              cli::number_text(per_s, 4) + " msg/s  backlog " + cli::number_text(backlog) + "  by " + sort_keys()[v.sort] +
              (v.rises ? ", smallest first" : "") + "   q leaves, s sorts, r reverses";
  answer shown{shape::rows, rows, ps_columns(), {}};
  if (auto most = static_cast<std::size_t>(std::max(1, screen.height - 3)); shown.what.size() > most)
    shown.what.erase(shown.what.begin() + static_cast<std::ptrdiff_t>(most), shown.what.end());
  auto out =
    cli::painted(cli::fitted(head, screen.width, screen.utf8), cli::paint::dim, screen) + "\n" + render(shown, s.how());
  if (!fault.empty())
    out += cli::painted(cli::fitted(cli::printable(fault), screen.width, screen.utf8), cli::paint::red, screen) + "\n";
  std::string lines = "\x1b[H"; // over the last picture, so that nothing flickers
  for (char c : out)
    lines += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  return lines + "\x1b[J";
}

} // namespace

outcome top(session& s, const given& g) {
  auto sort = g.text("--sort", "msg_per_s");
  auto window = std::max(g.span("--window", std::chrono::seconds(2)), std::chrono::milliseconds(200));
  bool live =
    s.to_screen() && s.io().screen.interactive && ::isatty(STDIN_FILENO) && s.how().format == cli::output_format::table;
  if (!live) {
    auto once = g;
    once.options["--sort"] = sort;
    once.options.emplace("--top", "20");
    return ps(s, once);
  }
  view v;
  if (auto at = std::find(sort_keys().begin(), sort_keys().end(), sort); at != sort_keys().end())
    v.sort = static_cast<std::size_t>(at - sort_keys().begin());
  else
    return error{errc::invalid, "'top' cannot sort by '" + sort + "'\nhint: top --sort backlog"};
  auto to = s.cluster();
  if (!to)
    return to.error();
  auto asked = g;
  asked.options.erase("--sort");
  asked.options["--window"] = g.text("--window", "2s");
  asked.options["--window"] = span_arg(window) + "s";
  (*to)->set_idle([&] {
    v.take(live_screen::key(std::chrono::milliseconds(0)));
    return v.leaves;
  });
  std::optional<error> refused;
  {
    live_screen screen(s.io().out);
    value rows = value::array();
    bool first = true;
    while (!v.leaves && !s.interrupted()) {
      auto quick = asked;
      if (std::exchange(first, false))
        quick.options["--window"] = "0.2s"; // something to see at once
      auto got = ps(s, quick);
      if (v.leaves || s.interrupted())
        break;
      if (got.fault && got.fault->code == errc::invalid) {
        refused = got.fault;
        break;
      }
      if (!got.fault)
        rows = got.what.what;
      order(rows, v);
      cli::refresh_size(s.io().out_fd, s.io().screen);
      s.io().out << picture(s, rows, v, got.fault ? got.fault->what : "") << std::flush;
      auto until = session::clock::now() + (got.fault ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(100));
      while (!v.leaves && !s.interrupted() && session::clock::now() < until) {
        v.take(live_screen::key(std::chrono::milliseconds(50)));
        if (std::exchange(v.redraw, false)) {
          order(rows, v);
          s.io().out << picture(s, rows, v, "") << std::flush;
        }
      }
    }
  }
  (*to)->set_idle({});
  s.interrupt_flag() = false; // Ctrl-C leaves it too
  if (refused)
    return *refused;
  return {};
}

} // namespace troupe::shell::actions
