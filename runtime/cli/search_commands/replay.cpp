#include "runtime/cli/search_commands/replay.hpp"

#include <istream>
#include <optional>
#include <ostream>

namespace troupe::cli {
namespace {

using namespace searchers;

error wrong(std::string what) { return {errc::invalid, std::move(what)}; }

value shown_action(const search_action& action) {
  struct {
    value operator()(const create_trial& x) const {
      value v{{"create", x.trial}, {"hparams", x.hparams}, {"trial_seed", x.trial_seed}};
      if (!x.source_checkpoint.empty())
        v["source_checkpoint"] = x.source_checkpoint;
      return v;
    }
    value operator()(const stop_trial& x) const { return {{"stop", x.trial}}; }
    value operator()(const pause_trial& x) const { return {{"pause", x.trial}}; }
    value operator()(const resume_trial& x) const { return {{"resume", x.trial}, {"until", x.until}}; }
    value operator()(const perturb_trial& x) const {
      return {
        {"perturb", x.trial}, {"source", x.source}, {"checkpoint", x.checkpoint}, {"hparams", x.hparams}};
    }
    value operator()(const shut_down& x) const {
      return {{"shutdown", true}, {"cancel", x.cancel}, {"failure", x.failure}};
    }
  } show;
  return std::visit(show, action);
}

std::optional<exit_reason> reason_of(const std::string& name) {
  static const std::pair<const char*, exit_reason> names[] = {
    {"ERRORED", exit_reason::errored},
    {"USER_REQUESTED_STOP", exit_reason::user_requested_stop},
    {"USER_CANCELED", exit_reason::user_canceled},
    {"INVALID_HP", exit_reason::invalid_hp},
    {"INIT_INVALID_HP", exit_reason::init_invalid_hp}};
  for (const auto& [text, reason] : names)
    if (name == text)
      return reason;
  return std::nullopt;
}

/// Reads the members of one event; keeps the first fault.
class members {
public:
  explicit members(const value& object) : object_(object) {}
  std::string text(const char* key) {
    auto it = object_.find(key);
    if (it != object_.end() && it->is_string())
      return it->get<std::string>();
    return fail(key, "a string"), std::string{};
  }
  double number(const char* key) {
    auto it = object_.find(key);
    if (it != object_.end() && it->is_number())
      return it->get<double>();
    return fail(key, "a number"), 0.0;
  }
  value object(const char* key) {
    auto it = object_.find(key);
    if (it != object_.end() && it->is_object())
      return *it;
    return fail(key, "an object"), value();
  }
  void fail(const std::string& key, const std::string& expected) {
    if (fault_.empty())
      fault_ = "`" + key + "` must be " + expected;
  }
  const std::string& fault() const { return fault_; }

private:
  const value& object_;
  std::string fault_;
};

result<search_event> event_of(const value& line) {
  members in(line);
  auto kind = in.text("event");
  if (!in.fault().empty())
    return wrong("a line must hold `config` (a header) or `event` (a string)");
  search_event event;
  if (kind == "orders") { // for a custom search: what the process outside would send
    value orders = line;
    orders.erase("event");
    return search_event{search_ordered{std::move(orders)}};
  }
  auto trial = in.text("trial");
  if (kind == "validation") {
    event = trial_validated{trial, in.object("metrics")};
  } else if (kind == "exited_early") {
    auto name = in.text("reason");
    auto reason = reason_of(name);
    if (!reason)
      in.fail("reason", "one of ERRORED, USER_REQUESTED_STOP, USER_CANCELED, INVALID_HP, INIT_INVALID_HP");
    event = trial_exited_early{trial, reason.value_or(exit_reason::errored)};
  } else if (kind == "exited") {
    event = trial_exited{trial};
  } else if (kind == "progress") {
    double progress = in.number("progress");
    if (!(progress >= 0 && progress <= 1))
      in.fail("progress", "a number, 0 to 1");
    event = trial_progressed{trial, progress};
  } else if (kind == "checkpointed") {
    event = trial_checkpointed{trial, in.number("step"), in.text("checkpoint")};
  } else {
    return wrong("unknown event `" + kind +
                 "`; one of validation, exited_early, exited, progress, checkpointed, reload");
  }
  if (!in.fault().empty())
    return wrong("event `" + kind + "`: " + in.fault());
  return event;
}

} // namespace

value search_replay::answer(std::string_view line) {
  auto parsed = parse_json(line);
  auto said = [&]() -> result<value> {
    if (!parsed)
      return parsed.error();
    if (!parsed->is_object())
      return wrong("a line must be a JSON object");
    if (parsed->contains("config"))
      return start(*parsed);
    if (!search_)
      return wrong("no search yet: the first line must be a header with `config`");
    if (auto it = parsed->find("event"); it != parsed->end() && *it == "reload")
      return reload();
    return step(*parsed);
  }();
  return said ? *said : value{{"error", said.error().what}};
}

result<value> search_replay::start(const value& header) {
  for (const auto& [key, unused] : header.items())
    if (key != "config" && key != "hyperparameters" && key != "seed" && key != "mode" && key != "event")
      return wrong("header: unknown member `" + key + "`; it takes config, hyperparameters, seed, mode");
  auto seed = header.value("seed", value(0));
  if (!seed.is_number_integer())
    return wrong("header: `seed` must be an integer");
  auto mode = header.value("mode", value("native"));
  if (mode != "native" && mode != "compat")
    return wrong("header: `mode` must be \"native\" or \"compat\"");
  auto hyperparameters = header.value("hyperparameters", value::object());
  auto chosen = mode == "compat" ? search_mode::compat : search_mode::native;
  auto number = seed.is_number_unsigned() ? seed.get<std::uint64_t>()
                                          : static_cast<std::uint64_t>(seed.get<std::int64_t>());
  auto made = make_searcher(header["config"], hyperparameters, number, chosen);
  if (!made)
    return made.error();
  auto first = (*made)->apply(search_started{});
  if (!first)
    return first.error();
  config_ = header["config"];
  hyperparameters_ = std::move(hyperparameters);
  seed_ = number;
  mode_ = chosen;
  search_ = std::move(*made);
  auto said = shown(*first);
  auto brackets = search_->brackets();
  if (!brackets.empty())
    said["brackets"] = value::array();
  for (const auto& b : brackets)
    said["brackets"].push_back({{"rungs", b.rungs},
                                {"max_trials", b.max_trials},
                                {"max_concurrent", b.max_concurrent},
                                {"units", b.units}});
  return said;
}

result<value> search_replay::reload() {
  auto bytes = search_->snapshot();
  auto loaded = load_searcher(config_, hyperparameters_, seed_, mode_, bytes);
  if (!loaded)
    return loaded.error();
  search_ = std::move(*loaded);
  auto said = shown({});
  said["snapshot_bytes"] = bytes.size();
  return said;
}

result<value> search_replay::step(const value& line) {
  auto event = event_of(line);
  if (!event)
    return event.error();
  auto actions = search_->apply(*event);
  if (!actions)
    return actions.error();
  return shown(*actions);
}

value search_replay::shown(const std::vector<search_action>& actions) const {
  value list = value::array();
  for (const auto& a : actions)
    list.push_back(shown_action(a));
  return {{"actions", std::move(list)}, {"progress", search_->progress()}};
}

int replay_search(std::istream& in, std::ostream& out) {
  search_replay replay;
  std::string line;
  while (std::getline(in, line))
    out << to_json(replay.answer(line)) << '\n' << std::flush;
  return 0;
}

} // namespace troupe::cli
