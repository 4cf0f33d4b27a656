#include "actors/harness/harness.hpp"

#include "model/rng.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace workers;

const time_point t0{std::chrono::seconds(1'000'000)};
const allocation_id a1{{12}, {3}};
const std::string uuid = "0f0e0d0c-0000-4000-8000-0123456789ab";
const std::string empty_map = "\x80";

report_row training(std::string metrics = empty_map) { return {false, 1, t0, std::move(metrics), ""}; }
report_row validation() { return {true, 1, t0, empty_map, ""}; }
report_row bad() { return {false, 1, t0, "", "no map"}; }

frames_received from(std::string peer, task_frame frame) { return {{{std::move(peer), std::move(frame)}}}; }
hello greeting(std::uint64_t acked = 0, std::string process = "p", std::int32_t rank = 0) {
  return {1, "secret", a1, rank, std::move(process), acked};
}
task_stream stream_of(std::string process = "p") { return {a1, 0, std::move(process)}; }
reports_answered stored(std::uint64_t number, std::uint64_t up_to) { return {number, up_to, {}}; }
reports_answered failed(std::uint64_t number, errc code) { return {number, 0, error{code, name(code)}}; }

struct show_frame {
  std::string operator()(const welcome& x) const {
    return "welcome(" + std::to_string(x.acked) + (x.stop.empty() ? "" : " " + x.stop) + ")";
  }
  std::string operator()(const ack& x) const { return "ack(" + std::to_string(x.up_to) + ")"; }
  std::string operator()(const decision& x) const {
    return "decision(" + std::to_string(x.sequence) + (x.stop ? " " + x.reason : "") + ")";
  }
  std::string operator()(const refused& x) const {
    return "refused(" + std::to_string(x.sequence) + " " + x.why + ")";
  }
  std::string operator()(const saved& x) const { return "saved(" + std::to_string(x.sequence) + ")"; }
  std::string operator()(const unsaved& x) const {
    return "unsaved(" + std::to_string(x.sequence) + " " + x.why + ")";
  }
  std::string operator()(const stop& x) const { return "stop(" + x.reason + ")"; }
  std::string operator()(const pong& x) const {
    return "pong(" + std::to_string(x.acked) + (x.stop.empty() ? "" : " " + x.stop) + ")";
  }
  std::string operator()(const again&) const { return "again"; }
  std::string operator()(const link_error& x) const { return "error(" + x.code + ")"; }
  std::string operator()(const worker_mail& x) const { return "order(" + x.body + ")"; }
};

/// Shows the actions in order, without those that return credit; the random histories check the credit.
std::string show(const std::vector<harness_action>& actions) {
  std::string text;
  for (const auto& action : actions) {
    auto one = std::visit(
      overloaded{
        [](const send_frame& x) { return x.peer + ":" + std::visit(show_frame{}, x.frame); },
        [](const append_task_reports& x) {
          std::string rows;
          for (const auto& r : x.batch.reports)
            rows += r.group.empty() ? '-' : r.group[0];
          return "append#" + std::to_string(x.number) + "(" + x.batch.process + " " +
                 std::to_string(x.batch.first_sequence) + " " + rows + ")";
        },
        [](const forward_checkpoint& x) { return "checkpoint(" + x.saved.path + ")"; },
        [](const forward_progress& x) { return "progress(" + std::to_string(x.done).substr(0, 4) + ")"; },
        [](const release_credit&) { return std::string(); },
        [](const forward_worker& x) { return "word(" + x.worker.process + " " + x.word + ")"; },
        [](const reports_drained& x) {
          return "drained(" + to_string(x.allocation) + (x.silent ? " silent)" : ")");
        },
      },
      action);
    if (!one.empty())
      text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

struct step {
  harness_event event;
  std::chrono::milliseconds at;
  std::string actions;
};

void play(harness& h, const std::vector<step>& steps) {
  int n = 0;
  for (const auto& s : steps)
    EXPECT_EQ(show(h.apply(s.event, t0 + s.at)), s.actions)
      << "step " << ++n << " at " << s.at.count() << " ms";
}
const step expected{task_expected{a1, "secret", "/ckpt"}, 0ms, ""};
const step greeted{from("c1", greeting()), 0ms, "c1:welcome(0)"};

TEST(Harness, AcknowledgesWhatIsDurableAndOneAppendOfAProcessIsInFlight) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training(), training()}}), 1ms, "append#1(p 1 tt)"},
           {from("c1", reports{3, {training()}}), 2ms, ""},
           {stored(1, 2), 3ms, "c1:ack(2) append#2(p 3 t)"},
           {stored(1, 2), 3ms, ""}, // the answer arrives twice
           {stored(2, 3), 4ms, "c1:ack(3)"}});
  EXPECT_EQ(h.held_bytes(), 0u);
}

TEST(Harness, CarriesTheMailOfAWorkerThatHasSaidHello) {
  harness h;
  play(h, {expected,
           {from("c1", worker_mail{1, "how it is"}), 0ms, "c1:again"},
           greeted,
           {from("c1", worker_mail{1, "how it is"}), 1ms, "word(p how it is)"},
           {worker_answered{stream_of(), 1, "what to do", ""}, 2ms, "c1:order(what to do)"},
           {worker_answered{stream_of("q"), 1, "what to do", ""}, 2ms, ""}, // no process has this name
           {worker_answered{stream_of(), 1, "", "another version"}, 3ms, "c1:error(worker)"},
           {worker_answered{stream_of(), 1, "what to do", ""}, 4ms, ""},
           {from("c1", worker_mail{1, "how it is"}), 5ms, "c1:again"}});
}

TEST(Harness, AnswersARepeatWithTheOldAcknowledgement) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training(), training()}}), 1ms, "append#1(p 1 tt)"},
           {from("c1", reports{1, {training(), training()}}), 1ms, ""}, // the reports are not durable yet
           {stored(1, 2), 2ms, "c1:ack(2)"},
           {from("c1", reports{1, {training(), training(), training()}}), 3ms, "c1:ack(2) append#2(p 3 t)"},
           // The same process has a new connection, and has to greet first.
           {from("c2", reports{4, {training()}}), 4ms, "c2:again"},
           {from("c2", greeting(0)), 5ms, "c2:welcome(2)"},
           {stored(2, 3), 6ms, "c2:ack(3)"},
           {from("c1", ping{}), 7ms, "c1:again"},
           {from("c2", reports{9, {training()}}), 8ms, "c2:again"}, // reports 4 to 8 are missing
           {from("c2", ping{}), 9ms, "c2:pong(3)"}});
}

TEST(Harness, GoesOnWhereARestartedGatewayLearnsFromHello) {
  harness h;
  play(h, {{from("c1", reports{8, {training()}}), 0ms, "c1:again"},
           {from("c1", greeting(7)), 0ms, "c1:error(unknown)"},
           {task_expected{a1, "secret", "/ckpt"}, 1ms, ""},
           {from("c1", greeting(7)), 2ms, "c1:welcome(7)"},
           {from("c1", reports{8, {training()}}), 3ms, "append#1(p 8 t)"},
           {stored(1, 8), 4ms, "c1:ack(8)"}});
}

TEST(Harness, KeepsTheAcknowledgementOfAValidationForItsDecisionAtMost100Ms) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training(), validation()}}), 0ms, "append#1(p 1 tv)"},
           {stored(1, 2), 5ms, "c1:ack(1)"},
           {validation_decided{stream_of(), 2, false, ""}, 8ms, "c1:decision(2) c1:ack(2)"},
           {from("c1", reports{3, {validation()}}), 10ms, "append#2(p 3 v)"},
           // the decision comes before the answer of the journal
           {validation_decided{stream_of(), 3, true, "pruned"}, 11ms, ""},
           {stored(2, 3), 12ms, "c1:decision(3 pruned) c1:ack(3)"},
           {from("c1", reports{4, {validation(), training()}}), 20ms, "append#3(p 4 vt)"},
           {stored(3, 5), 25ms, ""},
           {time_passed{}, 124ms, ""},
           {time_passed{}, 125ms, "c1:ack(5)"},
           // The decision comes after the acknowledgement.
           {validation_decided{stream_of(), 4, true, "pruned"}, 200ms, "c1:stop(pruned)"},
           {from("c1", ping{}), 300ms, "c1:pong(5 pruned)"},
           {from("c2", greeting(5)), 400ms, "c2:welcome(5 pruned)"}});
}

TEST(Harness, RefusesABadReportAtOnceAndStillSpendsItsNumber) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training(), bad(), training()}}), 0ms,
            "c1:refused(2 no map) append#1(p 1 t-t)"},
           // the process may not have received the refusal
           {from("c2", greeting(0)), 1ms, "c2:welcome(0) c2:refused(2 no map)"},
           {stored(1, 3), 2ms, "c2:ack(3)"},
           {from("c2", greeting(3)), 3ms, "c2:welcome(3)"}});
}

TEST(Harness, ClosesTheStreamOfAFencedRun) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {validation()}}), 0ms, "append#1(p 1 v)"},
           {from("c1", reports{2, {training()}}), 0ms, ""},
           {failed(1, errc::conflict), 1ms, "c1:refused(1 conflict) c1:refused(2 conflict) c1:ack(2)"},
           {from("c1", reports{3, {training()}}), 2ms, "c1:refused(3 conflict) c1:ack(3)"}});
  EXPECT_EQ(h.held_bytes(), 0u);
}

TEST(Harness, TriesAgainWithBackOffWhileTheJournalIsAwayOrFull) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training()}}), 0ms, "append#1(p 1 t)"},
           {failed(1, errc::timeout), 10ms, ""}});
  EXPECT_EQ(h.deadline(), t0 + 110ms);
  play(h, {{time_passed{}, 109ms, ""},
           {from("c1", reports{2, {training()}}), 109ms, ""},
           {time_passed{}, 110ms, "append#2(p 1 tt)"},
           {failed(2, errc::no_space), 120ms, ""}});
  EXPECT_EQ(h.deadline(), t0 + 1120ms);
  play(h, {{master_reachable{}, 500ms, "append#3(p 1 tt)"},
           {stored(1, 1), 501ms, ""}, // The lost answer arrives late. The journal will give it again.
           {stored(3, 2), 502ms, "c1:ack(2)"}});
  EXPECT_EQ(h.deadline(), std::nullopt);
}

TEST(Harness, SendsAgainWhatAnOldConnectionCarried) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training()}}), 0ms, "append#1(p 1 t)"},
           {from("c1", reports{2, {training()}}), 1ms, ""},
           {master_reachable{}, 2ms, "append#2(p 1 tt)"},
           {failed(1, errc::timeout), 3ms, ""},
           {stored(1, 1), 4ms, ""}, // the answer is late and belongs to the old connection
           {stored(2, 2), 5ms, "c1:ack(2)"}});
}

TEST(Harness, BoundsAnAppendAndAllAppendsTogether) {
  harness h({.batch_bytes = 400, .in_flight_bytes = 700});
  auto big = training(std::string(100, 'x'));
  play(h, {expected,
           greeted,
           {from("c2", greeting(0, "q")), 0ms, "c2:welcome(0)"},
           {from("c1", reports{1, {big, big, big}}), 0ms, "append#1(p 1 tt)"},
           {from("c2", reports{1, {big, big, big}}), 0ms, "append#2(q 1 tt)"},
           {stored(1, 2), 1ms, "c1:ack(2) append#3(p 3 t)"},
           {stored(2, 2), 1ms, "c2:ack(2) append#4(q 3 t)"}});
}

TEST(Harness, ForwardsACheckpointUntilItIsAnsweredAndRepeatsTheAnswer) {
  harness h;
  task_checkpoint made{1, uuid, 40, {{"a", 5}}, empty_map};
  auto path = "checkpoint(/ckpt/" + uuid + ")";
  play(h, {expected,
           greeted,
           {from("c1", made), 0ms, path},
           {from("c1", made), 1ms, ""},
           {time_passed{}, 1999ms, ""},
           {time_passed{}, 2000ms, path},
           {checkpoint_answered{a1, "other", ""}, 2001ms, ""},
           {checkpoint_answered{a1, uuid, ""}, 2002ms, "c1:saved(1)"},
           {from("c1", made), 2003ms, "c1:saved(1)"},
           {checkpoint_answered{a1, uuid, ""}, 2004ms, ""}});
  made.sequence = 2;
  play(h, {{from("c1", made), 3000ms, path},
           {checkpoint_answered{a1, uuid, "late"}, 3001ms, "c1:unsaved(2 late)"},
           {from("c1", made), 3002ms, "c1:unsaved(2 late)"}});
}

TEST(Harness, PushesAStopToEveryRankAndRemembersIt) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c2", greeting(0, "q", 1)), 0ms, "c2:welcome(0)"},
           {from("c1", reports{1, {validation()}}), 0ms, "append#1(p 1 v)"},
           {stored(1, 1), 1ms, ""},
           {validation_decided{stream_of(), 1, true, "pruned"}, 2ms, "c1:decision(1 pruned) c1:ack(1)"},
           {task_stop_asked{a1, "pruned"}, 3ms, "c1:stop(pruned) c2:stop(pruned)"},
           {task_stop_asked{a1, "pruned"}, 4ms, ""},
           {from("c3", greeting(0, "r", 2)), 5ms, "c3:welcome(0 pruned)"}});
}

TEST(Harness, TurnsAwayWhoDoesNotBelongHere) {
  harness h;
  auto stranger = greeting(), other = greeting(), beyond = greeting(5);
  stranger.token = "guess!";
  other.version = 2;
  play(h, {expected,
           {from("x", stranger), 0ms, "x:error(token)"},
           {from("x", other), 0ms, "x:error(version)"},
           {from("x", malformed{"garbage"}), 0ms, "x:error(malformed)"},
           {from("x", reports{1, {training()}}), 0ms, "x:again"},
           {from("x", ping{}), 0ms, "x:again"},
           greeted,
           {from("c1", malformed{"garbage"}), 0ms, "c1:error(malformed)"},
           {from("c1", ping{}), 0ms, "c1:again"},
           {from("c1", beyond), 0ms, "c1:error(malformed)"},
           {from("c1", peer_gone{}), 0ms, ""}});
  EXPECT_EQ(h.streams(), 1u);
}

TEST(Harness, EndsAProcessThatOverrunsItsWindowButKeepsWhatItSent) {
  harness h({.window_bytes = 150});
  auto big = training(std::string(100, 'x'));
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {big, big, big}}), 0ms, "c1:error(window) append#1(p 1 tt)"},
           {stored(1, 2), 1ms, ""},
           {from("c1", greeting(0)), 2ms, "c1:welcome(2)"}});
}

TEST(Harness, ForgetsSilentProcessesOnlyWhenThereAreTooMany) {
  harness h({.processes = 2});
  play(h, {expected,
           greeted,
           {from("c2", greeting(0, "q")), 9'000ms, "c2:welcome(0)"},
           {from("c3", greeting(0, "r")), 9'999ms, "c3:error(window)"},
           {from("c3", greeting(0, "r")), 10'000ms, "c3:welcome(0)"},
           {from("c1", ping{}), 10'001ms, "c1:again"}});
  EXPECT_EQ(h.streams(), 2u);
}

TEST(Harness, SaysWhenADeadTasksReportsAreDurable) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c1", reports{1, {training(), validation()}}), 0ms, "append#1(p 1 tv)"},
           {task_gone{a1}, 1ms, ""},
           {from("c2", greeting()), 1ms, "c2:error(unknown)"},
           {failed(1, errc::unreachable), 2ms, ""},
           {master_reachable{}, 3ms, "append#2(p 1 tv)"},
           {stored(2, 2), 4ms, "c1:ack(2) drained(12.3)"},
           {task_gone{a1}, 5ms, "drained(12.3)"}});
  EXPECT_EQ(h.streams(), 0u);
}

TEST(Harness, SaysOfATaskWhetherItWasSilentFromItsStartOn) {
  const task_expected begins{a1, "secret", "/ckpt", true};
  auto stranger = greeting();
  stranger.token = "guess!";
  harness never;
  play(never, {{begins, 0ms, ""},
               expected, // the runtime of the task was made again
               {from("x", stranger), 0ms, "x:error(token)"},
               {task_stop_asked{a1, "preempted"}, 1ms, ""},
               {task_gone{a1}, 2ms, "drained(12.3 silent)"},
               {task_gone{a1}, 3ms, "drained(12.3)"}});
  harness once;
  play(
    once,
    {{begins, 0ms, ""}, greeted, {from("c1", peer_gone{}), 1ms, ""}, {task_gone{a1}, 2ms, "drained(12.3)"}});
  harness later; // a new life of the gateway does not know what the task said to an earlier one
  play(later, {expected, {task_gone{a1}, 2ms, "drained(12.3)"}});
}

TEST(Harness, PassesProgressOnFromRank0NowAndThen) {
  harness h;
  play(h, {expected,
           greeted,
           {from("c2", greeting(0, "q", 1)), 0ms, "c2:welcome(0)"},
           {from("c1", task_progress{0.4}), 999ms, ""},
           {from("c1", task_progress{0.5}), 1000ms, "progress(0.50)"},
           {from("c2", task_progress{0.7}), 1500ms, ""},
           {from("c1", task_progress{0.6}), 1999ms, ""},
           {from("c1", task_progress{0.61}), 2000ms, "progress(0.61)"},
           {from("c1", task_progress{0.615}), 9000ms, ""}});
}

// Simulates tasks that send, lose, repeat and reconnect, a journal that answers late, loses answers and
// fails, and a gateway that restarts. In every history the journal has to receive the numbers of each process
// without a gap, nothing may be acknowledged that is not durable, all credit has to return, and in the end
// everything has to be acknowledged.
TEST(Harness, LosesNothingInRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    rng random(seed);
    struct client {
      std::string process;
      std::uint64_t made = 0, acked = 0, connections = 0;
      std::string peer;
      bool greeted = false;
    } clients[3] = {{"p"}, {"q"}, {"r"}};
    std::map<std::string, std::uint64_t> mark;
    std::vector<append_task_reports> wire;
    std::size_t credit = 0;
    auto now = t0;
    auto h = std::make_unique<harness>(
      harness_limits{.window_bytes = 4000, .batch_bytes = 600, .in_flight_bytes = 1500});

    auto apply = [&](const harness_event& ev) {
      if (auto* x = std::get_if<frames_received>(&ev))
        for (const auto& m : x->messages)
          credit += weight(m.frame);
      for (auto& action : h->apply(ev, now)) {
        if (auto* x = std::get_if<append_task_reports>(&action))
          wire.push_back(std::move(*x));
        if (auto* x = std::get_if<release_credit>(&action)) {
          ASSERT_LE(x->bytes, credit) << "seed " << seed;
          credit -= x->bytes;
        }
        auto* sent = std::get_if<send_frame>(&action);
        if (!sent || random.chance(0.1)) // the frame is lost on the way to the task
          continue;
        for (auto& c : clients) {
          if (c.peer != sent->peer)
            continue;
          auto hear = [&](std::uint64_t up_to) {
            ASSERT_LE(up_to, std::max(mark[c.process], c.acked))
              << "seed " << seed << ": acknowledged, not durable";
            c.acked = std::max(c.acked, up_to);
          };
          if (auto* x = std::get_if<ack>(&sent->frame))
            hear(x->up_to);
          if (auto* x = std::get_if<pong>(&sent->frame))
            hear(x->acked);
          if (auto* x = std::get_if<welcome>(&sent->frame)) {
            hear(x->acked);
            c.greeted = true;
          }
          if (std::holds_alternative<again>(sent->frame) || std::holds_alternative<link_error>(sent->frame))
            c.greeted = false;
        }
      }
      ASSERT_EQ(credit, h->held_bytes()) << "seed " << seed;
    };
    auto connect = [&](client& c) {
      c.peer = c.process + std::to_string(++c.connections);
      apply(from(c.peer, greeting(c.acked, c.process)));
    };
    auto send = [&](client& c) {
      reports x{c.acked + 1, {}};
      for (auto n = c.acked + 1; n <= c.made; ++n)
        x.rows.push_back(n % 7 == 0 ? bad() : n % 5 == 0 ? validation() : training(std::string(50, 'x')));
      if (!x.rows.empty())
        apply(from(c.peer, x));
    };
    auto answer = [&](bool well) {
      auto at = random.below(wire.size());
      auto x = wire[at];
      wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(at));
      auto& m = mark[x.batch.process];
      auto last = x.batch.first_sequence + x.batch.reports.size() - 1;
      ASSERT_LE(x.batch.first_sequence, m + 1) << "seed " << seed << ": a gap";
      if (well || random.chance(0.5)) // the reports are stored, but the answer may be lost
        m = std::max(m, last);
      apply(well ? reports_answered{x.number, m, {}} : failed(x.number, errc::timeout));
      if (well && random.chance(0.1))
        apply(reports_answered{x.number, m, {}});
    };

    apply(task_expected{a1, "secret", "/ckpt"});
    for (int i = 0; i < 120; ++i) {
      auto& c = clients[random.below(3)];
      now += duration(random.below(30'000));
      switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        c.made += random.below(4);
        if (c.made - c.acked > 40)
          c.made = c.acked + 40;
        if (c.greeted)
          send(c);
        break;
      case 3:
        connect(c);
        break;
      case 4:
      case 5:
        if (!wire.empty())
          answer(random.chance(0.8));
        break;
      case 6:
        if (auto due = h->deadline()) {
          now = std::max(now, *due);
          apply(time_passed{});
        }
        break;
      default:
        if (random.chance(0.2)) { // a new connection to the master; the mail of the old one may still arrive
          apply(master_reachable{});
        } else if (random.chance(0.1)) { // the agent dies: all soft state is lost, and answers find nobody
          wire.clear();
          credit = 0;
          h = std::make_unique<harness>(
            harness_limits{.window_bytes = 4000, .batch_bytes = 600, .in_flight_bytes = 1500});
          apply(task_expected{a1, "secret", "/ckpt"});
        } else if (c.made > 0 && c.greeted) {
          apply(validation_decided{{a1, 0, c.process}, 1 + random.below(c.made), false, ""});
        }
      }
      if (HasFatalFailure())
        return;
    }
    for (int i = 0;
         i < 1000 && std::any_of(clients, clients + 3, [](const client& c) { return c.acked < c.made; });
         ++i) {
      for (auto& c : clients) {
        if (!c.greeted || i % 10 == 0)
          connect(c);
        if (c.greeted)
          send(c);
      }
      while (!wire.empty())
        answer(true);
      now += 1s;
      apply(time_passed{});
    }
    for (auto& c : clients)
      ASSERT_EQ(c.acked, c.made) << "seed " << seed << " process " << c.process;
    ASSERT_EQ(credit, 0u) << "seed " << seed;
  }
}

} // namespace
} // namespace troupe
