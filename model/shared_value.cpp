#include "model/shared_value.hpp"

#include <msgpack.hpp>
#include <mutex>

namespace troupe {

struct shared_value::held {
  value parsed;
  std::string bytes; ///< empty: it was made from a value
  std::once_flag once;
};

shared_value::shared_value() {
  static const shared_value empty{value::object()};
  held_ = empty.held_;
}

shared_value::shared_value(value x) : held_(std::make_shared<held>()) { held_->parsed = std::move(x); }

result<shared_value> shared_value::of_msgpack(std::string_view bytes) {
  std::size_t used = 0;
  msgpack::null_visitor looks;
  if (!msgpack::parse(bytes.data(), bytes.size(), used, looks) || used != bytes.size())
    return error{errc::corrupt, "not the msgpack bytes of one value"};
  auto made = std::make_shared<held>();
  made->bytes = bytes;
  return shared_value(std::move(made));
}

const value& shared_value::get() const {
  if (!held_->bytes.empty())
    std::call_once(held_->once, [this] {
      if (auto parsed = parse_msgpack(held_->bytes))
        held_->parsed = std::move(*parsed);
    });
  return held_->parsed;
}

std::string shared_value::msgpack() const {
  return held_->bytes.empty() ? to_msgpack(held_->parsed) : held_->bytes;
}

} // namespace troupe
