// Claims of the shell's probe: at most 20 ns a message with tracing off, whether many wait or few; a trace of
// a flooded actor slows it by at most 5 % and never grows memory; `ps` over 10,000 live actors takes under
// 100 ms. The cost for a calm actor, which has at most a thousand messages a second, is printed beside these;
// the counters are the benchmark's own. The floor is CAF's own actor with the same handler, measured in turns
// with the probed one.
//
//   perf_probe [MESSAGES] [ROUNDS]

#include "actors/inspector/inspector_actor.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>

namespace {

using namespace troupe;
using clock_type = std::chrono::steady_clock;
using sink_actor = caf::typed_actor<caf::reacts_to<agent_down>, caf::reacts_to<time_passed>>;

double seconds(clock_type::duration d) { return std::chrono::duration<double>(d).count(); }

double rss_mb() {
  std::ifstream in("/proc/self/statm");
  long size = 0, resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

/// Handles `wanted` messages, then reports so.
struct counted {
  std::atomic<std::uint64_t> handled{0};
  std::uint64_t wanted = 0;
  std::promise<void> done;
};
using shared_count = std::shared_ptr<counted>;

template <class Self>
sink_actor::behavior_type count_mail(Self*, shared_count count) {
  return {
    [count](const agent_down&) {
      if (count->handled.fetch_add(1, std::memory_order_relaxed) + 1 == count->wanted)
        count->done.set_value();
    },
    [](const time_passed&) {},
  };
}

class plain_sink : public sink_actor::base {
public:
  plain_sink(caf::actor_config& cfg, shared_count count) : sink_actor::base(cfg), count_(std::move(count)) {}
  sink_actor::behavior_type make_behavior() override { return count_mail(this, count_); }

private:
  shared_count count_;
};

class probed_sink : public probed<sink_actor::base> {
public:
  probed_sink(caf::actor_config& cfg, shared_count count, std::string name)
      : probed<sink_actor::base>(cfg), count_(std::move(count)), name_(std::move(name)) {}
  sink_actor::behavior_type make_behavior() override {
    enter(name_);
    return count_mail(this, count_);
  }

private:
  shared_count count_;
  std::string name_;
};

/// Nanoseconds a message, from the first sent to the last handled.
double flood(const sink_actor& to, const shared_count& count, std::uint64_t messages) {
  count->handled = 0;
  count->wanted = messages;
  count->done = {};
  auto over = count->done.get_future();
  const agent_down mail{"a1"};
  const auto begun = clock_type::now();
  for (std::uint64_t i = 0; i < messages; ++i)
    caf::anon_send(to, mail);
  over.wait();
  return seconds(clock_type::now() - begun) * 1e9 / static_cast<double>(messages);
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// The probe's own work on a message of a calm actor, which is timed and whose text is kept: that is so for
/// the first few messages of each probe.
double calm_cost(std::uint64_t messages) {
  const agent_down mail{"a1"};
  const auto brief = message_readers().at(reinterpret_cast<type_key>(&typeid(mail))).brief;
  std::vector<std::unique_ptr<probe>> probes;
  for (std::uint64_t i = 0; i < messages; i += probe::calm_messages) {
    probes.push_back(std::make_unique<probe>());
    auto* slot = probes.back()->add_slot(4096, nullptr, brief);
    probes.back()->keep(brief, &mail); // the only allocation
    probes.back()->end(probes.back()->begin(slot), 0, 0, 0, 0);
  }
  const auto begun = clock_type::now();
  for (auto& p : probes)
    for (std::uint64_t i = 1; i < probe::calm_messages; ++i) {
      p->arrived();
      auto* slot = p->slot_of(4096);
      p->end(p->begin(slot, p->keep(slot->writes, &mail)), i, 0, 0, 0);
    }
  return seconds(clock_type::now() - begun) * 1e9 /
         static_cast<double>(probes.size() * (probe::calm_messages - 1));
}

/// One reading of the clock, to compare with on a machine that others use too.
double clock_cost(std::uint64_t readings) {
  std::uint64_t all = 0;
  const auto begun = clock_type::now();
  for (std::uint64_t i = 0; i < readings; ++i)
    all += ticks_now();
  const auto cost = seconds(clock_type::now() - begun) * 1e9 / static_cast<double>(readings);
  return all ? cost : 0;
}

/// The probe's own work on one message, without CAF.
double bare_cost(std::uint64_t messages, std::uint64_t backlog) {
  probe p;
  auto* slot = p.add_slot(4096, nullptr);
  for (std::uint64_t i = 0; i < backlog; ++i)
    p.arrived();
  const auto begun = clock_type::now();
  for (std::uint64_t i = 0; i < messages; ++i) {
    p.arrived();
    slot = p.slot_of(4096);
    const auto b = p.begin(slot);
    p.end(b, i, 0, 0, 0);
  }
  return seconds(clock_type::now() - begun) * 1e9 / static_cast<double>(messages);
}

value inspect(caf::actor_system& sys, const inspector_actor& to, std::string what, value fields) {
  caf::scoped_actor self{sys};
  command_result out;
  self->request(to, std::chrono::seconds(30), inspect_request{std::move(what), std::move(fields)})
    .receive([&](command_result& got) { out = std::move(got); },
             [&](const caf::error& why) { out = refused(from_caf(why)); });
  if (!out.got) {
    std::fprintf(stderr, "the inspector refused: %s\n", out.got.error().what.c_str());
    std::exit(1);
  }
  return *out.got;
}

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  std::vector<double> under_load, few, alone, calm, clocks;
  for (int i = 0; i < rounds; ++i) {
    clocks.push_back(clock_cost(messages));
    under_load.push_back(bare_cost(messages, 1000));
    few.push_back(bare_cost(messages, 16));
    alone.push_back(bare_cost(messages, 0));
    calm.push_back(calm_cost(std::min<std::uint64_t>(messages, 16'000)));
  }
  std::printf("the probe's work on a message: %.1f ns with a backlog of 1000, %.1f with one of 16, %.1f "
              "without; of a calm actor, at "
              "most 1000 a second, %.1f (medians of %d; a reading of the clock %.1f)\n",
              median(under_load), median(few), median(alone), median(calm), rounds, median(clocks));

  node_config config;
  add_shell_messages(config);
  caf::actor_system sys{config};
  auto inspector = spawn_inspector(sys, {"bench", "bench", "0"});
  auto plain_count = std::make_shared<counted>(), probed_count = std::make_shared<counted>();
  sink_actor plain = sys.spawn<plain_sink>(plain_count);
  sink_actor probed = sys.spawn<probed_sink>(probed_count, std::string("sink/1"));
  std::vector<double> bare, with, traced;
  std::uint64_t sent = 0;
  const auto before = rss_mb();
  std::uint64_t shown = 0, seen = 0;
  for (int i = 0; i < rounds; ++i) {
    bare.push_back(flood(plain, plain_count, messages));
    with.push_back(flood(probed, probed_count, messages));
    const auto id =
      inspect(sys, inspector, "watch",
              {{"actor", "sink/1"}, {"max", 1'000'000}, {"rate", 50}, {"for_ms", 600'000}})["id"];
    traced.push_back(flood(probed, probed_count, messages));
    const auto got = inspect(sys, inspector, "taken", {{"id", id}});
    shown += got["shown"].get<std::uint64_t>();
    seen += got["seen"].get<std::uint64_t>();
    inspect(sys, inspector, "unwatch", {{"id", id}});
    sent += 2 * messages;
  }
  std::vector<double> slower, cost;
  for (int i = 0; i < rounds; ++i) {
    slower.push_back(traced[static_cast<std::size_t>(i)] / with[static_cast<std::size_t>(i)]);
    cost.push_back(with[static_cast<std::size_t>(i)] - bare[static_cast<std::size_t>(i)]);
  }
  std::printf("a flood of %llu messages: CAF's actor %.0f ns a message, probed %.0f, difference %.0f "
              "(medians of pairs)\n",
              static_cast<unsigned long long>(messages), median(bare), median(with), median(cost));
  std::printf("traced: %.0f ns a message at %.0f messages/s, %.3f of untraced; %llu seen, %llu shown\n",
              median(traced), 1e9 / median(traced), median(slower), static_cast<unsigned long long>(seen),
              static_cast<unsigned long long>(shown));
  std::vector<double> extra;
  for (int i = 0; i < rounds; ++i)
    extra.push_back(traced[static_cast<std::size_t>(i)] - with[static_cast<std::size_t>(i)]);
  std::printf("at 100000 messages/s a trace takes %.2f %% of the actor's time (%.0f ns a message)\n",
              median(extra) * 1e5 / 1e9 * 100, median(extra));
  std::printf("memory: %.1f MB before, %.1f after %llu messages\n", before, rss_mb(),
              static_cast<unsigned long long>(3 * sent / 2));
  std::uint64_t counted_by_probe = 0;
  for (int i = 0; i < 1000 && counted_by_probe != sent;
       ++i) // the probe notes the last one only after its handler has reported
    counted_by_probe = inspect(sys, inspector, "actor", {{"actor", "sink/1"}, {"what", "stats"}})["messages"]
                         .get<std::uint64_t>();
  std::printf("the probe counted %llu of %llu messages: %s\n",
              static_cast<unsigned long long>(counted_by_probe), static_cast<unsigned long long>(sent),
              counted_by_probe == sent ? "the same" : "NOT THE SAME");

  std::vector<sink_actor> many;
  auto quiet = std::make_shared<counted>();
  for (int i = 0; i < 10'000; ++i) {
    many.push_back(sys.spawn<probed_sink>(quiet, "sink/" + std::to_string(i + 2)));
    caf::anon_send(many.back(), time_passed{});
  }
  std::vector<double> ps;
  std::size_t rows = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto begun = clock_type::now();
    rows = inspect(sys, inspector, "ps", {{"window_ms", 0}})["rows"].size();
    ps.push_back(seconds(clock_type::now() - begun) * 1e3);
  }
  std::printf("ps of %zu live actors: %.1f ms (median)\n", rows, median(ps));
  for (auto& one : many)
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  for (const caf::actor& one : {caf::actor_cast<caf::actor>(plain), caf::actor_cast<caf::actor>(probed),
                                caf::actor_cast<caf::actor>(inspector)})
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  return counted_by_probe == sent ? 0 : 1;
}
