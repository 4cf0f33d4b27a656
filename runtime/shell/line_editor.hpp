#pragma once
// Reads lines from a user. The interface is small, so that the library behind it can change; today it is
// libedit_editor.cpp.

#include "runtime/shell/completion.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::shell {

class line_editor {
public:
  struct input {
    enum class kind {
      line,
      interrupted, ///< Ctrl-C: the typed text is dropped
      too_long,    ///< more bytes than a line may have came without a newline; they are dropped
      end          ///< Ctrl-D on an empty line, a hang-up, or SIGTERM
    } what = kind::end;
    std::string text;      ///< text of the line, UTF-8, without the newline
    std::size_t bytes = 0; ///< set for too_long
  };

  virtual ~line_editor() = default;
  /// Waits for a line. Only one thread may call it, always the same one.
  virtual input read(const std::string& prompt) = 0;
  virtual void remember(const std::string& line) = 0; ///< for the arrow keys; kept in memory only
  /// `completer` is called on Tab with the text before the cursor.
  virtual void set_completer(std::function<completions(const std::string&)> completer) = 0;
  /// Where `fd` becomes readable while `read` waits, calls `take` and prints the lines that it returns above
  /// the prompt; the typed text stays.
  virtual void set_news(int fd, std::function<std::vector<std::string>()> take) = 0;
};

struct editor_signals {
  const std::atomic<bool>* interrupted; ///< Ctrl-C outside of `read`
  const std::atomic<bool>* ended;       ///< SIGTERM, SIGHUP
  std::atomic<bool>* resized;           ///< SIGWINCH; cleared by the editor
};

/// Works on standard input and output, which must be a terminal.
std::unique_ptr<line_editor> libedit_editor(std::size_t most_bytes, const editor_signals& signals);

} // namespace troupe::shell
