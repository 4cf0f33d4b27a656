// The group of one rank: the result of a reduction or gathering is what the rank gave.

#include "workers/collectives/operation_queue.hpp"

#include <cstring>

namespace troupe {
namespace {

class alone final : public collective {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* member() const override { return "alone"; }
  void abort(const std::string& why) override { aborted_ = why.empty() ? "aborted" : why; }

  result<std::unique_ptr<collective>> group(std::span<const int> ranks) override {
    if (ranks.size() != 1 || ranks[0] != 0)
      return error{errc::invalid, "collective: the group names ranks other than 0, but rank 0 is alone"};
    return make_alone_collective();
  }

  result<void> perform(const operation& x) override {
    if (!aborted_.empty())
      return error{errc::unreachable, "collective: " + aborted_};
    const auto copy = [&](const operation_buffer& b) {
      if (b.in != b.out && b.count > 0)
        std::memmove(b.out, b.in, b.count * size_of(x.type));
    };
    copy(x.first);
    for (const auto& b : x.more)
      copy(b);
    return {};
  }

  pending start(operation x) override {
    auto handle = std::make_shared<pending::state>();
    handle->end(perform(x));
    return pending{handle};
  }

private:
  std::string aborted_;
};

} // namespace

std::unique_ptr<collective> make_alone_collective() { return std::make_unique<alone>(); }

} // namespace troupe
