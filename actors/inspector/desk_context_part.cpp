#include "actors/inspector/desk_part.hpp"

#include <caf/all.hpp>

#include <charconv>

namespace troupe {
namespace {

constexpr std::size_t most_node_events = 256, most_names = 10'000;

/// Whether only the master has actors of this kind.
bool of_master(const std::string& kind) {
  constexpr const char* kinds[] = {"journal", "cluster", "experiment", "searcher", "trial", "allocation",
                                   "pool",    "agent",   "retention",  "remover",  "desk",  "task"};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

} // namespace

std::string field_text(const value& x, const char* name) {
  auto it = x.find(name);
  return it != x.end() && it->is_string() ? it->get<std::string>() : std::string();
}
double field_number(const value& x, const char* name, double otherwise) {
  auto it = x.find(name);
  return it != x.end() && it->is_number() ? it->get<double>() : otherwise;
}
std::string kind_of(const std::string& actor) { return actor.substr(0, actor.find('/')); }
std::string id_of(const std::string& actor) {
  const auto slash = actor.find('/');
  return slash == actor.npos ? std::string() : actor.substr(slash + 1);
}
std::string now_text() {
  return to_rfc3339(std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()));
}

std::optional<double> number_in_text(const std::string& x) {
  auto read = parse_json(x);
  return read && read->is_number() ? std::optional{read->get<double>()} : std::nullopt;
}

value missing_of(const named_answers& got) {
  value missing = value::array();
  for (const auto& [node, answer] : got)
    if (!answer)
      missing.push_back({{"node", node}, {"why", answer.error().what}});
  return missing;
}

value audit_row(const value& row) {
  return {{"at", field_text(row, "at")},
          {"kind", "audit"},
          {"actor", field_text(row, "actor")},
          {"what", field_text(row, "what")},
          {"user", field_text(row, "user")}};
}

desk_context::desk_context(actor_base<desk_actor>* me, desk_setup with) : self(me), setup(std::move(with)) {
  nodes_[setup.node] = {caf::actor_cast<caf::actor>(setup.inspector)};
}

std::vector<std::string> desk_context::nodes(bool here_now) const {
  std::vector<std::string> out;
  for (const auto& [name, one] : nodes_)
    if (!here_now || one.inspector)
      out.push_back(name);
  return out;
}

void desk_context::joined(node_joined x) {
  auto& one = nodes_[x.node];
  if (one.inspector == x.inspector)
    return;
  one.inspector = std::move(x.inspector);
  self->monitor(one.inspector);
  note("node", x.node, "joined", "");
}

void desk_context::node_down(const caf::down_msg& down) {
  for (auto& [name, one] : nodes_)
    if (one.inspector && one.inspector.address() == down.source) {
      one.inspector = nullptr;
      const bool left = !down.reason || down.reason == caf::exit_reason::remote_link_unreachable ||
                        down.reason == caf::exit_reason::user_shutdown;
      note("node", name, left ? "went away" : "its inspector died: " + from_caf(down.reason).what, "");
    }
}

void desk_context::note(const std::string& kind, const std::string& actor, const std::string& what,
                        const std::string& user) {
  value row{{"at", now_text()}, {"kind", kind}, {"actor", actor},
            {"what", what},     {"user", user}, {"node", setup.node}};
  if (on_event)
    on_event(row);
  events_.push_back(std::move(row));
  if (events_.size() > most_node_events)
    events_.pop_front();
}

void desk_context::ask(const std::string& where, inspect_request what, given then,
                       std::chrono::milliseconds patience) {
  auto it = nodes_.find(where);
  if (it == nodes_.end())
    return then(error{errc::not_found, "no node '" + where.substr(0, 200) + "'; `nodes` lists them"});
  if (!it->second.inspector)
    return then(error{errc::unreachable, "the node " + where + " is away"});
  self->request(it->second.inspector, patience, std::move(what))
    .then([then](command_result& answer) { then(std::move(answer.got)); },
          [then, where, patience](const caf::error& why) {
            auto fault = from_caf(why);
            if (fault.code == errc::timeout)
              fault.what =
                "the node " + where + " did not answer within " + std::to_string(patience.count()) + " ms";
            then(fault);
          });
}

void desk_context::ask_all(const std::string& only, inspect_request what,
                           std::function<void(named_answers)> then, std::chrono::milliseconds patience) {
  struct gathered {
    named_answers got;
    std::size_t left = 0;
  };
  auto all = std::make_shared<gathered>();
  std::vector<std::string> wanted;
  for (const auto& [name, one] : nodes_)
    if (only.empty() || name == only)
      wanted.push_back(name);
  all->left = wanted.size();
  if (wanted.empty())
    return then({});
  for (const auto& name : wanted)
    ask(
      name, what,
      [all, name, then](result<value> got) {
        all->got.emplace(name, std::move(got));
        if (--all->left == 0)
          then(std::move(all->got));
      },
      patience);
}

void desk_context::locate(const std::string& wanted, std::function<void(result<place>)> then) {
  const auto at = wanted.rfind('@');
  const auto actor = wanted.substr(0, at);
  auto where = at == wanted.npos ? std::string() : wanted.substr(at + 1);
  if (actor.empty())
    return then(error{errc::invalid, "the field 'actor' is missing"});
  if (!where.empty() && !nodes_.contains(where))
    return then(error{errc::not_found, "no node '" + where.substr(0, 200) + "'; `nodes` lists them"});
  if (where.empty() && of_master(kind_of(actor)))
    where = setup.node;
  ask_all(where, commands::inspect_here{actor}, [actor, then](named_answers got) {
    std::vector<place> found;
    std::string away;
    bool slow = false;
    for (auto& [node, answer] : got)
      if (answer)
        found.push_back({node, actor, field_text(*answer, "kind"), field_text(*answer, "owner"),
                         answer->value("id", std::uint64_t{0})});
      else if (answer.error().code != errc::not_found) {
        away += (away.empty() ? "" : ", ") + node;
        slow |= answer.error().code == errc::timeout;
      }
    if (found.size() == 1)
      return then(found[0]);
    if (found.size() > 1) {
      std::string names;
      for (const auto& one : found)
        names += (names.empty() ? "" : ", ") + actor + "@" + one.node;
      return then(
        error{errc::conflict, "several nodes have an actor '" + actor + "'\nhint: name one of " + names});
    }
    if (slow) // a node that did not answer may have the actor
      return then(error{errc::timeout, "no answer in time from " + away + ", which may have '" +
                                         actor.substr(0, 200) + "'; try again"});
    then(error{errc::not_found, "no actor '" + actor.substr(0, 200) + "'" +
                                  (away.empty() ? "" : "; not heard: " + away) +
                                  "\nhint: what has ended has no actor; `ps` lists those that live"});
  });
}

std::optional<desk_context::number> desk_context::number_in(const value& x) {
  if (!x.is_string())
    return {};
  const auto& text = x.get_ref<const std::string&>();
  const auto at = text.find('@');
  if (!text.starts_with('#') || at == text.npos)
    return {};
  number out;
  const auto* data = text.data();
  const auto actor = std::from_chars(data + 1, data + at, out.actor);
  const auto node = std::from_chars(data + at + 1, data + text.size(), out.node);
  if (actor.ec != std::errc{} || actor.ptr != data + at || node.ec != std::errc{} ||
      node.ptr != data + text.size())
    return {};
  return out;
}

void desk_context::each_number(value& body, const std::function<void(value&, number)>& use) {
  if (auto found = number_in(body))
    return use(body, *found);
  if (body.is_structured())
    for (auto& part : body)
      each_number(part, use);
}

std::string desk_context::node_of(const number& x) const {
  for (const auto& [name, one] : nodes_)
    if (one.inspector && node_code(one.inspector.node(), caf::node_id{}) == x.node)
      return name;
  return {};
}

void desk_context::with_names(value body, std::function<void(value)> then) {
  std::map<std::string, std::set<number>> wanted;
  each_number(body, [&](value&, number x) {
    if (!names_.contains(x))
      if (auto node = node_of(x); !node.empty())
        wanted[node].insert(x);
  });
  struct asking {
    value body;
    std::size_t left;
  };
  auto all = std::make_shared<asking>(asking{std::move(body), wanted.size()});
  auto finish = [this, all, then] {
    each_number(all->body, [this](value& place, number x) {
      const auto known = names_.find(x);
      const auto node = node_of(x);
      if (known == names_.end() || known->second.empty())
        place = "#" + std::to_string(x.actor) + "@" + (node.empty() ? std::to_string(x.node) : node);
      else if (known->second.find('/') != std::string::npos || of_master(known->second) || node.empty())
        place = known->second;
      else
        place = known->second + "@" + node;
    });
    then(std::move(all->body));
  };
  if (wanted.empty())
    return finish();
  if (names_.size() > most_names)
    names_.clear();
  for (auto& [node, numbers] : wanted) {
    commands::inspect_names question;
    for (const auto& x : numbers)
      question.ids.push_back(x.actor);
    ask(
      node, std::move(question),
      [this, all, finish, numbers = std::move(numbers)](result<value> got) {
        if (got)
          for (const auto& x : numbers)
            names_[x] = got->value("names", value::object()).value(std::to_string(x.actor), std::string());
        if (--all->left == 0)
          finish();
      },
      std::chrono::seconds(1));
  }
}

void desk_context::later(std::chrono::milliseconds wait, std::function<void()> what) {
  timers_.emplace(self->clock().now() + wait, std::move(what));
  self->delayed_send(desk_actor{self}, wait + std::chrono::milliseconds(1), time_passed{});
}

void desk_context::run_timers() {
  const auto now = self->clock().now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto what = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    what();
  }
}

} // namespace troupe
