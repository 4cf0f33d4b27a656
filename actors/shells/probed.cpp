#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe {

// ---- names

std::string type_name(const caf::actor_system& sys, type_key key) {
  if (key == 0)
    return "";
  if (key == 1)
    return "others";
  if (key == 2)
    return "done"; // an answer that has no content
  const auto& types = sys.types();
  std::string name = key < 256 ? types.portable_name(static_cast<std::uint16_t>(key - 16), nullptr)
                               : types.portable_name(0, reinterpret_cast<const std::type_info*>(key));
  for (auto at = name.find("troupe::"); at != name.npos; at = name.find("troupe::"))
    name.erase(at, 8);
  return name;
}

std::uint32_t node_code(const caf::node_id& of, const caf::node_id& home) {
  if (!of || of.operator->() == home.operator->() || of == home)
    return 0;
  const auto code = static_cast<std::uint32_t>(of->hash_code());
  return code ? code : 1;
}

// ---- probe_side

namespace {

/// The actor that makes this one again, derived from its name; "node" for the roots.
std::string owner_by_name(const std::string& name) {
  const auto slash = name.find('/');
  const auto kind = name.substr(0, slash);
  const auto rest = slash == name.npos ? std::string() : name.substr(slash + 1);
  if (kind == "experiment" || kind == "task" || kind == "pool" || kind == "agent" || kind == "retention" ||
      kind == "provider")
    return "cluster";
  if (kind == "provider_calls")
    return "provider/" + rest;
  if (kind == "searcher")
    return "experiment/" + rest;
  if (kind == "remover")
    return "retention";
  if (kind == "allocation") { // the number of a trial, or the UUID of another task
    const auto task = rest.substr(0, rest.find('.'));
    return (task.find('-') == task.npos ? "trial/" : "task/") + task;
  }
  if (kind == "harness" || kind == "log_pump" || kind == "worker_runtime" || kind == "worker")
    return "agent_node";
  return "node";
}

/// The reason of an end that nobody wanted; empty if the end was wanted.
std::string unwanted(const caf::error& why) {
  if (!why || why == caf::exit_reason::user_shutdown || why == caf::exit_reason::normal)
    return "";
  if (why == caf::exit_reason::kill)
    return "killed";
  return from_caf(why).what;
}

constexpr std::size_t most_held = 10'000; ///< limit of held messages

bool is_of_us(type_key type) { return type >= 256; }

// The actor that spawns another one makes its probe, and a worker thread of CAF enters it. CAF orders the
// two; the thread sanitizer does not see that, because CAF is built without it.
#ifdef __SANITIZE_THREAD__
void hand_over(const probe& x) { __tsan_release(const_cast<probe*>(&x)); }
void take_over(const probe& x) { __tsan_acquire(const_cast<probe*>(&x)); }
#else
void hand_over(const probe&) {}
void take_over(const probe&) {}
#endif

} // namespace

probe_side::probe_side(caf::local_actor* self) : self_(self), probe_(std::make_shared<probe>()) {
  if (const auto* ours = dynamic_cast<const node_config*>(&self->system().config()))
    register_ = ours->probes;
  hand_over(*probe_);
}

void probe_side::enter(std::string name, std::string owner) {
  take_over(*probe_);
  probe_->kind = name.substr(0, name.find('/'));
  probe_->owner = owner.empty() ? owner_by_name(name) : std::move(owner);
  probe_->about = correlation_of_name(name);
  probe_->name = std::move(name);
  probe_->actor_id = self_->id();
  probe_->since = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  if (register_)
    register_->add(probe_, caf::weak_actor_ptr{self_->ctrl()});
}

void probe_side::leave(const caf::error& why) {
  describe = nullptr;
  heard = nullptr;
  held_.clear();
  if (register_ && !probe_->name.empty())
    register_->remove(probe_, unwanted(why));
  register_.reset();
  watched_ = !shown_.empty(); // the current message is still shown
}

void probe_side::refresh() {
  seen_version_ = register_->version();
  watches_ = register_->watches();
  std::erase_if(watches_, [this](const auto& x) { return !x->concerns(*probe_); });
  faults_ = register_->faults();
  std::erase_if(faults_, [this](const auto& x) { return !x->actor.empty() && x->actor != probe_->name; });
  to_file_ = register_->tracing();
  watched_ = to_file_ || !watches_.empty() || !faults_.empty() || !held_.empty();
}

probe::type_slot* probe_side::new_slot(type_key type) {
  const auto& readers = message_readers();
  auto it = readers.find(type);
  return it == readers.end() ? probe_->add_slot(type, nullptr)
                             : probe_->add_slot(type, it->second.about, it->second.brief);
}

std::string probe_side::sender_name(const caf::mailbox_element& x) const {
  if (!x.sender)
    return "";
  const auto node = node_code(x.sender->node(), self_->node());
  if (node == 0)
    if (auto name = register_->name_of(x.sender->id()); !name.empty())
      return name;
  return "#" + std::to_string(x.sender->id()) + (node ? "@" + std::to_string(node) : "");
}

bool probe_side::let_in(caf::mailbox_element& x, type_key type, correlation about) {
  if (!register_)
    return true;
  const auto now = ticks_now();
  hand_at_ = now;
  if (!releasing_) {
    if (!held_.empty() && is_of_us(type)) { // behind the held messages, to keep the order
      hold(x, held_.back().due);
      return false;
    }
    for (auto& fault : faults_) {
      if (now > fault->until || !(is_of_us(type) || x.mid.is_response()))
        continue;
      if (fault->what == message_fault::kind::hold) {
        if (!x.sender || (fault->from_actor && x.sender->id() != fault->from_actor) ||
            (fault->from_node && node_code(x.sender->node(), self_->node()) != fault->from_node))
          continue;
        hold(x, fault->until);
        return false;
      }
      if (fault->left.fetch_sub(1) <= 0)
        continue;
      if (fault->what == message_fault::kind::drop) {
        register_->note("fault", probe_->name, "dropped " + type_name(self_->system(), type));
        probe_->not_counted();
        return false;
      }
      hold(x, now + fault->delay);
      return false;
    }
  }
  if (to_file_) {
    std::string types;
    const auto& content = static_cast<const caf::mailbox_element&>(x).content();
    for (std::size_t i = 0; i < content.size(); ++i)
      types += (i ? "," : "") + self_->system().types().portable_name(content.type(i));
    register_->write(probe_->name, types, to_string(content));
  }
  const auto request = x.mid.is_request() || x.mid.is_response() ? x.mid.request_id().integer_value() : 0;
  const auto requester = x.mid.is_response() ? self_->id() : x.sender ? x.sender->id() : 0;
  for (auto& watch : watches_) {
    if (!watch->admit(now, type, about ? about : probe_->about, requester, request))
      continue;
    message_watch::row row;
    row.at = now;
    row.actor = probe_->name;
    row.from = sender_name(x);
    row.type = type_name(self_->system(), type);
    row.about = to_string_of(about ? about : probe_->about);
    const auto& readers = message_readers();
    const auto& content = static_cast<const caf::mailbox_element&>(x).content();
    if (auto it = readers.find(type); it != readers.end() && it->second.text)
      row.text = it->second.text(content.get(0));
    shown_.emplace_back(watch, std::move(row));
  }
  return true;
}

void probe_side::watched_end(const probe::begun& b) {
  for (auto& [watch, row] : shown_) {
    row.wait = b.wait;
    row.run = ticks_now() - (b.at ? b.at : hand_at_);
    watch->add(std::move(row));
  }
  shown_.clear();
  std::erase_if(watches_, [](const auto& x) { return x->over(); });
  if (!faults_.empty())
    std::erase_if(faults_, [now = ticks_now()](const auto& x) {
      return now > x->until || (x->what != message_fault::kind::hold && x->left.load() <= 0);
    });
  watched_ = to_file_ || !watches_.empty() || !faults_.empty() || !held_.empty();
}

void probe_side::of_caf(const caf::mailbox_element& x, type_key type) {
  const auto& content = x.content();
  if (type == caf::type_nr<caf::down_msg>::value + 16u)
    monitors_not(content.get_as<caf::down_msg>(0).source);
  else if (type == caf::type_nr<caf::error>::value + 16u && x.mid.is_response())
    probe_->failed();
}

void probe_side::asked(caf::message_id answer, caf::actor_addr to, type_key what) {
  constexpr std::size_t most = 4096; // further requests are not noted
  if (open_.size() < most)
    open_.push_back({answer.integer_value(), std::move(to), what, ticks_now()});
  probe_->open_requests(open_.size());
}

void probe_side::answered(caf::message_id answer) {
  for (auto it = open_.begin(); it != open_.end(); ++it)
    if ((it->id & caf::message_id::request_id_mask) ==
        (answer.integer_value() & caf::message_id::request_id_mask)) {
      open_.erase(it);
      break;
    }
  probe_->open_requests(open_.size());
}

void probe_side::monitors_not(const caf::actor_addr& x) {
  if (auto it = std::find(monitored_.begin(), monitored_.end(), x); it != monitored_.end())
    monitored_.erase(it);
}

void probe_side::obey(caf::mailbox_element& x) {
  probe_->not_counted();
  const auto order = static_cast<const caf::mailbox_element&>(x).content().get_as<probe_order>(0);
  if (order.run && *order.run)
    (*order.run)(*this);
}

// ---- faults

void probe_side::hold(caf::mailbox_element& x, std::uint64_t due) {
  if (held_.size() >= most_held) { // limits what a fault may cost: all held messages are delivered
    for (auto& one : held_)
      one.due = 0;
    due = 0;
    wake(0);
  }
  probe_->not_counted(); // the message will arrive again
  held_.push_back(
    {caf::make_mailbox_element(std::move(x.sender), x.mid, std::move(x.stages), x.move_content_to_message()),
     due});
  if (held_.size() == 1) {
    const auto now = ticks_now();
    wake(due > now ? due - now : 0);
  }
}

void probe_side::wake(std::uint64_t in_ticks) {
  auto run =
    // Whatever is due is delivered after this order.
    std::make_shared<std::function<void(probe_side&)>>([](probe_side&) {});
  const auto wait = std::chrono::microseconds(
    static_cast<std::int64_t>(register_ ? register_->scale.microseconds(in_ticks) : 0) + 200);
  self_->system().clock().schedule_message(
    self_->clock().now() + wait, caf::strong_actor_ptr{self_->ctrl()},
    caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, probe_order{std::move(run)}));
}

caf::mailbox_element_ptr probe_side::next_due() {
  if (held_.empty())
    return nullptr;
  const auto now = ticks_now();
  if (held_.front().due > now) {
    wake(held_.front().due - now);
    return nullptr;
  }
  auto mail = std::move(held_.front().mail);
  held_.pop_front();
  probe_->arrived();
  return mail;
}

} // namespace troupe
