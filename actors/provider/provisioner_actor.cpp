#include "actors/provider/provisioner_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/durable.hpp"
#include "model/commands/table.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using provider_factory =
  std::function<std::unique_ptr<instance_provider>(const std::string& pool, const value& settings)>;

/// Longer than three times the provider's own limit, as three calls may wait for each other.
constexpr auto call_timeout = std::chrono::seconds(240);

/// The actor that calls the provider has a thread of its own, as a call blocks.
class calls_state {
public:
  std::string name = "provider";
  explicit calls_state(actor_base<provider_calls_actor>* self) : self_(self) {}

  provider_calls_actor::behavior_type make_behavior(const std::string& pool, const value& settings,
                                                    const provider_factory& make) {
    name = "provider_calls/" + pool;
    make_ = [pool, settings, make] { return make ? make(pool, settings) : nullptr; };
    self_->enter(name);
    self_->set_exit_handler([this](caf::exit_msg& x) {
      // Even where no call was made yet, instances that an earlier provider started have to end with the
      // node.
      if (x.reason == caf::exit_reason::user_shutdown && provider())
        provider()->close();
      self_->quit(std::move(x.reason));
    });
    return {
      [this](const list_instances&) {
        auto got = provider() ? provider()->list() : result<std::vector<cloud_instance>>(none());
        return got ? instances_listed{std::move(*got), {}} : instances_listed{{}, got.error().what};
      },
      [this](const launch_instances& x) {
        auto got = provider() ? provider()->launch(x.count) : result<std::vector<std::string>>(none());
        return got ? instances_launched{x.order, std::move(*got), {}}
                   : instances_launched{x.order, {}, got.error().what};
      },
      [this](const terminate_instances& x) {
        auto got = provider() ? provider()->terminate(x.ids) : result<void>(none());
        return instances_ended{x.ids, got ? std::string() : got.error().what};
      },
    };
  }

private:
  static error none() { return {errc::unsupported, "this process has no such provider"}; }

  /// The provider is made at the first call, as that may take long.
  instance_provider* provider() {
    if (!provider_)
      provider_ = make_();
    return provider_.get();
  }

  actor_base<provider_calls_actor>* self_;
  std::function<std::unique_ptr<instance_provider>()> make_;
  std::unique_ptr<instance_provider> provider_;
};

class provisioner_state : durable<provisioner_state, provisioner_actor, provider_fact, provisioner_action> {
  friend class durable<provisioner_state, provisioner_actor, provider_fact, provisioner_action>;

public:
  std::string name = "provisioner";
  explicit provisioner_state(actor_base<provisioner_actor>* self) : durable(self) {}

  provisioner_actor::behavior_type make_behavior(const provisioner_setup& setup,
                                                 const std::vector<provider_fact>& past) {
    setup_ = setup;
    name = provider_entity(setup.pool);
    self_->enter(name);
    machine_.emplace(setup.pool, provisioner_settings_of(setup.settings), setup.agents);
    for (const auto& fact : past)
      machine_->replay(fact);
    make_calls(called());
    self_->set_down_handler([this](const caf::down_msg& down) {
      if (calls_ && down.source == calls_.address())
        leave(to_caf({errc::internal, "the calls of its provider died: " + from_caf(down.reason).what}));
    });
    self_->send(setup_.pool_of, provisioner_actor{self_}); // the pool hears of the supply first
    begin(name, past.size(), setup.journal, machine_->resume(self_->now()));
    return {
      [this](const pool_demand& ev) { step(ev); },
      [this](const provider_configured& ev) {
        if (!ev.settings.is_null())
          setup_.settings = ev.settings;
        step(ev);
        choose_calls();
      },
      [this](const time_passed& ev) {
        timer_fired();
        step(ev);
      },
      [this](pool_renewed& x) {
        setup_.pool_of = std::move(x.pool);
        self_->send(setup_.pool_of, machine_->supply());
        self_->send(setup_.pool_of, provisioner_actor{self_});
        return pool_joined{};
      },
    };
  }

private:
  provisioner& machine() { return *machine_; }
  std::optional<time_point> deadline() const { return machine_->deadline(); }
  void end_children(const caf::error& why) {
    if (calls_) {
      self_->demonitor(calls_.address());
      self_->send_exit(calls_, why);
    }
  }

  /// The settings of the provider that is called now: a former provider ends its instances before the next
  /// one begins.
  value called() const {
    const auto type = machine_->provider_type();
    auto settings = setup_.settings.is_object() ? setup_.settings : value::object();
    const auto former = settings.value("former", value::array());
    settings.erase("former");
    settings.erase("dropped");
    if (settings.value("type", std::string()) != type || !settings.contains("type"))
      for (const auto& one : former)
        if (type.empty() || one.value("type", std::string()) == type)
          return one;
    return settings;
  }
  void choose_calls() {
    if (auto now = called(); now != calls_settings_)
      make_calls(now);
  }
  void make_calls(const value& settings) {
    if (calls_) {
      self_->demonitor(calls_.address());
      self_->send_exit(calls_, caf::exit_reason::normal); // its instances stay
    }
    calls_settings_ = settings;
    using impl = shell<calls_state, provider_calls_actor, std::string, value, provider_factory>;
    calls_ = spawn_with_own_thread<impl>(self_->system(), setup_.pool, settings, setup_.make);
    self_->monitor(calls_);
  }

  /// `failed` makes the event of a call that has no answer.
  template <class Answer, class Order, class Failed>
  void call(const Order& order, Failed failed) {
    choose_calls();
    self_->request(calls_, call_timeout, order)
      .then([this](const Answer& ev) { step(ev); },
            [this, failed](const caf::error& why) { step(failed(from_caf(why).what)); });
  }
  void run(const list_instances& x) {
    call<instances_listed>(x, [](std::string why) { return instances_listed{{}, "list: " + why}; });
  }
  void run(const launch_instances& x) {
    call<instances_launched>(x, [x](std::string why) {
      return instances_launched{x.order, {}, "launch: " + why};
    });
  }
  void run(const terminate_instances& x) {
    if (x.why != ordered_before)
      say("ends " + std::to_string(x.ids.size()) + " (" + x.why + ")");
    call<instances_ended>(x, [x](std::string why) { return instances_ended{x.ids, "terminate: " + why}; });
  }
  void run(const tell_supply& x) {
    self_->send(setup_.pool_of, x.supply);
    std::set<std::string> now(x.supply.faults.begin(), x.supply.faults.end());
    if (!x.supply.error.empty())
      now.insert(x.supply.error);
    for (const auto& text : now)
      if (!said_.contains(text))
        say(text); // each text is said once, until it no longer holds
    said_ = std::move(now);
  }
  void run(const drain_instance& x) {
    ask_cluster(commands::agent_drain::is.name, {{"agent", x.agent}, {"on", x.on}}, [] {});
  }
  void run(const forget_instance& x) { // refused until the agent's runs are given away
    ask_cluster(commands::agent_remove::is.name, {{"agent", x.agent}}, [this, x] {
      machine_->forgotten(x.agent);
      step(time_passed{});
    });
  }
  /// Sends a command in the name of the platform. Where it fails, the end of an instance only takes longer.
  void ask_cluster(std::string_view command, value fields, std::function<void()> done) {
    if (!setup_.cluster)
      return;
    self_
      ->request(setup_.cluster, journal_timeout,
                client_command{"troupe", true, {}, std::string(command), std::move(fields)})
      .then(
        [done](const command_result& answer) {
          if (answer.got || answer.got.error().code == errc::not_found)
            done();
        },
        [](const caf::error&) {});
  }
  void run(const provider_done&) { leave(caf::exit_reason::normal); }
  void say(const std::string& text) const {
    if (setup_.say)
      setup_.say("provider of pool " + setup_.pool + ": " + text);
  }

  provisioner_setup setup_;
  std::optional<provisioner> machine_;
  provider_calls_actor calls_;
  value calls_settings_; ///< settings of the provider that `calls_` calls
  std::set<std::string> said_;
};

} // namespace

std::string provider_entity(const std::string& pool) { return "provider/" + pool; }

provisioner_actor spawn_provisioner(caf::actor_system& sys, provisioner_setup setup,
                                    const std::vector<provider_fact>& past) {
  return sys
    .spawn<shell<provisioner_state, provisioner_actor, provisioner_setup, std::vector<provider_fact>>>(
      std::move(setup), past);
}

} // namespace troupe
