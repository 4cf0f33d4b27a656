// What the probe can read out of our messages: which trial or experiment they are about, and a short text.

#include "actors/shells/probed.hpp"

#include <algorithm>
#include <bit>
#include <sstream>

namespace troupe {
namespace {

constexpr std::size_t most_packed = 4096, most_text = 400;

correlation of(task_id id) { return correlation_of(id); }
correlation of(allocation_id id) { return correlation_of(id.task); }
correlation of(trial_id id) { return id ? correlate(correlation_kind::trial, id.value) : 0; }
correlation of(experiment_id id) { return id ? correlate(correlation_kind::experiment, id.value) : 0; }

template <class T>
constexpr bool tells = requires(const T& x) {
  of(x.allocation);
}
|| requires(const T& x) { of(x.trial); }
|| requires(const T& x) { of(x.origin.allocation); }
|| requires(const T& x) { of(x.task); }
|| requires(const T& x) { of(x.experiment); }
|| requires(const T& x) { of(x.task.allocation); }
|| requires(const T& x) { of(x.id); }
|| requires(const T& x) { correlation_of_name(x.entity); };

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
  else if constexpr (requires { of(x.task); })
    return of(x.task);
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
  return !x.started.empty()  ? of(x.started[0].allocation)
         : !x.exited.empty() ? of(x.exited[0].allocation)
                             : 0;
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

/// Whether messages of this type hold secrets, which people must not see.
template <class T>
constexpr bool secret =
  std::is_same_v<T, register_agent> || std::is_same_v<T, registered> || std::is_same_v<T, harness_task> ||
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

/// Shows only the tags of facts: a fact may hold a whole configuration, with the secrets of a bucket.
std::string facts_text(const void* content) {
  const auto& x = *static_cast<const append_facts*>(content);
  auto shown = x.entity + " from " + std::to_string(x.first) + ":";
  for (const auto& bytes : x.facts) {
    const auto one = decode(bytes);
    shown += one ? std::visit([](const auto& f) { return std::string(" ") + f.tag; }, *one) : " unknown";
    if (shown.size() > most_text)
      return shown + " ...";
  }
  return shown;
}

template <class T>
std::size_t brief(const void* content, char* to, std::size_t most) {
  return pack_beginning(*static_cast<const T*>(content), to, most);
}
std::size_t facts_brief(const void* content, char* to, std::size_t most) {
  const auto& x = *static_cast<const append_facts*>(content);
  return pack_beginning(std::pair<std::string_view, std::uint64_t>(x.entity, x.first), to, most);
}
std::size_t command_brief(const void* content, char* to, std::size_t most) {
  const auto& x = *static_cast<const client_command*>(content);
  return pack_beginning(
    std::pair<std::string_view, std::string_view>(x.name, x.user.empty() ? x.allocation : x.user), to, most);
}

/// Reads msgpack up to the byte where it was cut off.
class brief_text {
public:
  explicit brief_text(std::string_view bytes) : left_(bytes) { one(); }
  std::string take() { return std::move(out_); }

private:
  bool cut() {
    if (!std::exchange(cut_, true))
      out_ += "...";
    return false;
  }
  bool number(std::size_t bytes, std::uint64_t& x) {
    if (left_.size() < bytes)
      return cut();
    x = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      x = x << 8 | static_cast<unsigned char>(left_[i]);
    left_.remove_prefix(bytes);
    return true;
  }
  template <class Float, class Bits>
  bool real() {
    std::uint64_t bits = 0;
    if (!number(sizeof(Bits), bits))
      return false;
    std::ostringstream text;
    text << std::bit_cast<Float>(static_cast<Bits>(bits));
    return say(text.str());
  }
  bool say(const std::string& x) {
    out_ += x;
    return true;
  }
  bool text(std::uint64_t size) {
    const auto shown = left_.substr(0, size);
    if (std::any_of(shown.begin(), shown.end(),
                    [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\t'; }))
      return bytes(size);
    out_ += '"';
    for (char c : shown)
      out_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (left_.size() < size)
      return cut();
    left_.remove_prefix(size);
    return say("\"");
  }
  bool bytes(std::uint64_t size) {
    say(std::to_string(size) + " bytes");
    if (left_.size() < size)
      return cut();
    left_.remove_prefix(size);
    return true;
  }
  bool list(std::uint64_t size, bool pairs) {
    out_ += pairs ? '{' : '[';
    for (std::uint64_t i = 0; i < size; ++i) {
      if (i > 0)
        out_ += ", ";
      if (!one() || (pairs && !(say(": ") && one())))
        return false;
    }
    out_ += pairs ? '}' : ']';
    return true;
  }
  template <class Use>
  bool sized(std::size_t bytes, Use use) {
    std::uint64_t size = 0;
    return number(bytes, size) && use(size);
  }
  bool one() {
    std::uint64_t kind = 0, x = 0;
    if (++deep_ > 8 || !number(1, kind))
      return cut();
    struct rises {
      int& deep;
      ~rises() { --deep; }
    } const on_return{deep_};
    const auto as_text = [this](std::uint64_t n) { return text(n); };
    const auto as_bytes = [this](std::uint64_t n) { return bytes(n); };
    const auto as_list = [this](std::uint64_t n) { return list(n, false); };
    const auto as_map = [this](std::uint64_t n) { return list(n, true); };
    if (kind < 0x80)
      return say(std::to_string(kind));
    if (kind >= 0xe0)
      return say(std::to_string(static_cast<std::int8_t>(kind)));
    if (kind < 0x90)
      return list(kind & 0x0f, true);
    if (kind < 0xa0)
      return list(kind & 0x0f, false);
    if (kind < 0xc0)
      return text(kind & 0x1f);
    switch (kind) {
    case 0xc0:
      return say("null");
    case 0xc2:
      return say("false");
    case 0xc3:
      return say("true");
    case 0xc4:
      return sized(1, as_bytes);
    case 0xc5:
      return sized(2, as_bytes);
    case 0xc6:
      return sized(4, as_bytes);
    case 0xca:
      return real<float, std::uint32_t>();
    case 0xcb:
      return real<double, std::uint64_t>();
    case 0xcc:
      return number(1, x) && say(std::to_string(x));
    case 0xcd:
      return number(2, x) && say(std::to_string(x));
    case 0xce:
      return number(4, x) && say(std::to_string(x));
    case 0xcf:
      return number(8, x) && say(std::to_string(x));
    case 0xd0:
      return number(1, x) && say(std::to_string(static_cast<std::int8_t>(x)));
    case 0xd1:
      return number(2, x) && say(std::to_string(static_cast<std::int16_t>(x)));
    case 0xd2:
      return number(4, x) && say(std::to_string(static_cast<std::int32_t>(x)));
    case 0xd3:
      return number(8, x) && say(std::to_string(static_cast<std::int64_t>(x)));
    case 0xd9:
      return sized(1, as_text);
    case 0xda:
      return sized(2, as_text);
    case 0xdb:
      return sized(4, as_text);
    case 0xdc:
      return sized(2, as_list);
    case 0xdd:
      return sized(4, as_list);
    case 0xde:
      return sized(2, as_map);
    case 0xdf:
      return sized(4, as_map);
    default:
      return cut();
    }
  }

  std::string_view left_;
  std::string out_;
  bool cut_ = false;
  int deep_ = 0;
};

using reader_map = std::unordered_map<type_key, message_reader>;

template <class T>
void add(reader_map& to) {
  message_reader reads;
  if constexpr (packable<T>) {
    if constexpr (tells<T>)
      reads.about = about<T>;
    if constexpr (!secret<T>) {
      reads.text = text<T>;
      reads.brief = brief<T>;
    }
  }
  if constexpr (std::is_same_v<T, link_order>)
    reads.about = about_order;
  if constexpr (std::is_same_v<T, link_report>)
    reads.about = about_report;
  if constexpr (std::is_same_v<T, append_facts>) {
    reads.text = facts_text;
    reads.brief = facts_brief;
  }
  if constexpr (std::is_same_v<T, client_command>) {
    reads.about = about_command;
    reads.text = command_text;
    reads.brief = command_brief;
  }
  to.emplace(reinterpret_cast<type_key>(&typeid(T)), reads);
}

template <std::size_t... I>
void add_all(reader_map& to, std::index_sequence<I...>) {
  (add<typename caf::type_by_id<caf::id_block::troupe::begin + I>::type>(to), ...);
}

} // namespace

std::string text_of_brief(std::string_view bytes) {
  return bytes.empty() ? std::string() : brief_text(bytes).take();
}

const reader_map& message_readers() {
  static const reader_map all = [] {
    reader_map made;
    add_all(made, std::make_index_sequence<caf::id_block::troupe::end - caf::id_block::troupe::begin>{});
    return made;
  }();
  return all;
}

} // namespace troupe
