#pragma once
// `troupe search replay -` drives one searcher by hand: it answers each JSON line with a JSON line.

#include "searchers/searcher.hpp"

#include <iosfwd>
#include <memory>

namespace troupe::cli {

class search_replay {
public:
  /// Answers one line with actions and progress, or with `{"error": ...}` and nothing changed.
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
