#pragma once
// The patterns of a .detignore, which are those of a .gitignore.

#include <string>
#include <string_view>
#include <vector>

namespace troupe::workers {

class ignore_rules {
public:
  ignore_rules() = default;
  /// Reads one pattern from each line. `#` begins a comment, `!` takes a pattern back, a leading or inner `/`
  /// anchors it to the root, a trailing `/` means folders only. `*`, `?` and `[...]` do not cross `/`; `**`
  /// does.
  explicit ignore_rules(std::string_view text);

  /// Whether `path` (relative, with `/`) is left out. The last pattern that matches decides. A walk does not
  /// enter a folder that is left out, so nothing below it can be taken back.
  bool ignores(std::string_view path, bool is_folder) const;

private:
  struct rule {
    std::string pattern;
    bool takes_back = false, folders_only = false, anchored = false;
  };
  std::vector<rule> rules_;
};

/// Whether `text` as a whole matches `pattern`, by the rules above.
bool matches_pattern(std::string_view pattern, std::string_view text);

} // namespace troupe::workers
