#include "actors/message_types.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <thread>

namespace troupe {

void add_node_messages(caf::actor_system_config& to) {
  to.add_message_types<caf::id_block::troupe>(); // only here, because it costs many seconds of compile time
}

node_config::node_config() {
  add_node_messages(*this);
  set("scheduler.policy", caf::atom("sharing"));
  // More threads than processors only wake each other.
  set("scheduler.max-threads", std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 4));
  set("scheduler.max-throughput", std::size_t{100});
}

caf::error to_caf(const error& why) {
  return caf::make_error(caf::sec::runtime_error, static_cast<std::uint64_t>(why.code), why.what);
}

error from_caf(const caf::error& why) {
  if (why.category() == caf::atom("system") &&
      why.code() == static_cast<std::uint8_t>(caf::sec::runtime_error) &&
      why.context().match_elements<std::uint64_t, std::string>())
    return {static_cast<errc>(why.context().get_as<std::uint64_t>(0)), why.context().get_as<std::string>(1)};
  if (why == caf::sec::request_timeout)
    return {errc::timeout, "it did not answer in time"};
  if (why == caf::sec::connection_timeout) // the handshake of the link was slow
    return {errc::unreachable, "it did not answer in time"};
  if (why == caf::sec::request_receiver_down)
    return {errc::timeout, "it ended before it answered"};
  return {errc::internal, caf::to_string(why.category()) + ":" + std::to_string(why.code()) +
                            (why.context().empty() ? "" : " " + caf::to_string(why.context()))};
}

} // namespace troupe
