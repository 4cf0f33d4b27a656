#pragma once
// What the keys of `top` do: order, filter, chosen row. Pure.

#include "model/value.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::shell {

class top_view {
public:
  static const std::vector<std::string>& sort_keys();
  /// False where no column has this key.
  bool sort_by(const std::string& key);

  /// Takes the next byte of the keyboard; 0: none came for a while.
  void take(char key);
  /// Keeps and orders the visible rows of `rows`, and finds the chosen row among them.
  value visible(const value& rows);

  const std::string& sort() const { return sort_keys()[sort_]; }
  bool rises() const { return rises_; }
  bool leaves() const { return leaves_; }
  bool typing() const { return typing_; } ///< whether a filter is being typed
  const std::string& filter() const { return filter_; }
  std::size_t at() const { return at_; }                ///< index of the chosen row in the last `visible`
  const std::string& opened() const { return opened_; } ///< the actor whose info is asked for; empty: none
  bool helps() const { return helps_; }                 ///< whether the keys are shown
  /// The actor on which `t` was pressed, told once; empty: none.
  std::string traced() { return std::exchange(traced_, {}); }
  bool wants_trace() const { return !traced_.empty(); }
  bool changed() { return std::exchange(changed_, false); } ///< whether something changed since the last call

private:
  void typed(char key);
  void move(int rows);

  std::size_t sort_ = 0, at_ = 0;
  bool rises_ = false, leaves_ = false, typing_ = false, changed_ = false, helps_ = false;
  std::string filter_, before_, escape_, opened_, traced_;
  std::string chosen_; ///< stays chosen in every order; empty: the first row
  std::vector<std::string> shown_;
};

} // namespace troupe::shell
