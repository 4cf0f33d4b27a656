#pragma once
// Decides which receivers of webhooks hear of which events, and holds the durable queue of these events. Over
// a restart an event is sent at least once, always with the same id. Pure: runtime/node/webhook_courier.hpp
// sends. The cluster's actor is the shell; the facts are webhook_event in the stream "cluster".

#include "actors/machine.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

/// What an event tells of an experiment, or of a task that belongs to no experiment.
struct webhook_subject {
  experiment_id id; ///< 0: the subject is a task that belongs to no experiment
  std::string name, workspace, project, pool;
  workspace_id in; ///< number of `workspace`
  value config;    ///< configuration, whose `integrations` says which webhooks apply
  std::string state;
  time_point created, ended;
  int slots = 1;
  trial_id trial; ///< the only trial of the experiment, or the trial that the event concerns; 0: none
};

/// One event that is to be sent to one receiver.
struct webhook_delivery {
  std::string id, url, body;
  std::int64_t timestamp = 0; ///< in seconds since 1970; part of the signed text
  bool slack = false;
};

/// Not thread-safe: one actor owns the machine.
class deliveries {
public:
  using webhooks = std::map<webhook_id, webhook_changed>;

  /// Limits of the waiting events, of all receivers and of each one. An event above a limit is given up at
  /// once.
  static constexpr std::size_t most_waiting = 100'000, most_waiting_for_receiver = 25'000;
  static constexpr std::size_t most_open = 128, most_open_of_receiver = 16;
  static constexpr int most_tries = 3;

  explicit deliveries(std::string base_url = {}) : base_url_(std::move(base_url)) {}

  /// The experiment has ended. A repeat gives no second event, even after a restart.
  [[nodiscard]] std::vector<cluster_fact> ended(const webhooks& all, const webhook_subject& what,
                                                time_point now);
  /// A line of the log of `task` matched the expression of the webhook `which`. There is one event for each
  /// task. `what` is the experiment of the task, or the task itself.
  [[nodiscard]] std::vector<cluster_fact> matched(const webhooks& all, webhook_id which,
                                                  const std::string& regex, const webhook_subject& what,
                                                  const std::string& task, const std::string& agent,
                                                  const std::string& line, time_point now);
  /// A script or a user sends an alert. `data`: {title, description, level}.
  [[nodiscard]] std::vector<cluster_fact> alerted(const webhooks& all, const webhook_subject& what,
                                                  const value& data, const std::string& id, time_point now);
  /// An event to test whether the receiver can be reached. It does not enter the queue.
  webhook_delivery test(const webhook_changed& to, const std::string& id, time_point now) const;

  /// The events that are to be sent now; each is open until `told` is called for it.
  [[nodiscard]] std::vector<webhook_delivery> due(time_point now);
  /// The outcome of a delivery. The event is tried again where it is neither `done` nor `final`.
  [[nodiscard]] std::vector<cluster_fact> told(const std::string& id, bool done, bool final,
                                               const std::string& why, time_point now);
  std::optional<time_point> deadline() const; ///< when `due` can next give something

  /// Takes facts of all kinds. The events of a webhook that is deleted are dropped.
  void replay(const cluster_fact& fact);
  std::string snapshot() const;
  value describe() const;

private:
  struct waiting {
    webhook_event event;
    std::uint64_t order = 0; ///< number of the event among all events, in the order of arrival
    int tries = 0;
    bool open = false;
    bool dropped = false; ///< on its way when its webhook was deleted, so that it is not tried again
  };
  void drop(webhook_id deleted);
  struct receiver {
    std::deque<std::string> ready; ///< ids of events, the next one first
    std::size_t open = 0;
    bool in_trouble = false; ///< the last try failed, so one event at a time is sent until one succeeds
  };
  std::vector<cluster_fact> note(std::vector<webhook_event> events);
  /// The content of an event, which is the same for all receivers.
  struct content;
  webhook_event event_of(const webhook_changed& to, std::string id, const content& says,
                         const webhook_subject* what, time_point now) const;
  bool applies(const webhook_changed& hook, const webhook_subject& what) const;
  std::string link_to(const webhook_subject& what) const;

  std::string base_url_;
  std::unordered_map<std::string, waiting> queue_; ///< events that wait or are being sent, by id
  /// The receivers of these events, by URL. Two paths of one host are two receivers, as one gateway may lead
  /// to many.
  std::map<std::string, receiver> receivers_;
  std::set<std::pair<time_point, std::string>> retries_;
  std::size_t all_open_ = 0;
  std::uint64_t next_order_ = 0;
  std::unordered_set<std::string> known_; ///< ids of recent events, also of those that have been settled
  std::deque<std::string> forget_;        ///< the ids in `known_`, the oldest first
};

/// An id in the form of a UUID, which is always the same for the same parts.
std::string event_id(std::initializer_list<std::string> parts);
} // namespace troupe
