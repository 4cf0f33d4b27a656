#pragma once
// Which receivers of webhooks hear of what, and the durable queue of what they are told: at least once over
// a restart, each event with one id. Pure: who sends is runtime/node/webhook_courier.hpp. The cluster's actor
// is its shell: its facts, webhook_event, stand in the stream "cluster".

#include "actors/machine.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

/// What an event tells of an experiment, or of a task that belongs to none.
struct webhook_subject {
  experiment_id id; ///< 0: a task that belongs to none
  std::string name, workspace, project, pool;
  workspace_id in; ///< number of `workspace`
  value config;    ///< of which `integrations` says what applies
  std::string state;
  time_point created, ended;
  int slots = 1;
  trial_id trial; ///< of a single-trial experiment, or the one that an event names; 0: none
};

/// One event on its way.
struct webhook_delivery {
  std::string id, url, body;
  std::int64_t timestamp = 0; ///< in seconds: part of what is signed
  bool slack = false;
};

/// Not thread-safe: one actor owns it.
class deliveries {
public:
  using webhooks = std::map<webhook_id, webhook_changed>;

  /// More are given up at once.
  static constexpr std::size_t most_waiting = 100'000, most_waiting_for_receiver = 25'000;
  static constexpr std::size_t most_open = 128, most_open_of_receiver = 16;
  static constexpr int most_tries = 3;

  explicit deliveries(std::string base_url = {}) : base_url_(std::move(base_url)) {}

  /// The experiment has ended. A repeat, after a restart too, gives no second event.
  [[nodiscard]] std::vector<cluster_fact> ended(const webhooks& all, const webhook_subject& what,
                                                time_point now);
  /// A line of the log of `task`, which `what` has or is, matched the expression of this webhook: once for
  /// each task.
  [[nodiscard]] std::vector<cluster_fact> matched(const webhooks& all, webhook_id which,
                                                  const std::string& regex, const webhook_subject& what,
                                                  const std::string& task, const std::string& agent,
                                                  const std::string& line, time_point now);
  /// `data`: {title, description, level}.
  [[nodiscard]] std::vector<cluster_fact> alerted(const webhooks& all, const webhook_subject& what,
                                                  const value& data, const std::string& id, time_point now);
  /// Not queued: for whoever asks whether the receiver can be reached.
  webhook_delivery test(const webhook_changed& to, const std::string& id, time_point now) const;

  /// What is to be sent now; each is open until `told`.
  [[nodiscard]] std::vector<webhook_delivery> due(time_point now);
  /// A delivery has come to an end, or is to be tried again where it is neither done nor final.
  [[nodiscard]] std::vector<cluster_fact> told(const std::string& id, bool done, bool final,
                                               const std::string& why, time_point now);
  std::optional<time_point> deadline() const; ///< when `due` can next give something

  void replay(const cluster_fact& fact);
  std::string snapshot() const;
  value describe() const;

private:
  struct waiting {
    webhook_event event;
    std::uint64_t order = 0; ///< its place among all events, in the order of their arrival
    int tries = 0;
    bool open = false;
  };
  struct receiver {
    std::deque<std::string> ready; ///< ids, the next first
    std::size_t open = 0;
    bool in_trouble = false; ///< the last attempt failed: until one succeeds there is one at a time
  };
  std::vector<cluster_fact> note(std::vector<webhook_event> events);
  /// What an event says, the same for all who hear of it.
  struct content;
  webhook_event event_of(const webhook_changed& to, std::string id, const content& says,
                         const webhook_subject* what, time_point now) const;
  bool applies(const webhook_changed& hook, const webhook_subject& what) const;
  std::string link_to(const webhook_subject& what) const;

  std::string base_url_;
  std::unordered_map<std::string, waiting> queue_; ///< events that wait or are being sent, by their ids
  /// Those with events that wait or are being sent, by address: two paths of one host are two receivers, as
  /// one gateway may lead to many.
  std::map<std::string, receiver> receivers_;
  std::set<std::pair<time_point, std::string>> retries_;
  std::size_t all_open_ = 0;
  std::uint64_t next_order_ = 0;
  std::unordered_set<std::string>
    known_;                        ///< ids of all events, also of those that were delivered or given up
  std::deque<std::string> forget_; ///< the ids in `known_`, the oldest first
};

/// "a1b2...": the same for the same parts, in the form of a UUID.
std::string event_id(std::initializer_list<std::string> parts);
} // namespace troupe
