#include "runtime/embed/troupe/embed_caf.hpp"

#include "runtime/embed/caf_door.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe {
inline namespace v0 {
namespace {

constexpr int window = 256; ///< after this many events the node waits until the actor has taken them
constexpr auto patience = std::chrono::seconds(5);

/// Sends events to the host's actor while it is subscribed. Only the node's event thread calls it.
class mail_to {
public:
  mail_to(caf::actor_system& system, event_sink who, bool end_it)
      : self_(system), who_(std::move(who)), end_it_(end_it) {}
  ~mail_to() {
    if (end_it_)
      self_->send_exit(who_, caf::exit_reason::user_shutdown);
  }
  void operator()(cluster_event x) {
    if (++sent_ % window != 0)
      return caf::anon_send(who_, std::move(x));
    self_->request(who_, patience, std::move(x))
      .receive([] {}, [](const caf::error&) {}); // the actor has died, or is slow
  }

private:
  caf::scoped_actor self_;
  event_sink who_;
  const bool end_it_;
  std::uint64_t sent_ = 0;
};

} // namespace

void add_message_types(caf::actor_system_config& config) {
  embedding::add_messages(config);
  config.add_message_types<caf::id_block::troupe_embed>();
}

result<node> open_in(caf::actor_system& system, const node_options& options) {
  return caf_door::open(system, options);
}

result<caf::actor_system*> actors_of(const node& of) {
  if (auto* system = caf_door::engine_of(of).actors())
    return system;
  return error{errc::unreachable, "the node has stopped", "open it again"};
}

result<void> subscribe(const node& to, const event_sink& who) {
  auto& engine = caf_door::engine_of(to);
  auto* system = engine.actors();
  if (!system)
    return error{errc::unreachable, "the node has stopped", "open it again"};
  if (!who)
    return error{errc::invalid, "no actor is given", ""};
  auto mail = std::make_shared<mail_to>(*system, who, engine.owns_actors());
  engine.on_fact([mail](std::uint64_t sequence, const std::string& entity, const std::string& type,
                        const std::string& json) {
    (*mail)({sequence, entity, type, json});
  });
  return {};
}

} // namespace v0
} // namespace troupe
