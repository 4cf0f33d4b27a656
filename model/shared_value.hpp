#pragma once
// shared_value: a value that all its copies share. A row can hold it as its stored bytes.

#include "model/value.hpp"

#include <memory>

namespace troupe {

/// It is replaced, never changed. One that was made from bytes is parsed when it is first looked at: most
/// readers of an experiment's row want only its state, and its configuration takes longer to parse than all
/// else. Several threads may look at copies.
class shared_value {
public:
  shared_value(); ///< makes an empty object
  shared_value(value x);
  /// `bytes` are as to_msgpack gives them. Fails where they are not msgpack, or more than one value.
  static result<shared_value> of_msgpack(std::string_view bytes);

  const value& get() const;
  operator const value&() const { return get(); }
  const value* operator->() const { return &get(); }
  std::string msgpack() const; ///< as to_msgpack gives it
  /// Whether both are copies of one. Two that were made from like values are not.
  friend bool same(const shared_value& a, const shared_value& b) { return a.held_ == b.held_; }

private:
  struct held;
  explicit shared_value(std::shared_ptr<held> x) : held_(std::move(x)) {}

  std::shared_ptr<held> held_;
};

} // namespace troupe
