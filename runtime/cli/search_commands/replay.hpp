#pragma once
// `troupe search replay -`: one searcher by hand, a JSON line out for each JSON line in.

#include "searchers/searcher.hpp"

#include <iosfwd>
#include <memory>

namespace troupe::cli {

class search_replay {
public:
  /// The answer to one line: actions and progress, or `{"error": ...}` with nothing changed.
  value answer(std::string_view line);

private:
  result<value> start(const value& header);
  result<value> reload();
  result<value> step(const value& event);
  value shown(const std::vector<searchers::search_action>& actions) const;

  value config_, hyperparameters_;
  std::uint64_t seed_ = 0;
  searchers::search_mode mode_ = searchers::search_mode::native;
  std::unique_ptr<searchers::searcher> search_;
};

int replay_search(std::istream& in, std::ostream& out);

} // namespace troupe::cli
