"""Writes copies of the machines with bugs in them, each behind a flag of its own, for the simulation of pools. What a release holds is not touched.

Usage: plants.py SOURCE OUT. Each plant is (name, file, text that stands there once, text with the bug); PLANTED(name) tells whether it is on."""

import pathlib
import sys

POOL, PREEMPT, RUNS, SLOTS, FIT, POLICY = (f"actors/pool/{x}.cpp" for x in ("pool", "pool_preemption", "pool_runs", "pool_slots", "fitting", "policy"))
PROVIDER, MEMBERS, ALLOCATION = "actors/provider/provisioner.cpp", "actors/cluster/members.cpp", "actors/allocation/allocation.cpp"

PLANTS = [
    ("limit_forgotten_after_restart", POOL, "  hold(run, std::move(on), since);\n", "  hold(run, std::move(on), since);\n  if (PLANTED(limit_forgotten_after_restart))\n    run.job->held -= run.held();\n"),
    ("victim_too_many", PREEMPT, "    if (!is_lacking(lacks) && !fit(run, run.need()).empty())\n      return true;", "    if (!PLANTED(victim_too_many) && !is_lacking(lacks) && !fit(run, run.need()).empty())\n      return true;"),
    ("backfill_into_reservation", POOL, "id != run.id && policy_->overrides(run, keeper)) {\n      lift", "id != run.id && (PLANTED(backfill_into_reservation) || policy_->overrides(run, keeper))) {\n      lift"),
    ("two_grants_after_fallback", ALLOCATION, "  if (elsewhere)\n    s.actions", "  if (elsewhere && !PLANTED(two_grants_after_fallback))\n    s.actions"),
    ("reservation_for_the_dead", POOL, "  drop_kept(&out, run);\n  stop_waiting(run);\n  forget(run);", "  if (!PLANTED(reservation_for_the_dead) || !run.reserved)\n    drop_kept(&out, run);\n  stop_waiting(run);\n  if (run.kept.empty())\n    forget(run);"),
    ("instance_forgotten", PROVIDER, "  if (f.what == \"ordered\") {\n    ordered_[f.order] = {", "  if (f.what == \"ordered\") {\n    if (!PLANTED(instance_forgotten) || calling_)\n      ordered_[f.order] = {"),
    ("grants_before_all_spoke", POOL, "  if (phase_ == phase::placing)\n    decide(out, now);", "  if (phase_ == phase::placing || PLANTED(grants_before_all_spoke))\n    decide(out, now);"),
    ("slot_leaks", RUNS, "      if (s.holder != &run)\n        continue;", "      if (s.holder != &run || (PLANTED(slot_leaks) && part.slots.size() > 1 && slot == part.slots.back()))\n        continue;"),
    ("quota_ignored", RUNS, "  const auto left = room(key);\n  if (!left)\n    return left;", "  const auto left = room(key);\n  if (!left || (PLANTED(quota_ignored) && key.of == run_bar::user))\n    return std::nullopt;"),
    ("pool_limit_ignored", RUNS, "  const auto left = room(key);\n  if (!left", "  const auto left = room(key);\n  if (PLANTED(pool_limit_ignored) && key.of == run_bar::pool)\n    return std::nullopt;\n  if (!left"),
    ("job_limit_ignored", RUNS, "  for (const auto& key : limits_of(run))\n    if (exceeds(run, key))\n      return key;", "  for (const auto& key : limits_of(run))\n    if (exceeds(run, key) && !(PLANTED(job_limit_ignored) && key.of == run_bar::job))\n      return key;"),
    ("drained_agent_used", SLOTS, "    agent.empty.free += agent.open(i);", "    if (PLANTED(drained_agent_used) && agent.present)\n      s.bars = static_cast<std::uint8_t>(s.bars & ~pool_agent::closed);\n    agent.empty.free += agent.open(i) || (PLANTED(drained_agent_used) && agent.present);"),
    ("agent_gone_used", POOL, "  agent.present = false;\n  refresh(agent);", "  agent.present = PLANTED(agent_gone_used);\n  refresh(agent);"),
    ("urgent_job_forgotten", RUNS, "  if (rank == job.rank)\n    return;", "  if (rank == job.rank || PLANTED(urgent_job_forgotten))\n    return;"),
    ("guest_before_home", POOL, "!ahead_of(*run, next)) {", "(PLANTED(guest_before_home) || !ahead_of(*run, next))) {"),
    ("aux_leaks", RUNS, "    if (part.slots.empty())\n      --agent.aux_used;", "    if (part.slots.empty() && !PLANTED(aux_leaks))\n      --agent.aux_used;"),
    ("held_not_told", ALLOCATION, "  hold_slots held;\n", "  if (PLANTED(held_not_told))\n    return {};\n  hold_slots held;\n"),
    ("more_instances_than_allowed", PROVIDER, "                             settings_.max_instances - have - static_cast<int>(leaving));", "                             settings_.max_instances - (PLANTED(more_instances_than_allowed) ? 0 : have) - static_cast<int>(leaving));"),
    ("idle_instances_stay", PROVIDER, "  end(s, idle, \"idle\", now);", "  if (!PLANTED(idle_instances_stay))\n    end(s, idle, \"idle\", now);"),
    ("busy_instances_end", PROVIDER, "    if (!agent || !agent->connected || !agent->idle || spare <= 0)", "    if (!agent || !agent->connected || (!agent->idle && !PLANTED(busy_instances_end)) || spare <= 0)"),
    ("no_back_off", PROVIDER, "  retry_at_ = now + back_off(failures_, settings_.first_pause, settings_.longest_pause);", "  if (!PLANTED(no_back_off))\n    retry_at_ = now + back_off(failures_, settings_.first_pause, settings_.longest_pause);"),
    ("late_instances_stay", PROVIDER, "    if (starts(x) && due(x.seen + settings_.max_starting, now) && (agent || !strays))", "    if (!PLANTED(late_instances_stay) && starts(x) && due(x.seen + settings_.max_starting, now) && (agent || !strays))"),
    ("unknown_instances_stay", PROVIDER, "  end(s, unknown, \"unknown\", now, found.agents);", "  if (!PLANTED(unknown_instances_stay))\n    end(s, unknown, \"unknown\", now, found.agents);"),
    ("drain_not_told_again", MEMBERS, "        known.draining || !known.disabled.empty() || (there && there->leaves))\n", "        !PLANTED(drain_not_told_again) && (known.draining || !known.disabled.empty() || (there && there->leaves)))\n"),
    ("min_run_ignored", POLICY, "      if (!less && run->since + min_run_ > now_) {", "      if (!PLANTED(min_run_ignored) && !less && run->since + min_run_ > now_) {"),
    ("urgent_preempted", POLICY, "      if (!less && (rank.priority < who_.priority || rank.submitted <= who_.submitted))\n        break;", "      if (!less && !PLANTED(urgent_preempted) &&\n          (rank.priority < who_.priority || rank.submitted <= who_.submitted))\n        break;"),
    ("fifo_passes", POLICY, "    if (fifo() && blocked_at_ != INT_MAX)\n      return {};", "    if (fifo() && blocked_at_ != INT_MAX && !PLANTED(fifo_passes))\n      return {};"),
    ("single_node_spread", FIT, "  if (single_node || slots == 1)\n    return {};", "  if ((single_node && !PLANTED(single_node_spread)) || slots == 1)\n    return {};"),
]


def main(source, out):
    source, out = pathlib.Path(source), pathlib.Path(out)
    texts = {}
    for name, file, old, new in PLANTS:
        text = texts.setdefault(file, (source / file).read_text())
        if text.count(old) != 1:
            sys.exit(f"plants.py: {name}: {file} has {text.count(old)} times, not once:\n{old}")
        texts[file] = text.replace(old, new)
    names = [plant[0] for plant in PLANTS]
    header = "#pragma once\n// Made by plants.py.\n\nnamespace troupe::sim {\n\nenum class pool_bug { none, " + ", ".join(names) + " };\n"
    header += "constexpr const char* pool_bug_names[] = {\"none\", " + ", ".join(f'"{n}"' for n in names) + "};\n"
    header += f"constexpr int pool_bugs = {len(names)}; ///< none is no bug\n\n}} // namespace troupe::sim\n"
    write(out / "planted_bugs.hpp", header)
    for file, text in texts.items():
        write(out / pathlib.Path(file).name, '#include "test/sim/pools/planted.hpp"\n' + text)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:  # else all would be compiled again
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
