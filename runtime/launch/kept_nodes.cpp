#include "runtime/launch/kept_nodes.hpp"

#include "model/back_off.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {
namespace {

std::string text(const value& x, const char* key) {
  const auto it = x.is_object() ? x.find(key) : x.end();
  return x.is_object() && it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}

value without_pool(value node) {
  if (node.is_object())
    node.erase("pool");
  return node;
}

} // namespace

bool is_remote(const value& node) { return node.contains("ssh") && node["ssh"].is_object(); }

std::vector<keeper_action> kept_nodes::apply(const keeper_event& ev, time_point now) {
  out o;
  std::visit([&](const auto& x) { on(o, x, now); }, ev);
  return o;
}

std::vector<end_agent> kept_nodes::stop() {
  std::vector<end_agent> all;
  for (auto& [name, one] : nodes_)
    all.push_back({name, std::move(one.node)});
  nodes_.clear();
  return all;
}

/// Ends a node and starts it again if something other than its pool has changed.
void kept_nodes::on(out& o, const nodes_wanted& ev, time_point now) {
  std::map<std::string, value> named;
  for (const auto& one : ev.nodes)
    if (!one.value("manual", false))
      named[text(one, "name")] = one;
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const auto same = named.find(it->first);
    if (same != named.end() && without_pool(same->second) == without_pool(it->second.node)) {
      it->second.node = same->second; // the master itself moves the agent into another pool
      ++it;
      continue;
    }
    o.push_back(say_line{"node " + it->first +
                         (same == named.end() ? ": its agent is stopped" : ": its agent is started again")});
    o.push_back(end_agent{it->first, it->second.node});
    it = nodes_.erase(it);
  }
  for (auto& [name, node] : named)
    if (!nodes_.contains(name)) {
      kept_node fresh;
      fresh.node = node;
      fresh.due = now;
      nodes_.emplace(name, std::move(fresh));
    }
  on(o, clock_ticked{}, now);
}

void kept_nodes::on(out& o, const clock_ticked&, time_point now) {
  for (auto& [name, one] : nodes_) {
    if (one.running && is_remote(one.node) && now > one.begun + ssh_limit)
      o.push_back(kill_ssh{name});
    if (one.running || now < one.due)
      continue;
    one.running = true;
    one.begun = now;
    o.push_back(start_agent{name, one.node});
  }
}

void kept_nodes::on(out& o, const start_tried& ev, time_point now) {
  const auto it = nodes_.find(ev.name);
  if (it == nodes_.end() || ev.fault.empty())
    return;
  it->second.running = false;
  o.push_back(say_line{fmt::format("node {}: cannot start it: {}", ev.name, ev.fault)});
  put_off(it->second, now);
}

void kept_nodes::on(out& o, const child_ended& ev, time_point now) {
  const auto it = nodes_.find(ev.name);
  if (it == nodes_.end() || !it->second.running)
    return;
  auto& one = it->second;
  one.running = false;
  const bool remote = is_remote(one.node);
  if (remote && ev.exit_code == 0) {
    if (!std::exchange(one.up, true))
      o.push_back(say_line{fmt::format("node {}: its agent runs on {}", ev.name, text(one.node, "host"))});
    one.failures = 0;
    one.due = now + remote_every;
    return;
  }
  one.up = false;
  if (now - one.begun > good_life)
    one.failures = 0;
  const auto wait = put_off(one, now);
  o.push_back(say_line{
    fmt::format("node {}: {}{}; again in {} ms; its log is {}/{}.log", ev.name, remote ? "ssh" : "its agent",
                ev.exit_code >= 0 ? " ended with exit code " + std::to_string(ev.exit_code)
                                  : " was killed by signal " + std::to_string(ev.signal),
                std::chrono::duration_cast<std::chrono::milliseconds>(wait).count(), logs_, ev.name)});
}

duration kept_nodes::put_off(kept_node& one, time_point now) {
  const auto wait = back_off(++one.failures, first_wait, longest_wait);
  one.due = now + wait;
  return wait;
}

} // namespace troupe::launch
