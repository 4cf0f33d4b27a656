// What the probe can read out of our messages: which trial or experiment they are about, and a short text.

#include "actors/probed_actor.hpp"

#include <sstream>

namespace troupe {
namespace {

constexpr std::size_t most_packed = 4096, most_text = 400;

correlation of(allocation_id id) { return id.trial ? correlate(correlation_kind::trial, id.trial.value) : 0; }
correlation of(trial_id id) { return id ? correlate(correlation_kind::trial, id.value) : 0; }
correlation of(experiment_id id) { return id ? correlate(correlation_kind::experiment, id.value) : 0; }

template <class T>
constexpr bool tells = requires(const T& x) { of(x.allocation); } || requires(const T& x) { of(x.trial); } ||
                       requires(const T& x) { of(x.origin.allocation); } || requires(const T& x) { of(x.experiment); } ||
                       requires(const T& x) { of(x.task.allocation); } || requires(const T& x) { of(x.id); } ||
                       requires(const T& x) { correlation_of_name(x.entity); };

template <class T>
correlation about(const void* content) {
  const auto& x = *static_cast<const T*>(content);
  if constexpr (requires { of(x.allocation); })
    return of(x.allocation);
  else if constexpr (requires { of(x.trial); })
    return of(x.trial);
  else if constexpr (requires { of(x.origin.allocation); })
    return of(x.origin.allocation);
  else if constexpr (requires { of(x.task.allocation); })
    return of(x.task.allocation);
  else if constexpr (requires { of(x.experiment); })
    return of(x.experiment);
  else if constexpr (requires { of(x.id); })
    return of(x.id);
  else
    return correlation_of_name(x.entity);
}

correlation about_order(const void* content) {
  const auto& x = *static_cast<const link_order*>(content);
  return !x.start.empty()     ? of(x.start[0].allocation)
         : !x.preempt.empty() ? of(x.preempt[0].allocation)
         : !x.kill.empty()    ? of(x.kill[0].allocation)
         : !x.forget.empty()  ? of(x.forget[0].allocation)
                              : 0;
}
correlation about_report(const void* content) {
  const auto& x = *static_cast<const link_report*>(content);
  return !x.started.empty() ? of(x.started[0].allocation) : !x.exited.empty() ? of(x.exited[0].allocation) : 0;
}
correlation about_command(const void* content) {
  const auto& x = *static_cast<const client_command*>(content);
  const auto id = x.fields.is_object() ? x.fields.value("id", value()) : value();
  if (id.is_number_integer() && x.name.starts_with("experiment."))
    return correlate(correlation_kind::experiment, id.get<std::uint64_t>());
  if (id.is_number_integer() && x.name.starts_with("trial."))
    return correlate(correlation_kind::trial, id.get<std::uint64_t>());
  return x.allocation.empty() ? 0 : of(parse_allocation(x.allocation));
}

/// Fields that open something are no text for people.
template <class T>
constexpr bool secret = std::is_same_v<T, register_agent> || std::is_same_v<T, registered> || std::is_same_v<T, harness_task> ||
                        std::is_same_v<T, launch_order> || std::is_same_v<T, start_ordered> || std::is_same_v<T, link_order> ||
                        std::is_same_v<T, task_news> || std::is_same_v<T, client_command>;

template <class T>
std::string text(const void* content) {
  const auto bytes = pack(*static_cast<const T*>(content));
  if (bytes.size() > most_packed)
    return std::to_string(bytes.size()) + " bytes";
  std::ostringstream out;
  out << msgpack::unpack(bytes.data(), bytes.size()).get();
  auto shown = out.str();
  for (auto& c : shown)
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
  if (shown.size() > most_text) {
    shown.resize(most_text);
    shown += "...";
  }
  return shown;
}

std::string command_text(const void* content) {
  const auto& x = *static_cast<const client_command*>(content);
  return x.name + " by " + (x.user.empty() ? x.allocation : x.user);
}

using reader_map = std::unordered_map<type_key, message_reader>;

template <class T>
void add(reader_map& to) {
  message_reader reads;
  if constexpr (packable<T>) {
    if constexpr (tells<T>)
      reads.about = about<T>;
    if constexpr (!secret<T>)
      reads.text = text<T>;
  }
  if constexpr (std::is_same_v<T, link_order>)
    reads.about = about_order;
  if constexpr (std::is_same_v<T, link_report>)
    reads.about = about_report;
  if constexpr (std::is_same_v<T, client_command>) {
    reads.about = about_command;
    reads.text = command_text;
  }
  to.emplace(reinterpret_cast<type_key>(&typeid(T)), reads);
}

template <std::size_t... I>
void add_all(reader_map& to, std::index_sequence<I...>) {
  (add<typename caf::type_by_id<caf::id_block::troupe::begin + I>::type>(to), ...);
}

} // namespace

const reader_map& message_readers() {
  static const reader_map all = [] {
    reader_map made;
    add_all(made, std::make_index_sequence<caf::id_block::troupe::end - caf::id_block::troupe::begin>{});
    return made;
  }();
  return all;
}

} // namespace troupe
