#include "actors/inspector/desk_part.hpp"
#include "actors/inspector/operator_table.hpp"
#include "actors/inspector/state_path.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

/// Adds the node's name to each actor's name that several nodes have.
void tell_apart(value& rows) {
  std::map<std::string, int> seen;
  for (const auto& row : rows)
    ++seen[field_text(row, "actor")];
  for (auto& row : rows)
    if (auto name = field_text(row, "actor"); seen[name] > 1)
      row["actor"] = name + "@" + field_text(row, "node");
}

/// Sorts numbers from the largest, and text alphabetically.
result<void> sorted(value& rows, const std::string& by) {
  if (rows.empty())
    return {};
  const auto key = by.empty() ? std::string("actor") : by;
  if (!rows[0].contains(key)) {
    std::string known;
    for (const auto& [name, x] : rows[0].items())
      known += (known.empty() ? "" : ", ") + name;
    return error{errc::invalid,
                 "the field 'sort': no column '" + key.substr(0, 100) + "'\nhint: the columns are " + known};
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const value& a, const value& b) {
    const auto &x = a[key], &y = b[key];
    if (x.is_string() && y.is_string())
      return x.get_ref<const std::string&>() < y.get_ref<const std::string&>();
    return (x.is_number() ? x.get<double>() : -1) > (y.is_number() ? y.get<double>() : -1);
  });
  return {};
}

} // namespace

void shell_views::on(const commands::shell_log&, given done) {
  desk_.ask(desk_.setup.node, commands::inspect_log{}, done);
}

void shell_views::on(const commands::shell_messages&, given done) {
  done(value{{"rows", operator_message_rows()}, {"missing", value::array()}});
}

void shell_views::on(const commands::shell_nodes&, given done) {
  desk_.ask_all("", commands::inspect_node{}, [this, done](named_answers got) {
    desk_.self->request(desk_.setup.cluster, node_patience, client_command_of(commands::agent_list{}))
      .then([this, done, got](
              command_result& agents) { done(join_nodes(got, agents.got ? *agents.got : value::object())); },
            [this, done, got](const caf::error&) { done(join_nodes(got, value::object())); });
  });
}

value shell_views::join_nodes(const named_answers& got, const value& listed) const {
  std::map<std::string, value> rows;
  for (const auto& [node, answer] : got) {
    const auto& a = answer ? *answer : value::object();
    rows[node] = {{"node", node},
                  {"role", a.value("role", "agent")},
                  {"state", answer ? "up" : "away"},
                  {"slots", 0},
                  {"used", 0},
                  {"actors", a.value("actors", value())},
                  {"backlog", a.value("backlog", value())},
                  {"version", a.value("version", value())},
                  {"uptime_s", a.value("uptime_s", value())}};
  }
  for (const auto& agent : listed.value("agents", value::array())) {
    const auto name = field_text(agent, "name");
    auto& row = rows[name == desk_.setup.local_agent ? desk_.setup.node : name];
    if (row.is_null())
      row = {{"node", name},       {"role", "agent"},    {"actors", value()},
             {"backlog", value()}, {"version", value()}, {"uptime_s", value()}};
    std::size_t used = 0;
    for (const auto& slot : agent.value("slots", value::array()))
      used += slot.contains("allocation") ? 1 : 0;
    row["slots"] = agent.value("slots", value::array()).size();
    row["used"] = used;
    const auto state = field_text(agent, "state");
    if (state != "alive" || row.value("state", value()) != "up")
      row["state"] = state == "alive" ? "up" : state;
  }
  value out = value::array();
  for (auto& [name, row] : rows)
    out.push_back(std::move(row));
  return {{"rows", std::move(out)}, {"missing", missing_of(got)}};
}

void shell_views::on(const commands::shell_ps& f, given done) {
  const auto window =
    std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(f.window, 0.0, 60.0) * 1000));
  const auto& node = f.node;
  if (!node.empty() && !desk_.knows(node))
    return done(error{errc::not_found, "no node '" + node.substr(0, 200) + "'; `nodes` lists them"});
  desk_.ask_all(
    node, commands::inspect_ps{static_cast<std::uint64_t>(window.count()), f.kind},
    [f, done](named_answers got) {
      value rows = value::array();
      for (auto& [name, answer] : got)
        if (answer)
          for (auto& row : (*answer)["rows"])
            rows.push_back(std::move(row));
      tell_apart(rows);
      if (const auto& part = f.filter; !part.empty()) {
        value kept = value::array();
        for (auto& row : rows)
          if (field_text(row, "actor").find(part) != std::string::npos)
            kept.push_back(std::move(row));
        rows = std::move(kept);
      }
      if (auto ok = sorted(rows, f.sort); !ok)
        return done(ok.error());
      const auto top = static_cast<std::size_t>(f.top);
      if (top > 0 && rows.size() > top)
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(top), rows.end());
      done(value{{"rows", std::move(rows)}, {"missing", missing_of(got)}});
    },
    node_patience + window);
}

template <class Question>
void shell_views::of_actor(Question question, given done) {
  const auto wanted = question.actor;
  desk_.locate(wanted, [this, question, done](result<desk_context::place> at) mutable {
    if (!at)
      return done(at.error());
    question.actor = at->actor;
    desk_.ask(at->node, std::move(question), [this, done](result<value> got) {
      constexpr bool is_rows =
        std::is_same_v<Question, commands::inspect_msgs> || std::is_same_v<Question, commands::inspect_links>;
      if (!got || !(is_rows || std::is_same_v<Question, commands::inspect_info>))
        return done(std::move(got));
      if constexpr (is_rows)
        (*got)["missing"] = value::array();
      desk_.with_names(std::move(*got), [done](value named) { done(std::move(named)); });
    });
  });
}

void shell_views::on(const commands::shell_info& x, given done) {
  of_actor(commands::inspect_info{x.actor}, std::move(done));
}
void shell_views::on(const commands::shell_msgs& x, given done) {
  of_actor(commands::inspect_msgs{x.actor, x.max}, std::move(done));
}
void shell_views::on(const commands::shell_stats& x, given done) {
  of_actor(commands::inspect_stats{x.actor}, std::move(done));
}
void shell_views::on(const commands::shell_links& x, given done) {
  of_actor(commands::inspect_links{x.actor}, std::move(done));
}
void shell_views::on(const commands::shell_state& x, given done) {
  if (x.diff > 0)
    return state_diff(x, std::move(done));
  of_actor(commands::inspect_state{x.actor, x.path}, std::move(done));
}

void shell_views::state_diff(const commands::shell_state& x, given done) {
  const auto wait = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(x.diff, 60.0) * 1000));
  const commands::inspect_state question{x.actor, x.path};
  of_actor(question, [this, question, wait, done](result<value> first) {
    if (!first)
      return done(first.error());
    desk_.later(wait, [this, question, done, before = std::move(*first)] {
      of_actor(question, [done, before](result<value> second) {
        if (!second)
          return done(second.error());
        value changes = value::array();
        for (auto& c : changes_between(before["state"], (*second)["state"]))
          changes.push_back({{"path", c.path}, {"before", c.before}, {"after", c.after}});
        done(value{{"actor", before["actor"]}, {"changes", changes}});
      });
    });
  });
}

void shell_views::on(const commands::shell_waits&, given done) {
  desk_.ask_all("", commands::inspect_waits{}, [this, done](named_answers got) {
    value rows = value::array();
    for (auto& [name, answer] : got)
      if (answer)
        for (auto& row : (*answer)["rows"])
          rows.push_back(std::move(row));
    std::stable_sort(rows.begin(), rows.end(), [](const value& a, const value& b) {
      return a.value("since_s", 0.0) > b.value("since_s", 0.0);
    });
    desk_.with_names({{"rows", std::move(rows)}, {"missing", missing_of(got)}},
                     [done](value named) { done(std::move(named)); });
  });
}

void shell_views::on(const commands::shell_tree& x, given done) {
  desk_.ask_all("", commands::inspect_tree{}, [this, wanted = x.actor, done](named_answers got) {
    struct entry {
      std::string key, parent;
      value row;
    };
    std::map<std::string, entry> all; // key: "NAME@NODE"
    std::map<std::string, std::vector<std::string>> children, by_name;
    for (auto& [node, answer] : got) {
      if (!answer)
        continue;
      std::string agent_node;
      for (const auto& row : (*answer)["rows"])
        if (field_text(row, "actor").starts_with("agent_node/"))
          agent_node = field_text(row, "actor");
      for (auto& row : (*answer)["rows"]) {
        const auto name = field_text(row, "actor"), owner = field_text(row, "owner");
        entry one{name + "@" + node,
                  owner == "node" ? node : (owner == "agent_node" ? agent_node : owner) + "@" + node,
                  {{"actor", name}, {"state", row["state"]}, {"restarts", row["restarts"]}}};
        if (name.starts_with("agent_node/")) // the master knows the agent by its twin
          one.parent = "agent/" + id_of(name) + "@" + desk_.setup.node;
        by_name[name].push_back(one.key);
        all[one.key] = std::move(one);
      }
    }
    for (const auto& [key, one] : all)
      children[one.parent].push_back(key);
    for (auto& [name, keys] : by_name)
      if (keys.size() > 1)
        for (const auto& key : keys)
          all[key].row["actor"] = key;
    std::function<value(const std::string&, int)> grow = [&](const std::string& key, int depth) {
      value out = all.contains(key) ? all[key].row : value{{"actor", key}, {"state", "up"}, {"restarts", 0}};
      out["children"] = value::array();
      if (depth < 16)
        for (const auto& child : children[key])
          out["children"].push_back(grow(child, depth + 1));
      return out;
    };
    if (wanted.empty())
      return done(grow(
        all.contains("cluster@" + desk_.setup.node) ? "cluster@" + desk_.setup.node : desk_.setup.node, 0));
    if (desk_.knows(wanted))
      return done(grow(wanted, 0));
    if (all.contains(wanted))
      return done(grow(wanted, 0));
    auto it = by_name.find(wanted);
    if (it == by_name.end())
      return done(
        error{errc::not_found, "no actor '" + wanted.substr(0, 200) + "'\nhint: `ps` lists those that live"});
    if (it->second.size() > 1)
      return done(error{errc::conflict, "several nodes have an actor '" + wanted + "'\nhint: name one of " +
                                          it->second[0] + ", " + it->second[1]});
    done(grow(it->second[0], 0));
  });
}

void shell_views::on(const commands::shell_events& x, given done) {
  const auto most = static_cast<std::size_t>(std::clamp(x.max, 1.0, 10'000.0));
  desk_.ask_all("", commands::inspect_events{}, [this, kind = x.kind, most, done](named_answers got) {
    std::vector<value> rows(desk_.events().begin(), desk_.events().end());
    for (const auto& row : desk_.setup.audit ? desk_.setup.audit->rows() : std::deque<value>{})
      rows.push_back(audit_row(row));
    for (auto& [node, answer] : got)
      if (answer)
        for (auto& row : (*answer)["rows"])
          rows.push_back(std::move(row));
    if (!kind.empty())
      std::erase_if(rows, [&](const value& row) { return field_text(row, "kind") != kind; });
    std::stable_sort(rows.begin(), rows.end(), [](const value& a, const value& b) {
      return field_text(a, "at") < field_text(b, "at");
    });
    if (rows.size() > most)
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(most));
    done(value{{"rows", std::move(rows)}, {"missing", missing_of(got)}});
  });
}

} // namespace troupe
