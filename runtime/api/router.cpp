#include "runtime/api/router.hpp"

#include "model/assert.hpp"

namespace troupe::api {

struct router::node {
  std::map<std::string, std::unique_ptr<node>, std::less<>> fixed;
  std::unique_ptr<node> any;  ///< {name}: one segment
  std::unique_ptr<node> rest; ///< {name*}: all segments that follow, at least one
  std::map<std::string, const route*, std::less<>> by_method;
};

router::router(std::vector<route> table) : table_(std::move(table)), root_(std::make_unique<node>()) {
  for (const auto& row : table_) {
    node* at = root_.get();
    const auto shape = parse_target(row.path).value();
    for (const auto& segment : shape.segments) {
      auto& next = segment.ends_with("*}") ? at->rest : segment.front() == '{' ? at->any : at->fixed[segment];
      if (!next)
        next = std::make_unique<node>();
      at = next.get();
    }
    TROUPE_ASSERT(!at->by_method.contains(row.method));
    at->by_method[row.method] = &row;
  }
}

router::~router() = default;

/// Finds the node for the rest of the path. A fixed segment is tried before {name}.
const router::node* router::walk(const node& at, const std::vector<std::string>& segments, std::size_t depth,
                                 std::string_view method, bool& other_method) const {
  if (depth == segments.size()) {
    if (at.by_method.contains(method))
      return &at;
    other_method = other_method || !at.by_method.empty();
    return nullptr;
  }
  if (auto next = at.fixed.find(segments[depth]); next != at.fixed.end())
    if (const auto* found = walk(*next->second, segments, depth + 1, method, other_method))
      return found;
  if (at.any)
    if (const auto* found = walk(*at.any, segments, depth + 1, method, other_method))
      return found;
  return at.rest ? walk(*at.rest, segments, segments.size(), method, other_method) : nullptr;
}

router::match router::find(std::string_view method, const std::vector<std::string>& segments) const {
  match m;
  if (segments.size() > 16)
    return m;
  const auto* at = walk(*root_, segments, 0, method, m.other_method);
  if (!at)
    return m;
  m.found = at->by_method.find(method)->second;
  const auto names = parse_target(m.found->path).value().segments;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].ends_with("*}")) {
      std::string rest = segments[i];
      for (auto j = i + 1; j < segments.size(); ++j)
        rest += "/" + segments[j];
      m.path.emplace(names[i].substr(1, names[i].size() - 3), std::move(rest));
    } else if (names[i].front() == '{')
      m.path.emplace(names[i].substr(1, names[i].size() - 2), segments[i]);
  return m;
}

} // namespace troupe::api
