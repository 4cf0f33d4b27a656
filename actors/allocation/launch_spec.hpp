#pragma once
// A launch order on its way from an allocation to the agent that starts it. Within a process it stays what it
// is; between processes it is bytes.

#include "model/result.hpp"

#include <memory>
#include <msgpack.hpp>
#include <optional>
#include <string>

namespace troupe {

struct task_launch;

/// What the harness gateway has to know of a task.
struct launch_doors {
  std::string token, checkpoint_dir;
};

class launch_spec {
public:
  launch_spec() = default;
  explicit launch_spec(task_launch launch);
  /// Takes the bytes as they are; read() says what is wrong with them.
  launch_spec(std::string bytes) : bytes_(std::move(bytes)) {}
  launch_spec(const char* bytes) : bytes_(bytes) {}

  /// As encode() of task_launch.hpp makes them.
  std::string bytes() const;
  /// A copy of the launch. Fails as decode_launch() does.
  result<task_launch> read() const;
  /// Where there are bytes alone, only these two members are read; none where the bytes are not a launch
  /// order.
  std::optional<launch_doors> doors() const;

  friend bool operator==(const launch_spec& a, const launch_spec& b) {
    return (a.launch_ && a.launch_ == b.launch_) || a.bytes() == b.bytes();
  }

  template <class Packer>
  void msgpack_pack(Packer& to) const {
    to.pack(bytes());
  }
  void msgpack_unpack(const msgpack::object& from) {
    launch_.reset();
    bytes_ = from.as<std::string>();
  }

private:
  std::shared_ptr<const task_launch> launch_;
  std::string bytes_; ///< empty where there is a launch
};

} // namespace troupe
