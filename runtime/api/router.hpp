#pragma once
// Finds the row of the route table for a method and a path.

#include "runtime/api/route.hpp"

namespace troupe::api {

class router {
public:
  /// Asserts that no two rows have the same method and shape of path.
  explicit router(std::vector<route> table);
  ~router();

  struct match {
    const route* found = nullptr;
    std::map<std::string, std::string, std::less<>> path;
    bool other_method = false; ///< the path is known, but not with this method
  };
  match find(std::string_view method, const std::vector<std::string>& segments) const;
  const std::vector<route>& table() const { return table_; }

private:
  struct node;
  const node* walk(const node& at, const std::vector<std::string>& segments, std::size_t depth,
                   std::string_view method, bool& other_method) const;

  std::vector<route> table_;
  std::unique_ptr<node> root_;
};

} // namespace troupe::api
