#pragma once
// Checks a text's tree, or a configuration after its layers are merged, against a schema of the table.

#include "model/config/schema.hpp"

namespace troupe::config {

/// Collects faults with their place and path.
class report {
public:
  explicit report(std::string file) : files_{std::move(file)} {}
  /// For a document that several files make: places name each file by its number.
  explicit report(std::vector<std::string> files) : files_(std::move(files)) {}
  void fault(place at, std::string path, std::string message, std::string hint = {});
  bool full() const { return faults_.size() >= most_faults; }
  /// Notes that a key, or everything within it, has faults already: what it lacks is then not reported.
  void know(std::string path) { known_.push_back(std::move(path)); }
  const std::vector<std::string>& known() const { return known_; }
  bool knows(std::string_view path) const;       ///< whether `path` or what holds it is noted
  bool knows_below(std::string_view path) const; ///< whether something within `path` is noted
  std::vector<diagnostic> take();                ///< returns the diagnostics in the order of the text

private:
  std::vector<std::string> files_;
  std::vector<diagnostic> faults_;
  std::vector<std::string> known_;
};

/// Checks all that the text alone can show: types, ranges, unknown keys, keys that a map must always have.
void check(const node& x, const shape& s, report& out);

/// Checks what a run needs beyond `check`: keys that may come from another layer. `x` is normal (see
/// complete.hpp). A fault has the place of the deepest part of `text` that exists.
void check_completeness(const value& x, const shape& s, const node& text, report& out);

/// Checks what `experiment` must have beyond completeness so that this cluster can run it: an entrypoint, a
/// searcher of today, and the keys that it runs by. An `unmanaged` one has no tasks here.
void check_runnable(const value& experiment, const node& text, report& out, bool unmanaged = false);

/// Whether the entrypoint is blank: a blank text, or a list that is empty or begins with a blank word.
bool names_no_program(const value& entrypoint);
inline constexpr const char* no_program = "names no program";

/// Reports hyperparameters that a grid search cannot divide. `way` leads to `x`.
void check_grid(const node& x, trail& way, report& out);

/// The word of `words` that is nearest to `word`; empty where none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string_view>& words);

} // namespace troupe::config
