#pragma once
// Reading lines from a person: a small interface, so that the library behind it can change.
// libedit_editor.cpp is the one.

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
      interrupted, ///< Ctrl-C: what was typed is dropped
      too_long,    ///< more bytes than a line may have came without an end; they are dropped
      end          ///< Ctrl-D on an empty line, a hang-up, or SIGTERM
    } what = kind::end;
    std::string text;      ///< text of the line, UTF-8, without the newline
    std::size_t bytes = 0; ///< length of the line, for too_long
  };

  virtual ~line_editor() = default;
  /// Waits for a line. Only one thread may call, always the same.
  virtual input read(const std::string& prompt) = 0;
  virtual void remember(const std::string& line) = 0; ///< keeps a line for the arrow keys, in memory only
  /// Called on Tab with the text before the cursor.
  virtual void set_completer(std::function<completions(const std::string&)> completer) = 0;
  /// While `read` waits and `fd` is readable, `take` is called; the lines that it returns are printed above
  /// the prompt, the typed text staying as it is.
  virtual void set_news(int fd, std::function<std::vector<std::string>()> take) = 0;
};

struct editor_signals {
  const std::atomic<bool>* interrupted; ///< Ctrl-C from elsewhere
  const std::atomic<bool>* ended;       ///< SIGTERM, SIGHUP
  std::atomic<bool>* resized;           ///< SIGWINCH; cleared by the editor
};

/// On standard input and output, which have to be a terminal.
std::unique_ptr<line_editor> libedit_editor(std::size_t most_bytes, const editor_signals& signals);

} // namespace troupe::shell
