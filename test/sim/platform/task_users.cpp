#include "test/sim/platform/task_users.hpp"

#include "model/facts.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;
constexpr const char* number_variable = "SIM_TASK";
constexpr int longest_patience = 12; ///< number of looks at a task that does not end, twenty seconds apart

std::string variable_of(std::size_t number) {
  return std::string(number_variable) + "=" + std::to_string(number);
}

} // namespace

task_users::task_users(scene with, const platform_plan& plan, bool keyless)
    : with_(std::move(with)), plan_(plan), keyless_(keyless), users_(plan.tasks.size()) {}

const task_plan* task_users::plan_of(const platform_plan& plan,
                                     const std::map<std::string, std::string>& env) {
  const auto at = env.find(number_variable);
  const auto number = at == env.end() ? plan.tasks.size() : std::stoul(at->second);
  return number < plan.tasks.size() ? &plan.tasks[number] : nullptr;
}

value task_users::config_of(const task_plan& one, std::size_t number) {
  value config = {{"resources", {{"slots", one.slots}}},
                  {"environment", {{"environment_variables", {variable_of(number)}}}}};
  if (one.kind == task_kind::generic || one.kind == task_kind::command)
    config["entrypoint"] = {"work"};
  if (one.kind == task_kind::generic)
    config["resources"]["is_single_node"] = false;
  if (one.idle > 0)
    config["idle_timeout"] = std::to_string(one.idle) + "s";
  return config;
}

void task_users::begin() {
  for (std::size_t n = 0; n < users_.size(); ++n)
    with_.later(plan_.tasks[n].after, [this, n] { create(n); });
}

void task_users::create(std::size_t n) {
  const auto& one = plan_.tasks[n];
  if (one.parent >= 0 && !users_[std::size_t(one.parent)].id)
    return with_.later(1s, [this, n] { create(n); });
  value wish = {{"kind", name(one.kind)}, {"config", config_of(one, n)}};
  if (!keyless_)
    wish["key"] = "t" + std::to_string(n);
  if (one.parent >= 0)
    wish["parent"] = to_string(users_[std::size_t(one.parent)].id);
  if (one.no_pause >= 0)
    wish["no_pause"] = one.no_pause == 1;
  if (one.repeated)
    with_.insist("task.create", wish, [](const auto&) {});
  with_.insist("task.create", std::move(wish), [this, n](const result<value>& got) {
    if (!got)
      return with_.note("task " + std::to_string(n) + " is refused: " + got.error().what);
    users_[n].id = parse_task(got->at("id").get<std::string>());
    go_on(n, 0);
  });
}

void task_users::go_on(std::size_t n, std::size_t wish) {
  const auto& wishes = plan_.tasks[n].wishes;
  if (wish < wishes.size())
    return with_.later(wishes[wish].after, [this, n, wish] { perform(n, wish); });
  // Resumes the task where it was paused, because nobody else does.
  if (plan_.tasks[n].kind == task_kind::generic)
    return hold(n, false, [this, n] { wait_for_end(n, 0); });
  wait_for_end(n, 0);
}

void task_users::perform(std::size_t n, std::size_t wish) {
  const auto& wanted = plan_.tasks[n].wishes[wish];
  const auto then = [this, n, wish] { go_on(n, wish + 1); };
  switch (wanted.what) {
  case task_wish::kill:
    return kill(n, false, then);
  case task_wish::kill_tree:
    return kill(n, true, then);
  case task_wish::pause:
    return hold(n, true, then);
  case task_wish::unpause:
    return hold(n, false, then);
  case task_wish::use:
    return order(n, "task.use", value::object(), [then](bool) { then(); });
  case task_wish::set_priority:
    users_[n].priority.reset();
    return order(n, "task.set", {{"priority", wanted.number}},
                 [this, n, then, to = wanted.number](bool done) {
                   if (done)
                     users_[n].priority = to;
                   then();
                 });
  }
}

void task_users::kill(std::size_t n, bool tree, std::function<void()> then) {
  auto those = tree ? below(n) : std::vector<std::size_t>{n};
  for (const auto one : those)
    users_[one].kill_sent = true;
  // A task that is created later is not below this one yet.
  std::erase_if(those, [this](auto one) { return !users_[one].id; });
  order(n, "task.kill", {{"tree", tree}}, [this, those, then](bool done) {
    for (const auto one : those)
      users_[one].killed |= done;
    then();
  });
}

void task_users::hold(std::size_t n, bool on, std::function<void()> then) {
  for (const auto one : below(n))
    users_[one].paused.reset();
  order(n, on ? "task.pause" : "task.unpause", value::object(), [this, n, on, then](bool done) {
    if (done && !follows(n))
      users_[n].paused = on;
    then();
  });
}

void task_users::wait_for_end(std::size_t n, int looks) {
  const auto reads = with_.reads();
  if (reads && has_ended(*reads, users_[n].id)) {
    users_[n].waits = false;
    return;
  }
  const auto again = [this, n, looks] {
    users_[n].only_looks = true;
    with_.later(20s, [this, n, looks] { wait_for_end(n, looks + 1); });
  };
  const auto& one = plan_.tasks[n];
  const bool endless = one.steps == 0 && one.idle == 0;
  if (looks < (endless ? 1 : longest_patience) || users_[n].killed)
    return again();
  users_[n].only_looks = false;
  kill(n, false, again);
}

void task_users::order(std::size_t n, const char* what, value fields, std::function<void(bool done)> then) {
  fields["id"] = to_string(users_[n].id);
  with_.insist(what, std::move(fields), [then](const result<value>& got) { then(bool(got)); });
}

std::vector<std::size_t> task_users::below(std::size_t n) const {
  std::vector<std::size_t> out{n};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t one = 0; one < users_.size(); ++one)
      if (plan_.tasks[one].parent == int(out[i]))
        out.push_back(one);
  return out;
}

bool task_users::follows(std::size_t n) const {
  return plan_.tasks[n].parent >= 0 && plan_.tasks[n].no_pause == 0;
}

bool task_users::want_nothing() const {
  return std::none_of(users_.begin(), users_.end(), [](const user& x) { return x.waits && !x.only_looks; });
}

bool task_users::done() const {
  const auto reads = with_.reads();
  return want_nothing() && std::none_of(users_.begin(), users_.end(), [&](const user& x) {
           return x.waits && !(reads && has_ended(*reads, x.id));
         });
}

void task_users::hit(task_id id) { hit_.insert(id); }

// ---- the verdict

void task_users::check_acknowledged() const {
  const auto reads = with_.reads();
  for (const auto& one : users_) {
    if (!one.id)
      continue;
    const auto row = reads->other_task(one.id);
    if (!row)
      return with_.note("task " + to_string(one.id) + " was acknowledged and is not there");
    const bool ends = row->state == task_state::stopping_canceled || terminal(row->state);
    if (one.killed && !ends)
      return with_.note("the kill of task " + to_string(one.id) + " was acknowledged, and it is " +
                        std::string(name(row->state)));
    if (one.paused && !ends &&
        *one.paused != (row->state == task_state::paused || row->state == task_state::stopping_paused))
      return with_.note("task " + to_string(one.id) + " is " + std::string(name(row->state)) +
                        ", and the answer to its last user was: " + (*one.paused ? "paused" : "not paused"));
    if (one.priority && row->priority != *one.priority)
      return with_.note("task " + to_string(one.id) + " has priority " + std::to_string(row->priority) +
                        ", and " + std::to_string(*one.priority) + " was acknowledged");
  }
}

void task_users::check_ends(const std::vector<task_detail>& all, bool losses) const {
  check_acknowledged();
  std::vector<std::string> environments;
  for (const auto& row : all)
    environments.push_back(to_json(row.made.config.value("environment", value())));
  for (std::size_t n = 0; n < users_.size(); ++n) {
    const auto named = [text = "\"" + variable_of(n) + "\""](const std::string& environment) {
      return environment.find(text) != std::string::npos;
    };
    check_end(n, all, std::count_if(environments.begin(), environments.end(), named), losses);
  }
}

void task_users::check_end(std::size_t n, const std::vector<task_detail>& all, std::ptrdiff_t made,
                           bool losses) const {
  const auto reads = with_.reads();
  const auto& one = users_[n];
  const auto& wanted = plan_.tasks[n];
  const auto name_of_it = "task " + std::to_string(n) + " (" + to_string(one.id) + ")";
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.made.id == one.id; });
  if (made != 1 || at == all.end())
    return with_.note(name_of_it + " is there " + std::to_string(made) + " times");

  int ends = 0, open = 0;
  bool last = false; // whether the newest fact is the task's end
  const auto facts = reads->facts_of(entity(one.id));
  for (const auto& bytes : facts ? *facts : std::vector<std::string>()) {
    const auto fact = decode_as<task_fact>(bytes);
    if (!fact)
      return with_.note("a fact of " + name_of_it + " does not read");
    last = std::holds_alternative<task_ended>(*fact);
    ends += last ? 1 : 0;
    open += std::holds_alternative<run_started>(*fact) ? 1
            : std::holds_alternative<run_ended>(*fact) ? -1
                                                       : 0;
    if (open < 0 || open > 1)
      return with_.note(name_of_it + " has " + std::to_string(open) + " open runs");
  }
  if (ends != 1 || !last || open != 0)
    return with_.note(name_of_it + " has ended " + std::to_string(ends) + " times");

  const auto& row = *at;
  const auto shown =
    std::string(name(row.state)) + " with exit code " + std::to_string(row.exit_code) + ": " + row.why;
  // The start order of one part was lost with its agent's process, and other parts had begun.
  const bool in_part = wanted.slots > plan_.slots && row.why.find("start order") != std::string::npos;
  const bool lost =
    row.state == task_state::error && (hit_.contains(one.id) || ((losses || in_part) && row.exit_code == -1));
  const bool worked = wanted.steps > 0 && row.exit_code == wanted.exit_code &&
                      row.state == (wanted.exit_code == 0 ? task_state::completed : task_state::error);
  const bool idle = wanted.idle > 0 && row.state == task_state::canceled && row.why.starts_with("idle for");
  const bool killed = one.kill_sent && row.state == task_state::canceled;
  if (!lost && !worked && !idle && !killed)
    with_.note(name_of_it + " is " + shown);
}

std::string task_users::describe() const {
  std::string text;
  for (std::size_t n = 0; n < users_.size(); ++n) {
    text += "\n  task " + std::to_string(n) + " (" + to_string(users_[n].id) + ")";
    if (const auto reads = with_.reads())
      if (const auto row = reads->other_task(users_[n].id))
        text += " " + std::string(name(row->state));
    if (!users_[n].waits)
      text += ", over";
  }
  return text;
}

} // namespace troupe::sim
