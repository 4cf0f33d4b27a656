#include "storage/log_search.hpp"

#include <algorithm>

namespace troupe::storage {

result<lines_found> find_lines(const reader& in, const line_search& what) {
  if (const auto* finder = dynamic_cast<const line_finder*>(&in))
    return finder->find_lines(what);
  const auto most = std::min(what.most_looked_at, what.most_found);
  auto some = in.logs(what.task, what.after, most);
  if (!some)
    return some.error();
  lines_found out{{}, some->empty() ? what.after : some->back().number, some->size(), some->size() < most};
  for (auto& line : *some)
    if (!what.next || line.text.find('\n') != line.text.npos ||
        what.next(line.text + '\n', 0) != line.text.npos)
      out.lines.push_back(std::move(line));
  return out;
}

} // namespace troupe::storage
