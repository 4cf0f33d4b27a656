#include "runtime/node/shell_keeper.hpp"

#include <caf/all.hpp>

namespace troupe::node {

/// The state shared by the threads that ask and the actor that keeps.
class shell_keeper::kept {
public:
  kept(caf::actor_system& sys, inspector_setup setup) : system(sys), inspector_is(std::move(setup)) {}

  caf::actor_system& system;
  mutable std::mutex mutex;
  inspector_setup inspector_is;
  std::optional<desk_setup> desk_is; ///< empty: the desk is not open
  inspector_actor inspector;
  desk_actor desk;
  bool inspector_lives = false, desk_lives = false, stopping = false;
  agent_actor told;
  std::map<std::string, node_joined> nodes;

  // The functions below are called with the mutex held.

  void make_inspector() {
    inspector = spawn_inspector(system, inspector_is);
    inspector_lives = true;
    const node_joined news{inspector_is.node, caf::actor_cast<caf::actor>(inspector)};
    if (told)
      caf::anon_send(told, news);
    if (desk)
      caf::anon_send(desk, news);
  }
  void make_desk() {
    auto setup = *desk_is;
    setup.inspector = inspector;
    desk = spawn_shell_desk(system, std::move(setup));
    desk_lives = true;
    for (const auto& [name, node] : nodes)
      caf::anon_send(desk, node);
  }
};

namespace {

/// Monitors the live actors and makes those that have died again.
template <class Kept>
caf::behavior keep(caf::event_based_actor* self, std::shared_ptr<Kept> all) {
  auto watched = std::make_shared<std::set<caf::actor_addr>>();
  const auto watch = [self, watched](const auto& who) {
    if (who && watched->insert(who.address()).second)
      self->monitor(who);
  };
  self->set_down_handler([self, all, watched](const caf::down_msg& down) {
    watched->erase(down.source);
    std::lock_guard lock(all->mutex);
    if (all->inspector && down.source == all->inspector.address())
      all->inspector_lives = false;
    else if (all->desk && down.source == all->desk.address())
      all->desk_lives = false;
    self->delayed_send(self, shell_keeper::pause, time_passed{});
  });
  const auto look = [all, watch] {
    std::lock_guard lock(all->mutex);
    if (all->stopping)
      return;
    if (!all->inspector_lives)
      all->make_inspector();
    watch(all->inspector);
    if (!all->desk_is)
      return;
    if (!all->desk_lives)
      all->make_desk();
    watch(all->desk);
  };
  look();
  return {[look](const time_passed&) { look(); }};
}

} // namespace

shell_keeper::shell_keeper(caf::actor_system& sys, inspector_setup setup)
    : system_(sys), kept_(std::make_shared<kept>(sys, std::move(setup))) {
  {
    std::lock_guard lock(kept_->mutex);
    kept_->make_inspector();
  }
  keeper_ = sys.spawn(keep<kept>, kept_);
}

shell_keeper::~shell_keeper() = default;

void shell_keeper::open_desk(desk_setup setup) {
  {
    std::lock_guard lock(kept_->mutex);
    kept_->desk_is = std::move(setup);
    kept_->make_desk();
  }
  caf::anon_send(keeper_, time_passed{});
}

void shell_keeper::stop_desk() {
  desk_actor last;
  {
    std::lock_guard lock(kept_->mutex);
    kept_->desk_is.reset();
    kept_->nodes.clear();
    last = std::exchange(kept_->desk, nullptr);
  }
  if (!last)
    return;
  caf::scoped_actor self{system_};
  self->send_exit(last, caf::exit_reason::user_shutdown);
  self->wait_for(last);
}

void shell_keeper::tell(agent_actor who) {
  std::lock_guard lock(kept_->mutex);
  kept_->told = std::move(who);
}

void shell_keeper::told_no_more() { tell(agent_actor{}); }

void shell_keeper::joined(node_joined x) {
  std::lock_guard lock(kept_->mutex);
  kept_->nodes[x.node] = x;
  if (kept_->desk)
    caf::anon_send(kept_->desk, std::move(x));
}

void shell_keeper::stop() {
  inspector_actor last;
  {
    std::lock_guard lock(kept_->mutex);
    kept_->stopping = true;
    kept_->told = nullptr;
    last = std::exchange(kept_->inspector, nullptr);
  }
  caf::scoped_actor self{system_};
  for (auto one : {keeper_, caf::actor_cast<caf::actor>(last)})
    if (one) {
      self->send_exit(one, caf::exit_reason::user_shutdown);
      self->wait_for(one);
    }
  keeper_ = nullptr;
}

inspector_actor shell_keeper::inspector() const {
  std::lock_guard lock(kept_->mutex);
  return kept_->inspector;
}

desk_actor shell_keeper::desk() const {
  std::lock_guard lock(kept_->mutex);
  return kept_->desk;
}

} // namespace troupe::node
