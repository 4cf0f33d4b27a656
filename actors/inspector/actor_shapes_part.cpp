#include "actors/inspector/actor_shapes_part.hpp"

#include <caf/all.hpp>

#include <cmath>

namespace troupe {

time_point wall_now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }
double in_seconds(duration x) { return std::chrono::duration<double>(x).count(); }

namespace {

value histogram(const std::array<std::uint64_t, tick_histogram::size>& counts,
                const tick_scale::moment& now) {
  value buckets = value::array();
  for (int i = 0; i < tick_histogram::size; ++i)
    if (counts[static_cast<std::size_t>(i)])
      buckets.push_back(
        {actor_shapes::us(tick_histogram::upper(i), now), counts[static_cast<std::size_t>(i)]});
  return {{"buckets", buckets},
          {"p50", actor_shapes::us(quantile(counts, 0.5), now)},
          {"p99", actor_shapes::us(quantile(counts, 0.99), now)}};
}

/// Returns the number that stands for an actor of another node; the desk replaces the number by the actor's
/// name.
std::string number_of(std::uint64_t id, std::uint32_t node) {
  return "#" + std::to_string(id) + (node ? "@" + std::to_string(node) : "");
}

} // namespace

value actor_shapes::us(std::uint64_t ticks) const { return us(ticks, reg_->scale.now()); }

value actor_shapes::us(std::uint64_t ticks, const moment& now) {
  if (ticks == not_timed)
    return nullptr;
  return std::round(now.microseconds(ticks) * 1000) / 1000;
}

const char* state_of(const probe& p) {
  if (const char* own = p.state())
    return own;
  return p.doing() ? "busy" : p.backlog() > 0 ? "queued" : "ready";
}

value actor_shapes::row_of(const probe& p, double msg_per_s, const moment& now) const {
  const auto run = p.runs().read(), wait = p.waits().read();
  value row = value::object();
  auto& out = row.get_ref<value::object_t&>();
  const auto add = [&](const char* key, value x) {
    out.emplace_hint(out.end(), key, std::move(x));
  }; // there are many rows: keys are added in the order of the map
  add("actor", p.name);
  add("backlog", p.backlog());
  add("kind", p.kind);
  add("messages", p.done());
  add("msg_per_s", std::round(msg_per_s * 10) / 10);
  add("node", node_);
  add("restarts", p.restarts);
  add("run_us_p50", us(quantile(run, 0.5), now));
  add("run_us_p99", us(quantile(run, 0.99), now));
  add("state", state_of(p));
  add("uptime_s", std::round(in_seconds(now.wall - p.since) * 10) / 10);
  add("wait_us_p50", us(quantile(wait, 0.5), now));
  add("wait_us_p99", us(quantile(wait, 0.99), now));
  return row;
}

value actor_shapes::note_of(const message_note& n, const probe& p, const moment& now) const {
  std::string from;
  if (n.sender)
    from = n.node == 0 ? reg_->name_of(n.sender) : std::string();
  if (n.sender && from.empty())
    from = number_of(n.sender, n.node);
  auto about = to_string_of(n.about);
  const caf::message_id id{n.request};
  if (about.empty() && (id.is_request() || id.is_response()))
    about = "req/" + std::to_string(id.is_response() ? p.actor_id : n.sender) + "." +
            std::to_string(id.request_id().integer_value() & caf::message_id::request_id_mask);
  else if (about.empty())
    about = to_string_of(p.about);
  return {{"at", to_rfc3339(now.wall_at(n.at))}, {"from", from},
          {"type", type_name(*system_, n.type)}, {"correlation", about},
          {"wait_us", us(n.wait, now)},          {"run_us", us(n.run, now)},
          {"text", text_of_brief(n.brief)}};
}

value actor_shapes::recent(const probe& p, std::size_t most) const {
  value rows = value::array();
  const auto now = reg_->scale.now();
  auto notes = p.recent();
  for (auto it = notes.size() > most ? notes.end() - static_cast<std::ptrdiff_t>(most) : notes.begin();
       it != notes.end(); ++it)
    rows.push_back(note_of(*it, p, now));
  return rows;
}

value actor_shapes::stats(const probe& p) const {
  value types = value::array();
  const auto now = reg_->scale.now();
  for (const auto& t : p.of_types())
    types.push_back({{"type", type_name(*system_, t.type)},
                     {"count", t.count},
                     {"run_us_p50", us(quantile(t.run, 0.5), now)}});
  return {{"actor", p.name},
          {"messages", p.done()},
          {"errors", p.errors()},
          {"restarts", p.restarts},
          {"wait_us", histogram(p.waits().read(), now)},
          {"run_us", histogram(p.runs().read(), now)},
          {"by_type", types}};
}

/// Runs on the thread of any actor.
std::string name_of(const probe_register& reg, const caf::node_id& home, const caf::actor_addr& x) {
  const auto node = node_code(x.node(), home);
  if (node == 0)
    if (auto known = reg.name_of(x.id()); !known.empty())
      return known;
  return number_of(x.id(), node);
}

value actor_shapes::links_of(const probe& p, const std::vector<std::string>& monitored) const {
  value rows = value::array();
  if (p.owner != "node")
    rows.push_back({{"actor", p.name}, {"peer", p.owner}, {"how", "owner"}});
  for (const auto& other : reg_->all())
    if (other->owner == p.name || (p.kind == "agent_node" && other->owner == p.kind))
      rows.push_back({{"actor", p.name}, {"peer", other->name}, {"how", "child"}});
  for (const auto& peer : monitored)
    rows.push_back({{"actor", p.name}, {"peer", peer}, {"how", "monitor"}});
  return rows;
}

/// Runs on the thread of the actor that is asked.
value ask_links(const probe_register& reg, probe_side& side) {
  value peers = value::array(), waits = value::array();
  const auto& home = side.self()->node();
  for (const auto& one : side.monitored())
    peers.push_back(name_of(reg, home, one));
  for (const auto& one : side.open())
    waits.push_back({{"actor", side.mine().name},
                     {"waits_for", name_of(reg, home, one.to)},
                     {"what", type_name(side.self()->system(), one.what)},
                     {"since_s", reg.scale.microseconds(ticks_now() - one.since) / 1e6}});
  return {{"peers", peers}, {"waits", waits}};
}

value actor_shapes::info(const probe& p, const value& got) const {
  const auto alive = std::max(0.001, in_seconds(wall_now() - p.since));
  return {{"identity",
           {{"actor", p.name},
            {"kind", p.kind},
            {"node", node_},
            {"id", p.actor_id},
            {"since", to_rfc3339(p.since)},
            {"owner", p.owner},
            {"restarts", p.restarts}}},
          {"links", links_of(p, got["peers"].get<std::vector<std::string>>())},
          {"waits_for", got["waits"]},
          {"work",
           {{"backlog", p.backlog()},
            {"messages", p.done()},
            {"msg_per_s", std::round(static_cast<double>(p.done()) / alive * 10) / 10},
            {"errors", p.errors()},
            {"doing", p.doing() ? type_name(*system_, p.doing()) : std::string()},
            {"state", state_of(p)}}},
          {"memory", {{"state_bytes", got.value("state_bytes", value())}, {"probe_bytes", sizeof(probe)}}},
          {"recent", recent(p, 8)}};
}

} // namespace troupe
