#include "actors/retention/remover_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"
#include "model/checkpoint_place.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "system/background_thread.hpp"

#include <algorithm>
#include <filesystem>
#include <sched.h>

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<remover_actor>;

constexpr int niceness = 19;

/// Lets this thread run only when no other thread wants to. Linux counts a processor that runs such a thread
/// as idle, so that a thread that wakes up to answer a request gets it at once
/// (perf/results/stock-2026-11-27.txt). While this thread removes files, it holds no lock of the process.
void run_when_idle(const caf::actor_system& sys) {
  const sched_param none{};
  if (!driven_by_test(sys) && ::sched_setscheduler(0, SCHED_IDLE, &none) != 0)
    stand_back(sys);
}

/// Number of entries that are files, not folders.
std::size_t count_files(const std::map<std::string, std::int64_t>& files) {
  return static_cast<std::size_t>(
    std::count_if(files.begin(), files.end(), [](const auto& one) { return !one.first.ends_with('/'); }));
}

class remover_state {
public:
  static inline const char* name = "remover";
  explicit remover_state(base* self) : self_(self) {}

  remover_actor::behavior_type make_behavior(std::size_t number) {
    self_->enter("remover/" + std::to_string(number));
    run_when_idle(self_->system());
    return {
      [](const remove_stored& x) {
        x.work->done.clear(); // a remover that died over this work may have left results
        for (const auto& piece : x.work->pieces)
          x.work->done.push_back(remove_piece(piece));
        return stored_removed{x.work};
      },
    };
  }

private:
  base* self_;
};

} // namespace

removal_piece whole(const checkpoint& saved) {
  const auto place = place_of(saved);
  return {saved.uuid, place.store, place.key};
}

bool is_there(const removal_piece& piece) {
  auto store = storage::open_checkpoint_store(piece.store);
  if (!store)
    return true;
  const auto there = (*store)->has(piece.key);
  return !there || *there;
}

bool can_delete(const checkpoint& saved, bool deletes_here) {
  return removable(saved) && (deletes_here || is_there(whole(saved)));
}

bool out_of_sight(const checkpoint& saved, const std::string& own) {
  const auto folder = folder_of_store(place_of(saved).store);
  std::error_code fault;
  return !folder.empty() && folder != own && !saved.files.empty() &&
         std::filesystem::status(folder, fault).type() == std::filesystem::file_type::not_found;
}

error cannot_delete(const checkpoint& saved) {
  const auto store = place_of(saved).store;
  return {errc::invalid, "checkpoint " + saved.uuid + " lies where this cluster cannot delete (" +
                           (store.empty() ? "an unknown place" : store) +
                           "); delete its files there, say so by PATCH /api/v1/checkpoints, and try again"};
}

removal remove_piece(const removal_piece& piece) {
  removal out{piece.checkpoint, 0, {}};
  auto store = storage::open_checkpoint_store(piece.store);
  if (!store) {
    out.why = store.error().what;
    return out;
  }
  if (piece.paths.empty()) {
    if (const auto erased = (*store)->erase(piece.key, out.files); !erased)
      out.why = erased.error().what;
    return out;
  }
  const auto before = (*store)->list(piece.key);
  if (const auto erased = (*store)->erase_files(piece.key, piece.paths)) {
    out.files = static_cast<std::size_t>(std::count_if(
      piece.paths.begin(), piece.paths.end(), [](const auto& path) { return !path.ends_with('/'); }));
  } else {
    out.why = erased.error().what;
    const auto after = (*store)->list(piece.key);
    const auto found = before ? count_files(*before) : 0, left = after ? count_files(*after) : found;
    out.files = found - std::min(found, left);
  }
  return out;
}

void stand_back(const caf::actor_system& sys) {
  if (!driven_by_test(sys))
    run_in_background(niceness);
}

remover_actor spawn_remover(caf::actor_system& sys, std::size_t number) {
  return spawn_with_own_thread<shell<remover_state, remover_actor, std::size_t>>(sys, number);
}

} // namespace troupe
