// Tests which webhooks receive which events, the queue of these deliveries, and the patterns that are
// searched for in log lines.

#include "actors/catalogue/deliveries.hpp"
#include "actors/journal/log_watch.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr time_point t0{1'700'000'000s};

webhook_changed hook(std::uint64_t id, value triggers, const std::string& url = "http://a.lab/x") {
  webhook_changed x;
  x.id = {id};
  x.name = "hook" + std::to_string(id);
  x.url = url;
  x.triggers = std::move(triggers);
  return x;
}
const value on_end =
  value::array({{{"type", "EXPERIMENT_STATE_CHANGE"}, {"condition", {{"state", "COMPLETED"}}}}});
const value on_custom = value::array({{{"type", "CUSTOM"}, {"condition", value::object()}}});

webhook_subject experiment_7() {
  webhook_subject x;
  x.id = {7};
  x.name = "digits <1>";
  x.workspace = "vision";
  x.in = {2};
  x.project = "cats";
  x.pool = "default";
  x.state = "COMPLETED";
  x.created = t0;
  x.ended = t0 + std::chrono::seconds(3725);
  x.trial = {12};
  return x;
}

/// The queue, and a twin that sees only the facts.
struct post {
  deliveries queue, twin;
  std::vector<webhook_event> note(const std::vector<cluster_fact>& facts) {
    std::vector<webhook_event> out;
    for (const auto& one : facts) {
      twin.replay(*decode_as<cluster_fact>(encode_as(one)));
      out.push_back(std::get<webhook_event>(one));
    }
    EXPECT_EQ(twin.snapshot(), queue.snapshot());
    return out;
  }
};

TEST(Deliveries, ThoseHearWhoAreMeant) {
  auto here = hook(1, on_end), elsewhere = hook(2, on_end), named = hook(3, on_end), other = hook(4, on_end),
       failures =
         hook(5, value::array({{{"type", "EXPERIMENT_STATE_CHANGE"}, {"condition", {{"state", "ERROR"}}}}}));
  here.workspace = {2};
  elsewhere.workspace = {3};
  named.specific = other.specific = true;
  const deliveries::webhooks all{{{1}, here}, {{2}, elsewhere}, {{3}, named}, {{4}, other}, {{5}, failures}};
  struct {
    value integrations;
    std::vector<std::uint64_t> who;
  } cases[] = {
    {value(), {1}},
    {{{"webhooks", {{"webhook_id", {3}}}}}, {1, 3}},
    {{{"webhooks", {{"webhook_name", {"hook4", "none"}}}}}, {1, 4}},
    {{{"webhooks", {{"webhook_id", {3}}, {"exclude", true}}}}, {}},
  };
  for (const auto& x : cases) {
    auto what = experiment_7();
    what.config = {{"integrations", x.integrations}};
    post p;
    std::vector<std::uint64_t> who;
    for (const auto& event : p.note(p.queue.ended(all, what, t0)))
      who.push_back(event.webhook.value);
    EXPECT_EQ(who, x.who) << x.integrations.dump();
  }
}

TEST(Deliveries, ALineOfATaskThatBelongsToNoExperimentIsTold) {
  const auto on_line = value::array({{{"type", "TASK_LOG"}, {"condition", {{"regex", "luck"}}}}});
  auto here = hook(1, on_line), elsewhere = hook(2, on_line), specific = hook(3, on_line),
       slack = hook(4, on_line);
  here.workspace = {2};
  elsewhere.workspace = {3};
  specific.specific = true;
  slack.slack = true;
  const deliveries::webhooks all{{{1}, here}, {{2}, elsewhere}, {{3}, specific}, {{4}, slack}};
  webhook_subject command;
  command.name = "Command (boldly-brave-otter)";
  command.workspace = "vision";
  command.in = {2};
  command.pool = "default";
  command.created = t0;
  post p;
  const auto tell = [&](std::uint64_t which) {
    return p.note(p.queue.matched(all, {which}, "luck", command, "the-uuid", "a1", "no luck", t0 + 5s));
  };
  const auto events = tell(1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(
    parse_json(events[0].body).value(),
    (value{{"event_id", events[0].id},
           {"event_type", "TASK_LOG"},
           {"timestamp", 1'700'000'005},
           {"condition", {{"regex", "luck"}}},
           {"event_data",
            {{"task_log", {{"task_id", "the-uuid"}, {"node_name", "a1"}, {"triggering_log", "no luck"}}}}}}));
  EXPECT_TRUE(tell(1).empty()) << "once for each task";
  EXPECT_TRUE(tell(2).empty()) << "of another workspace";
  EXPECT_TRUE(tell(3).empty()) << "only experiments name webhooks";
  const auto said = tell(4);
  ASSERT_EQ(said.size(), 1u);
  const auto body = parse_json(said[0].body).value();
  EXPECT_EQ(body["blocks"][0]["text"]["text"],
            "Command (boldly-brave-otter): a line of the log of task `the-uuid` on `a1` matched");
  EXPECT_EQ(said[0].body.find("Project"), std::string::npos);
}

TEST(Deliveries, AnEventIsTheSameAfterARestart) {
  const deliveries::webhooks all{{{1}, hook(1, on_end)}};
  post p;
  const auto events = p.note(p.queue.ended(all, experiment_7(), t0 + 4000s));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(parse_json(events[0].body).value(), (value{{"event_id", events[0].id},
                                                       {"event_type", "EXPERIMENT_STATE_CHANGE"},
                                                       {"timestamp", 1'700'004'000},
                                                       {"condition", {{"state", "COMPLETED"}}},
                                                       {"event_data",
                                                        {{"experiment",
                                                          {{"id", 7},
                                                           {"state", "COMPLETED"},
                                                           {"name", "digits <1>"},
                                                           {"duration", 3725},
                                                           {"resource_pool", "default"},
                                                           {"slots_per_trial", 1},
                                                           {"workspace", "vision"},
                                                           {"project", "cats"},
                                                           {"trial_id", 12}}}}}}));
  EXPECT_TRUE(p.twin.ended(all, experiment_7(), t0 + 5000s).empty()) << "it was told before the restart";
  auto again = experiment_7();
  again.ended += 10s; // the experiment was continued, and has ended a second time
  EXPECT_EQ(p.note(p.queue.ended(all, again, t0 + 6000s)).size(), 1u);
}

TEST(Deliveries, SlackReadsWhatItIsTold) {
  auto to = hook(1, on_end);
  to.slack = true;
  deliveries queue("https://head.lab:8080");
  const auto facts = queue.ended({{{1}, to}}, experiment_7(), t0);
  const auto body = parse_json(std::get<webhook_event>(facts.at(0)).body).value();
  EXPECT_EQ(
    body["blocks"][0]["text"]["text"],
    "Experiment <https://head.lab:8080/ui/experiments/7|digits &lt;1&gt; (#7)> completed successfully");
  EXPECT_EQ(body["attachments"][0]["color"], "#13B670");
  std::string fields;
  for (const auto& one : body["attachments"][0]["blocks"][0]["fields"])
    fields += one["text"].get<std::string>() + "; ";
  EXPECT_EQ(
    fields,
    "*Status*: COMPLETED; *Duration*: 1h 2min; *Workspace*: vision; *Project*: cats; *Trial ID*: 12; ");
}

TEST(Deliveries, ReceiversThatHangLeaveTheOthersAlone) {
  const deliveries::webhooks all{{{1}, hook(1, on_custom, "http://slow.lab/a")},
                                 // both webhooks have the same receiver
                                 {{2}, hook(2, on_custom, "http://slow.lab/b")}};
  post p;
  for (int i = 0; i < 100; ++i)
    p.note(p.queue.alerted(all, experiment_7(), {{"title", "x"}}, std::to_string(i), t0));
  std::size_t slow = 0, fast = 0;
  for (int round = 0; round < 100; ++round)
    for (const auto& one : p.queue.due(t0)) {
      if (one.url == "http://slow.lab/a") {
        ++slow; // this webhook never answers
        continue;
      }
      ++fast;
      p.note(p.queue.told(one.id, true, false, "", t0));
    }
  EXPECT_EQ(slow, deliveries::most_open_of_receiver);
  EXPECT_EQ(fast, 100u);
}

TEST(Deliveries, WhatIsTriedAgainKeepsItsOrder) {
  const deliveries::webhooks all{{{1}, hook(1, on_custom, "http://lab/a")}};
  post p;
  for (int i = 0; i < 4; ++i)
    p.note(p.queue.alerted(all, experiment_7(), {{"title", "x"}}, std::to_string(i), t0));
  const auto first = p.queue.due(t0);
  ASSERT_EQ(first.size(), 4u);
  for (const auto& one : first)
    p.note(p.queue.told(one.id, false, false, "503", t0));
  std::vector<std::string> order;
  // The first round sends one event, as the receiver has failed before; the second round sends the rest.
  for (int round = 0; round < 2; ++round)
    for (const auto& one : p.queue.due(t0 + 1s)) {
      order.push_back(one.id);
      p.note(p.queue.told(one.id, true, false, "", t0 + 1s));
    }
  ASSERT_EQ(order.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(order[i], first[i].id);
}

TEST(Deliveries, AReceiverInTroubleIsSentOneAtATime) {
  const deliveries::webhooks all{{{1}, hook(1, on_custom, "http://lab/a")}};
  post p;
  for (int i = 0; i < 100; ++i)
    p.note(p.queue.alerted(all, experiment_7(), {{"title", "x"}}, std::to_string(i), t0));
  auto open = p.queue.due(t0);
  ASSERT_EQ(open.size(), deliveries::most_open_of_receiver);
  for (std::size_t i = 0; i + 1 < open.size(); ++i) {
    p.note(p.queue.told(open[i].id, false, false, "timeout", t0));
    EXPECT_TRUE(p.queue.due(t0).empty()) << "as long as others are open";
  }
  p.note(p.queue.told(open.back().id, false, false, "timeout", t0));
  const auto one = p.queue.due(t0);
  ASSERT_EQ(one.size(), 1u);
  p.note(p.queue.told(one[0].id, true, false, "", t0));
  EXPECT_EQ(p.queue.due(t0).size(), deliveries::most_open_of_receiver) << "it is back";
}

TEST(Deliveries, TriesAgainAndGivesUp) {
  const deliveries::webhooks all{{{1}, hook(1, on_end)}};
  post p;
  const auto id = p.note(p.queue.ended(all, experiment_7(), t0)).at(0).id;
  EXPECT_EQ(p.queue.due(t0).size(), 1u);
  EXPECT_TRUE(p.queue.due(t0).empty()) << "it is on its way";
  EXPECT_TRUE(p.queue.told(id, false, false, "500", t0 + 1s).empty());
  EXPECT_EQ(p.queue.deadline(), t0 + 2s);
  EXPECT_TRUE(p.queue.due(t0 + 1900ms).empty());
  EXPECT_EQ(p.queue.due(t0 + 2s).size(), 1u);
  EXPECT_TRUE(p.queue.told(id, false, false, "500", t0 + 3s).empty());
  EXPECT_EQ(p.queue.due(t0 + 5s).size(), 1u);
  const auto last = p.note(p.queue.told(id, false, false, "500", t0 + 6s)).at(0);
  EXPECT_EQ(last.step, deletion_step::failed);
  EXPECT_EQ(last.why, "500");
  EXPECT_TRUE(p.queue.told(id, true, false, "", t0 + 7s).empty()) << "late";
  // An event that the receiver refuses is not sent again; an event that was open before a restart is sent
  // again.
  auto other = experiment_7();
  other.id = {8};
  const auto refused = p.note(p.queue.ended(all, other, t0 + 8s)).at(0).id;
  EXPECT_EQ(p.queue.due(t0 + 8s).size(), 1u);
  EXPECT_EQ(p.twin.due(t0 + 8s).size(), 1u);
  EXPECT_EQ(p.note(p.queue.told(refused, false, true, "404", t0 + 9s)).at(0).step, deletion_step::failed);
}

TEST(Deliveries, EndWithTheirWebhook) {
  const deliveries::webhooks all{{{1}, hook(1, on_end)}, {{2}, hook(2, on_end, "http://b.lab/x")}};
  post p;
  p.note(p.queue.ended(all, experiment_7(), t0));
  auto other = experiment_7();
  other.id = {8};
  const auto open = p.queue.due(t0); // one of each webhook is on its way
  ASSERT_EQ(open.size(), 2u);
  p.note(p.queue.ended(all, other, t0)); // and one of each waits
  auto gone = hook(1, on_end);
  gone.deleted = true;
  p.queue.replay(gone);
  p.twin.replay(gone);
  EXPECT_EQ(p.twin.snapshot(), p.queue.snapshot());
  for (const auto& one : open)
    EXPECT_TRUE(p.queue.told(one.id, false, false, "500", t0).empty());
  std::multiset<std::string> later;
  for (int s = 1; s < 10; ++s)
    for (const auto& one : p.queue.due(t0 + std::chrono::seconds(s))) {
      later.insert(one.url);
      p.note(p.queue.told(one.id, true, false, "", t0 + std::chrono::seconds(s)));
    }
  EXPECT_EQ(later, (std::multiset<std::string>{"http://b.lab/x", "http://b.lab/x"}));
}

log_line line(std::string text, const char* agent = "a1", std::uint64_t trial = 12) {
  log_line out;
  out.allocation = {trial_id{trial}, {1}};
  out.agent = agent;
  out.stream = "stdout";
  out.text = std::move(text);
  return out;
}

TEST(LogWatch, FindsWhatPoliciesAndTriggersLookFor) {
  log_watch watch([](task_id id) { return experiment_id{id.trial().value / 10}; });
  EXPECT_TRUE(watch.look({line("CUDA out of memory")}).empty());
  watch.watch({1}, {{{"name", "oom"}, {"pattern", "out of (memory|luck)"}, {"action", "cancel_retries"}},
                    {{"name", "ecc"}, {"pattern", "ECC"}, {"action", {{"type", "exclude_node"}}}},
                    {{"name", "off"}, {"pattern", nullptr}},
                    {{"name", "plain"}, {"pattern", "^only a name$"}}});
  watch.watch({{{5}, "luck$"}});
  const auto found = [&](const std::vector<log_line>& lines) {
    std::string all;
    const auto matches = watch.look(lines);
    for (const auto& x : matches)
      all += (x.webhook ? "#" + to_string(x.webhook) : x.policy) + "@" + x.agent + " ";
    watch.told(matches);
    return all;
  };
  EXPECT_EQ(found({line("nothing")}), "");
  EXPECT_EQ(found({line("out of luck"), line("out of luck")}), "oom@a1 #5@a1 ");
  EXPECT_EQ(found({line("out of luck")}), "") << "once";
  EXPECT_EQ(found({line("out of luck", "a1", 13)}), "oom@a1 #5@a1 ")
    << "of another task of the same experiment";
  EXPECT_EQ(found({line("ECC"), line("ECC", "a2")}), "ecc@a1 ecc@a2 ") << "once on each agent";
  EXPECT_EQ(found({line("only a name"), line("not only a name")}), "plain@a1 ");
  EXPECT_EQ(found({line("ECC", "a3", 77)}), "") << "another experiment";
  EXPECT_EQ(found({line("{\"log_policies\": [\"ECC\"]}", "a4")}), "") << "the printed configuration";
  auto ours = line("ECC", "a5");
  ours.stream = "troupe";
  EXPECT_EQ(found({ours}), "");
  watch.forget({1});
  EXPECT_EQ(found({line("ECC", "a6")}), "");
}

TEST(LogWatch, FindsWhatPoliciesOfTasksThatAreNoTrialsLookFor) {
  log_watch watch([](task_id) { return experiment_id{1}; });
  const auto command = task_id::of(task_kind::command, 1, 2),
             notebook = task_id::of(task_kind::notebook, 1, 2);
  const auto of = [](task_id id, const char* text, const char* agent = "a1") {
    auto out = line(text, agent);
    out.allocation.task = id;
    return out;
  };
  const auto found = [&](const log_line& one) {
    std::string all;
    const auto matches = watch.look({one});
    for (const auto& x : matches)
      all += (x.webhook ? "#" + to_string(x.webhook) : x.policy) + "@" + x.agent + " ";
    watch.told(matches);
    return all;
  };
  const auto policies = value::array({{{"name", "bad"}, {"pattern", "ECC"}, {"action", "exclude_node"}},
                                      {{"name", "seen"}, {"pattern", "hello"}}});
  watch.watch({1}, value::array({{{"name", "of a trial"}, {"pattern", "ECC|hello"}}}));
  watch.watch_other(command, policies);
  EXPECT_EQ(found(of(command, "hello")), "seen@a1 ");
  EXPECT_EQ(found(of(command, "hello again")), "") << "once";
  EXPECT_EQ(found(of(command, "ECC")), "bad@a1 ");
  EXPECT_EQ(found(of(command, "ECC", "a2")), "bad@a2 ") << "once on each agent";
  EXPECT_EQ(found(of(command, "ECC", "a2")), "");
  EXPECT_EQ(found(of(notebook, "ECC")), "") << "it has none";
  EXPECT_EQ(found(line("ECC")), "of a trial@a1 ");
  EXPECT_EQ(found(of(command, "{\"log_policies\": [\"ECC\"]}", "a3")), "") << "the printed configuration";
  watch.watch({{{5}, "hello"}});
  EXPECT_EQ(found(of(notebook, "hello")), "#5@a1 ");
  EXPECT_EQ(found(of(notebook, "hello")), "");
  watch.forget_other(command);
  EXPECT_EQ(found(of(command, "ECC", "a4")), "");
  watch.watch_other(command, value());
  EXPECT_EQ(found(of(command, "ECC", "a5")), "");
}

TEST(LogPatterns, AreLinearAndBounded) {
  EXPECT_TRUE(check_pattern("(a+)+$"));
  EXPECT_FALSE(check_pattern("(a)\\1")) << "a back reference would backtrack";
  EXPECT_FALSE(check_pattern("(?=a)"));
  EXPECT_FALSE(check_pattern("("));
  EXPECT_FALSE(check_pattern(std::string(longest_pattern + 1, 'a')));
  const log_patterns all({"(a+)+$", "(", "b"});
  std::vector<std::size_t> hits;
  all.match(std::string(100'000, 'a') + "c", hits); // would take hours if the matcher backtracked
  EXPECT_TRUE(hits.empty());
  all.match("\xff"
            "ba",
            hits);
  EXPECT_EQ(hits, (std::vector<std::size_t>{0, 2}));
}

} // namespace
} // namespace troupe
