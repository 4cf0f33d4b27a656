#pragma once
// The one table of the orders of an allocation to a worker and of the worker's words. The worker is the actor
// within the process of a trial in C++ (one for each rank), the allocation is on the master, and the worker's
// stand-in on its agent passes their messages on. docs/task-link.md says how these travel. Pure, without CAF.
//
// Every order may be repeated: it says what state is wanted, not what to do next. Every word says what state
// is reached, and is repeated each second. So nothing is lost for good with a frame, an agent or a master.

#include "model/pack.hpp"

#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::workers {

/// The stand-in refuses a worker of another version. To be raised with every change of a type here.
inline constexpr std::uint64_t worker_protocol = 2;
inline constexpr std::size_t max_worker_bytes = 64 << 10; ///< limit of an order or a word

// ---- orders, from the allocation

/// Train up to batch `batch` of all batches of the trial, with the reports, validations and checkpoints of
/// the trial's own schedule.
struct train_until {
  static constexpr const char* tag = "train_until";
  std::int64_t batch = 0;
  bool may_rebuild = false; ///< whether a group that breaks waits for rebuild_group instead of ending
  TROUPE_PACKED(batch, may_rebuild)
};
/// Validate besides the schedule, at the next batch that all ranks agree on. `number` counts from 1: a repeat
/// is done once.
struct validate_now {
  static constexpr const char* tag = "validate";
  std::uint64_t number = 0;
  TROUPE_PACKED(number)
};
struct checkpoint_now {
  static constexpr const char* tag = "checkpoint";
  std::uint64_t number = 0;
  TROUPE_PACKED(number)
};
/// Save a checkpoint and end. The reasons are those of the task link.
struct stop_training {
  static constexpr const char* tag = "stop";
  std::string reason;
  TROUPE_PACKED(reason)
};
/// Leave the group, meet as the ranks `members` (the numbers that the ranks were started with, in the order
/// of their new ranks), build, and load the last checkpoint.
struct rebuild_group {
  static constexpr const char* tag = "rebuild";
  std::uint32_t generation = 0; ///< number of the group from 1 on; the group at the start of the run is 0
  std::vector<int> members;
  TROUPE_PACKED(generation, members)
};
using worker_order = std::variant<train_until, validate_now, checkpoint_now, stop_training, rebuild_group>;

// ---- words, to the allocation

enum class worker_phase : int {
  starting = 0, ///< meets the group and builds the trial
  ready,        ///< has built and loaded; waits for train_until
  training,
  broken, ///< a member is gone; waits for rebuild_group
};
const char* name(worker_phase x);

struct worker_status {
  static constexpr const char* tag = "status";
  worker_phase phase = worker_phase::starting;
  std::uint32_t generation = 0;
  std::int64_t step = 0;    ///< number of batches trained
  std::int64_t batches = 0; ///< batches of the schedule; 0: not known yet
  std::int64_t until = 0;   ///< batch up to which training is ordered
  TROUPE_PACKED(phase, generation, step, batches, until)
  friend bool operator==(const worker_status&, const worker_status&) = default;
};
struct worker_failure { ///< the worker ends, and the run fails with this text
  static constexpr const char* tag = "failure";
  std::string why;
  TROUPE_PACKED(why)
};
/// What the worker received last, oldest first, at most 32; the worker's own tick of each second is left out.
/// For the shell: it goes no further than the stand-in.
struct worker_note {
  time_point at;
  std::string type;
  std::vector<char>
    brief; ///< the first bytes of its content, as msgpack; bytes, so that they are not text on the wire
  std::int64_t wait_ns = -1, run_ns = -1; ///< -1: was not timed
  TROUPE_PACKED(at, type, brief, wait_ns, run_ns)
};
struct worker_heard {
  static constexpr const char* tag = "heard";
  std::uint64_t taken = 0; ///< messages received so far
  std::vector<worker_note> recent;
  TROUPE_PACKED(taken, recent)
};
using worker_word = std::variant<worker_status, worker_failure, worker_heard>;

inline const char* name(worker_phase x) {
  constexpr const char* names[] = {"starting", "ready", "training", "broken"};
  const auto n = static_cast<std::size_t>(x); // a task reports it, and may report any number
  return n < std::size(names) ? names[n] : "unknown";
}

} // namespace troupe::workers

MSGPACK_ADD_ENUM(troupe::workers::worker_phase)

namespace troupe::workers {

/// Encodes as [tag, [fields...]].
template <class... Kind>
std::string encode_worker(const std::variant<Kind...>& x) {
  msgpack::sbuffer bytes;
  msgpack::packer<msgpack::sbuffer> out(bytes);
  out.pack_array(2);
  std::visit([&](const auto& one) { out.pack(std::string(one.tag)).pack(one); }, x);
  return {bytes.data(), bytes.size()};
}

/// Fails with `corrupt` for bytes that hold none of the variant's kinds.
template <class Variant>
result<Variant> decode_worker(std::string_view bytes) {
  if (bytes.size() > max_worker_bytes)
    return error{errc::corrupt, "more than " + std::to_string(max_worker_bytes) + " bytes"};
  try {
    const auto whole = msgpack::unpack(bytes.data(), bytes.size());
    const auto& x = whole.get();
    if (x.type != msgpack::type::ARRAY || x.via.array.size < 2)
      return error{errc::corrupt, "not [kind, fields]"};
    const auto kind = x.via.array.ptr[0].as<std::string>();
    result<Variant> found = error{errc::corrupt, "'" + kind + "' is not one of the kinds"};
    [&]<std::size_t... At>(std::index_sequence<At...>) {
      const auto take = [&]<class Kind>(Kind one) {
        if (kind != Kind::tag)
          return;
        x.via.array.ptr[1].convert(one);
        found = Variant{std::move(one)};
      };
      (take(std::variant_alternative_t<At, Variant>{}), ...);
    }
    (std::make_index_sequence<std::variant_size_v<Variant>>{});
    return found;
  } catch (const std::exception& fault) {
    return error{errc::corrupt, fault.what()};
  }
}

} // namespace troupe::workers
