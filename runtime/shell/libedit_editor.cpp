// Only this file uses libedit. libedit reads characters through it, so that one poll waits for keys and for
// news, a flood of input is cut before libedit sees it, and UTF-8 is decoded whatever the locale is.

#include "runtime/cli/terminal.hpp"
#include "runtime/shell/line.hpp"
#include "runtime/shell/line_editor.hpp"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::shell {
namespace {

std::wstring wide(std::string_view text) {
  std::wstring out;
  for (std::size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    std::size_t count = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    wchar_t letter = count == 1 ? (c < 0x80 ? c : L'?') : static_cast<wchar_t>(c & (0xff >> (count + 1)));
    if (i + count > text.size())
      count = 1, letter = L'?';
    for (std::size_t k = 1; k < count; ++k)
      letter = static_cast<wchar_t>(letter << 6 | (text[i + k] & 0x3f));
    out += letter;
    i += count;
  }
  return out;
}

std::string narrow(std::wstring_view text) {
  std::string out;
  for (wchar_t w : text) {
    auto c = static_cast<std::uint32_t>(w);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return out;
}

/// libedit shows only letters of the locale.
void choose_locale() {
  std::setlocale(LC_CTYPE, "");
  const char* named = nullptr;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* text = std::getenv(name); text && *text && !named)
      named = text;
  bool plain = !named || std::strcmp(named, "C") == 0 || std::strcmp(named, "POSIX") == 0;
  if (plain || std::strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

class editor : public line_editor {
public:
  editor(std::size_t most_bytes, const editor_signals& signals) : most_bytes_(most_bytes), signals_(signals) {
    choose_locale();
    el_ = el_init("troupe", stdin, stdout, stderr);
    history_ = history_winit();
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, 1000);
    history_w(history_, &event, H_SETUNIQUE, 1);
    el_wset(el_, EL_CLIENTDATA, this);
    el_wset(el_, EL_EDITOR, L"emacs");
    el_wset(el_, EL_SIGNAL, 0);
    el_wset(el_, EL_HIST, history_w, history_);
    el_wset(
      el_, EL_PROMPT, +[](EditLine* el) { return of(el).prompt_.data(); });
    el_wset(
      el_, EL_GETCFN, +[](EditLine* el, wchar_t* c) { return of(el).next(c); });
    el_wset(
      el_, EL_ADDFN, L"troupe-complete", L"complete a word",
      +[](EditLine* el, int) -> unsigned char { return of(el).complete(); });
    el_wset(el_, EL_BIND, L"^I", L"troupe-complete", nullptr);
    el_wset(el_, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    el_wset(el_, EL_BIND, L"\\e[3~", L"ed-delete-next-char", nullptr);
    el_wset(el_, EL_BIND, L"\\e[1;5D", L"ed-prev-word", nullptr);
    el_wset(el_, EL_BIND, L"\\e[1;5C", L"em-next-word", nullptr);
    el_wset(el_, EL_SETTY, L"-d", L"-isig", nullptr); // ^C comes as a key, and reaches no other process
  }

  ~editor() override {
    el_end(el_);
    history_wend(history_);
  }

  input read(const std::string& prompt) override {
    prompt_ = wide(prompt);
    prompt_width_ = cli::width_of(prompt);
    why_ = input::kind::end;
    line_bytes_ = 0;
    int count = 0;
    el_wset(el_, EL_PREP_TERM, 1); // before the prompt is seen: the kernel would edit what is typed at once
    const wchar_t* text = el_wgets(el_, &count);
    if (text && count > 0) {
      std::wstring_view line(text, static_cast<std::size_t>(count));
      while (!line.empty() && (line.back() == L'\n' || line.back() == L'\r'))
        line.remove_suffix(1);
      return {input::kind::line, narrow(line), 0};
    }
    std::fputs(why_ == input::kind::interrupted ? "^C\n" : "\n", stdout);
    std::fflush(stdout);
    return {why_, "", dropped_};
  }

  void remember(const std::string& line) override {
    HistEventW event;
    auto text = wide(line);
    history_w(history_, &event, H_ENTER, text.c_str());
  }

  void set_completer(std::function<completions(const std::string&)> completer) override {
    completer_ = std::move(completer);
  }

  void set_news(int fd, std::function<std::vector<std::string>()> take) override {
    news_fd_ = fd;
    take_news_ = std::move(take);
  }

private:
  static editor& of(EditLine* el) {
    void* self = nullptr;
    el_wget(el, EL_CLIENTDATA, &self);
    return *static_cast<editor*>(self);
  }

  int stop(input::kind why) {
    why_ = why;
    errno = EINTR;
    return -1;
  }

  /// Gives libedit the next key: returns 1, or -1 to end the line.
  int next(wchar_t* key) {
    for (;;) {
      if (signals_.ended->load())
        return stop(input::kind::end);
      if (signals_.interrupted->load())
        return bytes_.clear(), stop(input::kind::interrupted);
      if (signals_.resized->exchange(false))
        resize();
      if (bytes_.empty() && !ended_)
        wait();
      if (signals_.resized->load() || signals_.interrupted->load())
        continue;
      if (bytes_.empty()) {
        if (ended_)
          return stop(input::kind::end);
        continue;
      }
      if (cut_flood())
        return stop(input::kind::too_long);
      auto first = static_cast<unsigned char>(bytes_.front());
      if (first == 3) {
        bytes_.clear();
        return stop(input::kind::interrupted);
      }
      std::size_t count = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
      if (bytes_.size() < count && !ended_ && fill(200))
        continue;
      auto text = std::string(bytes_.begin(),
                              bytes_.begin() + static_cast<std::ptrdiff_t>(std::min(count, bytes_.size())));
      bool whole = text.size() == count && (count > 1 || first < 0x80) && (count == 1 || is_text(text));
      if (!whole)
        text.resize(1);
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(text.size()));
      *key = whole ? wide(text)[0] : L'?';
      if (*key == 0) // no command has this key
        continue;
      line_bytes_ = *key == L'\n' || *key == L'\r' ? 0 : line_bytes_ + text.size();
      return 1;
    }
  }

  /// Waits for a key or news; at most half a second, because a signal may have come just before.
  void wait() {
    pollfd on[2] = {{STDIN_FILENO, POLLIN, 0}, {news_fd_, POLLIN, 0}};
    if (::poll(on, news_fd_ >= 0 ? 2 : 1, 500) <= 0)
      return;
    if (news_fd_ >= 0 && (on[1].revents & POLLIN)) {
      std::string text;
      for (const auto& line : take_news_())
        text += line + "\n";
      if (!text.empty())
        print_above(text);
    }
    if (on[0].revents)
      fill(0);
  }

  /// Takes all bytes that have arrived; false where none came within `wait_ms`.
  bool fill(int wait_ms) {
    bool came = false;
    for (;;) {
      pollfd on{STDIN_FILENO, POLLIN, 0};
      if (::poll(&on, 1, came ? 0 : wait_ms) <= 0 || bytes_.size() > 4 * most_bytes_)
        return came;
      char block[16384];
      auto count = ::read(STDIN_FILENO, block, sizeof block);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0) {
        ended_ = true;
        return came;
      }
      bytes_.insert(bytes_.end(), block, block + count);
      came = true;
    }
  }

  /// Reads a line beyond the limit to its end, or until nothing comes for a moment, and drops it.
  bool cut_flood() {
    auto end = std::find(bytes_.begin(), bytes_.end(), '\n');
    auto cr = std::find(bytes_.begin(), end, '\r');
    auto length = static_cast<std::size_t>(cr - bytes_.begin());
    if (line_bytes_ + length <= most_bytes_ && !(cr == bytes_.end() && bytes_.size() > 2048 && fill(20)))
      return false;
    end = std::find_if(bytes_.begin(), bytes_.end(), [](char c) { return c == '\n' || c == '\r'; });
    length = static_cast<std::size_t>(end - bytes_.begin());
    if (line_bytes_ + length <= most_bytes_)
      return end == bytes_.end() && bytes_.size() > 2048 ? cut_flood() : false;
    dropped_ = line_bytes_ + length;
    while (end == bytes_.end() && !signals_.ended->load()) {
      bytes_.clear();
      if (!fill(300))
        break;
      end =
        std::find_if(bytes_.begin(), bytes_.end(), [](char c) { return c == '\n' || c == '\r' || c == 3; });
      dropped_ += static_cast<std::size_t>(end - bytes_.begin());
    }
    if (end != bytes_.end())
      ++end;
    bytes_.erase(bytes_.begin(), end);
    return true;
  }

  int columns() const {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  /// Moves from the cursor to the first column of the prompt, and clears everything below.
  std::string to_prompt(int columns) const {
    const auto* line = el_wline(el_);
    auto before = narrow({line->buffer, static_cast<std::size_t>(line->cursor - line->buffer)});
    auto rows = (prompt_width_ + cli::width_of(before)) / std::max(1, columns);
    std::string out;
    for (int i = 0; i < rows; ++i)
      out += "\x1b[A";
    return out + "\r\x1b[J";
  }

  void print_above(const std::string& text) {
    std::string shown;
    for (char c : text) // the terminal is in raw mode
      shown += c == '\n' ? std::string("\r\n") : std::string(1, c);
    auto all = to_prompt(columns()) + shown;
    std::fwrite(all.data(), 1, all.size(), stdout);
    std::fflush(stdout);
    el_wset(el_, EL_REFRESH);
  }

  void resize() {
    auto clear = to_prompt(columns()); // the terminal has wrapped the text anew at its new width
    std::fwrite(clear.data(), 1, clear.size(), stdout);
    std::fflush(stdout);
    el_resize(el_);
    el_wset(el_, EL_REFRESH);
  }

  unsigned char complete() {
    if (!completer_)
      return CC_ERROR;
    const auto* line = el_wline(el_);
    auto before = narrow({line->buffer, static_cast<std::size_t>(line->cursor - line->buffer)});
    auto found = completer_(before);
    if (found.all.empty())
      return CC_ERROR;
    auto typed = before.substr(std::min(found.from, before.size()));
    auto start = common_start(found.all);
    bool whole = found.all.size() == 1 && !start.ends_with('=') && !start.ends_with('/');
    if (start.size() > typed.size() || whole) {
      auto text = whole ? start + " " : start;
      if (text.starts_with(typed))
        text.erase(0, typed.size());
      else
        el_deletestr(el_, static_cast<int>(wide(typed).size()));
      if (el_winsertstr(el_, wide(text).c_str()) == -1)
        return CC_ERROR;
      if (found.all.size() == 1 || start.size() > typed.size())
        return CC_REFRESH;
    }
    print_above(list_of(found));
    return CC_NORM;
  }

  std::string list_of(const completions& found) const {
    constexpr std::size_t most = 60;
    int widest = 0;
    bool helps = false;
    for (const auto& c : found.all) {
      widest = std::max(widest, cli::width_of(c.text));
      helps = helps || !c.help.empty();
    }
    auto width = columns() - 1;
    std::string out, row;
    for (std::size_t i = 0; i < found.all.size() && i < most; ++i) {
      const auto& c = found.all[i];
      if (helps) {
        out += cli::fitted(cli::padded(c.text, widest + 2) + cli::printable(c.help), width, true) + "\n";
        continue;
      }
      if (!row.empty() && cli::width_of(row) + widest + 2 > width)
        out += row + "\n", row.clear();
      row += cli::padded(cli::printable(c.text), widest + 2);
    }
    if (!row.empty())
      out += cli::fitted(row, width, true) + "\n";
    if (found.all.size() > most)
      out += "... and " + std::to_string(found.all.size() - most) + " more\n";
    return out;
  }

  std::size_t most_bytes_;
  editor_signals signals_;
  EditLine* el_ = nullptr;
  HistoryW* history_ = nullptr;
  std::wstring prompt_;
  int prompt_width_ = 0;
  std::deque<char> bytes_; ///< read, but not yet given to libedit
  std::size_t line_bytes_ = 0, dropped_ = 0;
  bool ended_ = false;
  input::kind why_ = input::kind::end;
  std::function<completions(const std::string&)> completer_;
  int news_fd_ = -1;
  std::function<std::vector<std::string>()> take_news_;
};

} // namespace

std::unique_ptr<line_editor> libedit_editor(std::size_t most_bytes, const editor_signals& signals) {
  return std::make_unique<editor>(most_bytes, signals);
}

} // namespace troupe::shell
