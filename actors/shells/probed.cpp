#include "actors/shells/probed.hpp"

#include "actors/shells/borrowed_system.hpp"

#include <caf/actor_clock.hpp>
#include <caf/all.hpp>

#include <ctime>
#include <map>
#include <shared_mutex>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe {
namespace {

/// One table for the process; empty, it costs a load.
template <class Key, class Data>
class side_table {
public:
  bool put(const Key* key, Data data) {
    std::lock_guard lock(mutex_);
    const bool fresh = data_.emplace(key, std::move(data)).second;
    size_ = data_.size();
    return fresh;
  }
  void take(const Key* key) {
    std::lock_guard lock(mutex_);
    data_.erase(key);
    size_ = data_.size();
  }
  Data of(const Key* key) const {
    if (size_.load(std::memory_order_relaxed) == 0)
      return {};
    std::shared_lock lock(mutex_);
    auto found = data_.find(key);
    return found == data_.end() ? Data{} : found->second;
  }

private:
  mutable std::shared_mutex mutex_;
  std::atomic<std::size_t> size_{0};
  std::map<const Key*, Data> data_;
};

auto& other_clocks() {
  static side_table<caf::actor_clock, std::function<time_point()>> table;
  return table;
}
auto& borrowed_systems() {
  static side_table<caf::actor_system, bool> table;
  return table;
}

} // namespace

other_wall_time::other_wall_time(const caf::actor_clock& clock, std::function<time_point()> now)
    : clock_(&clock) {
  other_clocks().put(clock_, std::move(now));
}
other_wall_time::~other_wall_time() { other_clocks().take(clock_); }

result<std::unique_ptr<borrowed_system>> borrowed_system::take(const caf::actor_system& sys) {
  std::unique_ptr<borrowed_system> out(new borrowed_system(sys));
  if (borrowed_systems().put(&sys, true))
    return out;
  out->sys_ = nullptr;
  return error{errc::conflict,
               "this actor system holds a node already\nhint: give each node an actor system of its own"};
}
borrowed_system::~borrowed_system() {
  if (sys_)
    borrowed_systems().take(sys_);
}

// ---- message_watch

message_watch::message_watch(wanted what, const tick_scale& scale)
    : what_(std::move(what)), second_(scale.ticks(std::chrono::seconds(1))), any_about_(what_.about.empty()) {
}

bool message_watch::concerns(const probe& who) const {
  return !over() && (what_.actor.empty() || what_.actor == who.name) &&
         (what_.kind.empty() || what_.kind == who.kind);
}

bool message_watch::admit(std::uint64_t now, type_key type, correlation about, std::uint64_t requester,
                          std::uint64_t request) {
  if (over())
    return false;
  if (!what_.types.empty() && std::find(what_.types.begin(), what_.types.end(), type) == what_.types.end())
    return false;
  if (what_.request && (what_.request != request || what_.requester != requester))
    return false;
  if (now > what_.until) {
    over_.store(true, std::memory_order_relaxed);
    return false;
  }
  if (!what_.request && !any_about_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(mutex_);
    if (std::find(what_.about.begin(), what_.about.end(), about) == what_.about.end())
      return false;
  }
  seen_.fetch_add(1, std::memory_order_relaxed);
  if (now - window_.load(std::memory_order_relaxed) > second_) {
    window_.store(now, std::memory_order_relaxed);
    in_window_.store(0, std::memory_order_relaxed);
  }
  if (in_window_.fetch_add(1, std::memory_order_relaxed) >= what_.per_second) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const auto shown = shown_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (shown >= what_.most)
    over_.store(true, std::memory_order_relaxed);
  return shown <= what_.most;
}

void message_watch::add(row x) {
  std::lock_guard lock(mutex_);
  if (rows_.size() < queue)
    return rows_.push_back(std::move(x));
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<message_watch::row> message_watch::take(tally& so_far) {
  std::lock_guard lock(mutex_);
  std::vector<row> out(std::make_move_iterator(rows_.begin()), std::make_move_iterator(rows_.end()));
  rows_.clear();
  so_far.seen = seen_.load(std::memory_order_relaxed);
  so_far.dropped = dropped_.load(std::memory_order_relaxed);
  so_far.shown = std::min(shown_.load(std::memory_order_relaxed), what_.most);
  so_far.over = over() || ticks_now() > what_.until;
  return out;
}

void message_watch::about(std::vector<correlation> x) {
  std::lock_guard lock(mutex_);
  what_.about = std::move(x);
  any_about_.store(what_.about.empty(), std::memory_order_relaxed);
}

// ---- probe_register

namespace {
constexpr std::size_t most_events = 512, most_ended = 1000, most_dead = 10'000;
constexpr std::size_t most_faults = 64, most_held = 10'000;
} // namespace

probe_register::~probe_register() {
  if (trace_)
    std::fclose(trace_);
}

void probe_register::add(std::shared_ptr<probe> p, caf::weak_actor_ptr who) {
  std::lock_guard lock(mutex_);
  names_[p->actor_id] = p->name;
  if (dead_.erase(p->name)) {
    ++restarts_[p->name];
    note_locked("supervision", p->name, "is back, restart " + std::to_string(restarts_[p->name]), "");
  }
  if (auto it = restarts_.find(p->name); it != restarts_.end())
    p->restarts = it->second;
  auto& place = live_[p->name];
  place = {std::move(p), std::move(who)};
}

void probe_register::remove(const std::shared_ptr<probe>& p, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (auto it = live_.find(p->name); it != live_.end() && it->second.what == p)
    live_.erase(it);
  ended_.push_back(p->actor_id);
  if (ended_.size() > most_ended) {
    names_.erase(ended_.front());
    ended_.pop_front();
  }
  if (why.empty())
    return;
  if (dead_.size() < most_dead)
    dead_.insert(p->name);
  note_locked("supervision", p->name, "died: " + why, "");
}

std::vector<std::shared_ptr<probe>> probe_register::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<probe>> out;
  out.reserve(live_.size());
  for (const auto& [name, one] : live_)
    out.push_back(one.what);
  return out;
}

std::optional<probe_register::entry> probe_register::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = live_.find(name);
  return it == live_.end() ? std::nullopt : std::optional{it->second};
}

std::string probe_register::name_of(std::uint64_t actor_id) const {
  std::lock_guard lock(mutex_);
  auto it = names_.find(actor_id);
  return it == names_.end() ? std::string() : it->second;
}

int probe_register::restarts(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = restarts_.find(name);
  return it == restarts_.end() ? 0 : it->second;
}

void probe_register::watch(std::shared_ptr<message_watch> x) {
  std::lock_guard lock(mutex_);
  watches_.push_back(std::move(x));
  changed();
}

void probe_register::unwatch(const std::shared_ptr<message_watch>& x) {
  std::lock_guard lock(mutex_);
  std::erase(watches_, x);
  changed();
}

void probe_register::disturb(std::shared_ptr<message_fault> x) {
  std::lock_guard lock(mutex_);
  std::erase_if(faults_, [now = ticks_now()](const auto& f) { return f->until < now; });
  if (faults_.size() >= most_faults)
    faults_.erase(faults_.begin());
  faults_.push_back(std::move(x));
  changed();
}

void probe_register::forget_faults() {
  std::lock_guard lock(mutex_);
  for (auto& f : faults_)
    f->left = 0;
  faults_.clear();
  changed();
}

std::vector<std::shared_ptr<message_watch>> probe_register::watches() const {
  std::lock_guard lock(mutex_);
  return watches_;
}

std::vector<std::shared_ptr<message_fault>> probe_register::faults() const {
  std::lock_guard lock(mutex_);
  return faults_;
}

void probe_register::note(std::string kind, std::string actor, std::string what, std::string user) {
  std::lock_guard lock(mutex_);
  note_locked(std::move(kind), std::move(actor), std::move(what), std::move(user));
}

void probe_register::note_locked(std::string kind, std::string actor, std::string what, std::string user) {
  const auto at = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  if (log_level.load(std::memory_order_relaxed) >= 3)
    std::fprintf(stderr, "%s %s %s %s\n", to_rfc3339(at).c_str(), kind.c_str(), actor.c_str(), what.c_str());
  events_.push_back(
    {++newest_event_, at, std::move(kind), std::move(actor), std::move(what), std::move(user)});
  if (events_.size() > most_events)
    events_.pop_front();
}

std::vector<supervision_event> probe_register::events(std::uint64_t after, std::size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<supervision_event> out;
  for (const auto& one : events_)
    if (one.number > after)
      out.push_back(one);
  if (out.size() > most)
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(most));
  return out;
}

result<void> probe_register::trace_to(const std::string& file) {
  std::lock_guard lock(mutex_);
  trace_ = std::fopen(file.c_str(), "we");
  if (!trace_)
    return error{errc::io, "cannot write the trace to '" + file + "'"};
  trace_on_ = true;
  changed();
  return {};
}

void probe_register::write(const std::string& actor, const std::string& what, const std::string& text) {
  auto at = std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
  auto line = to_rfc3339(at) + " " + actor + " " + what + " " + text;
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
  if (line.size() > 2000)
    line.resize(2000);
  line += '\n';
  std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), trace_);
  std::fflush(trace_);
}

// ---- names

std::string type_name(const caf::actor_system& sys, type_key key) {
  if (key == 0)
    return "";
  if (key == 1)
    return "others";
  if (key == 2)
    return "done"; // an answer without content
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

/// Who makes it anew, as its name says; "node" for the roots.
std::string owner_by_name(const std::string& name) {
  const auto slash = name.find('/');
  const auto kind = name.substr(0, slash);
  const auto rest = slash == name.npos ? std::string() : name.substr(slash + 1);
  if (kind == "experiment" || kind == "pool" || kind == "agent" || kind == "retention")
    return "cluster";
  if (kind == "searcher")
    return "experiment/" + rest;
  if (kind == "allocation")
    return "trial/" + rest.substr(0, rest.find('.'));
  if (kind == "worker")
    return "worker_runtime";
  if (kind == "harness" || kind == "log_pump" || kind == "worker_runtime")
    return "agent_node";
  return "node";
}

/// An end that nobody wanted, in words.
std::string unwanted(const caf::error& why) {
  if (!why || why == caf::exit_reason::user_shutdown || why == caf::exit_reason::normal)
    return "";
  if (why == caf::exit_reason::kill)
    return "killed";
  return from_caf(why).what;
}

bool is_of_us(type_key type) { return type >= 256; }

// Who spawns an actor makes its probe, a worker of CAF enters it. CAF orders the two, and is not built with
// the thread sanitizer.
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
  watched_ = !shown_.empty(); // the message in hand is still shown
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
    if (!held_.empty() && is_of_us(type)) { // in order behind what is held
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
  constexpr std::size_t most = 4096; // further ones are not noted
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
  if (held_.size() >= most_held) { // a bound on what a fault may cost: all that is held goes on
    for (auto& one : held_)
      one.due = 0;
    due = 0;
    wake(0);
  }
  probe_->not_counted(); // it comes again
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
    std::make_shared<std::function<void(probe_side&)>>([](probe_side&) {}); // what is due is taken after it
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

// ---- clocks

time_point boot_time() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point{std::chrono::duration_cast<duration>(std::chrono::seconds(t.tv_sec) +
                                                         std::chrono::nanoseconds(t.tv_nsec))};
}

time_point wall_time(const caf::actor_clock& clock) {
  if (auto other = other_clocks().of(&clock))
    return other();
  // One offset for the process: CAF's clock is monotonic, facts carry wall time.
  static const auto offset =
    std::chrono::system_clock::now().time_since_epoch() - std::chrono::steady_clock::now().time_since_epoch();
  return time_point{std::chrono::duration_cast<duration>(clock.now().time_since_epoch() + offset)};
}

} // namespace troupe
