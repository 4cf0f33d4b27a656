#pragma once
// What the parts of the shell's desk share: the nodes and their inspectors, and how to ask them.

#include "actors/inspector/shell_desk_actor.hpp"
#include "actors/shells/obey.hpp"

#include <caf/typed_response_promise.hpp>

#include <deque>
#include <set>

namespace troupe {

using given = std::function<void(result<value>)>;           ///< called once, on the desk's thread
using named_answers = std::map<std::string, result<value>>; ///< answers by the name of the node

inline constexpr auto node_patience = std::chrono::seconds(3);

/// The text or number under `name`; nothing if it is missing or has another type.
std::string field_text(const value& x, const char* name);
double field_number(const value& x, const char* name, double otherwise);
std::string kind_of(const std::string& actor);
std::string id_of(const std::string& actor);
std::string now_text();
std::optional<double> number_in_text(const std::string& x);

/// Makes a row under "missing" for each node that did not answer.
value missing_of(const named_answers& got);
value audit_row(const value& row);

/// Not thread-safe: one actor owns it.
class desk_context {
public:
  desk_context(actor_base<desk_actor>* self, desk_setup setup);

  void joined(node_joined x);
  void node_down(const caf::down_msg& down);
  void note(const std::string& kind, const std::string& actor, const std::string& what,
            const std::string& user);

  /// Sends one of commands::inspector_commands to the inspector of a node.
  template <commands::command C>
  void ask(const std::string& where, C what, given then, std::chrono::milliseconds patience = node_patience) {
    ask(where, request_of(std::move(what)), std::move(then), patience);
  }
  /// Asks all nodes, or only the node `only`.
  template <commands::command C>
  void ask_all(const std::string& only, C what, std::function<void(named_answers)> then,
               std::chrono::milliseconds patience = node_patience) {
    ask_all(only, request_of(std::move(what)), std::move(then), patience);
  }

  /// Where an actor is, written "NAME" or "NAME@NODE".
  struct place {
    std::string node, actor, kind, owner;
    std::uint64_t id = 0;
  };
  void locate(const std::string& wanted, std::function<void(result<place>)> then);

  /// Replaces the numbers in `body`, "#12@123", by which an inspector names actors of other nodes; asks those
  /// nodes for names that are not known yet. Writes "#12@NODE" if the node does not know the actor, or is not
  /// connected.
  void with_names(value body, std::function<void(value)> then);

  bool knows(const std::string& node) const { return nodes_.contains(node); }
  std::vector<std::string> nodes(bool here_now = false) const;
  const std::deque<value>& events() const { return events_; } ///< events about nodes
  std::function<void(const value&)> on_event;

  void later(std::chrono::milliseconds wait, std::function<void()> what);
  void run_timers();

  actor_base<desk_actor>* self;
  desk_setup setup;

private:
  template <commands::command C>
  static inspect_request request_of(C what) {
    const std::string word = std::string_view(C::is.name).substr(std::string_view("inspect.").size()).data();
    inspect_request out{word, commands::write(std::move(what))};
    if constexpr (commands::contains<commands::actor_questions, C>) {
      out.fields["what"] = word;
      out.what = "actor";
    }
    return out;
  }
  void ask(const std::string& where, inspect_request what, given then, std::chrono::milliseconds patience);
  void ask_all(const std::string& only, inspect_request what, std::function<void(named_answers)> then,
               std::chrono::milliseconds patience);
  struct node {
    caf::actor inspector; ///< null while the node is not connected
  };
  struct number { ///< number by which an inspector names an actor
    std::uint64_t node = 0, actor = 0;
    friend auto operator<=>(const number&, const number&) = default;
  };
  static std::optional<number> number_in(const value& x);
  static void each_number(value& body, const std::function<void(value&, number)>& use);
  std::string node_of(const number& x) const;
  std::map<std::string, node> nodes_;
  std::map<number, std::string> names_; ///< names by number; empty: the actor's node does not know it
  std::deque<value> events_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers_;
};

/// The commands that only read: commands::desk_looks.
class shell_views {
public:
  explicit shell_views(desk_context& desk) : desk_(desk) {}
  void on(const commands::shell_nodes&, given done);
  void on(const commands::shell_ps& x, given done);
  void on(const commands::shell_info& x, given done);
  void on(const commands::shell_tree& x, given done);
  void on(const commands::shell_state& x, given done);
  void on(const commands::shell_msgs& x, given done);
  void on(const commands::shell_stats& x, given done);
  void on(const commands::shell_links& x, given done);
  void on(const commands::shell_waits&, given done);
  void on(const commands::shell_events& x, given done);
  void on(const commands::shell_log&, given done);
  void on(const commands::shell_messages&, given done);

private:
  value join_nodes(const named_answers& got, const value& listed) const;
  /// Sends `question` to the node that holds the question's actor.
  template <class Question>
  void of_actor(Question question, given done);
  void state_diff(const commands::shell_state& x, given done);
  desk_context& desk_;
};

/// Live views: traces, followed actors and experiments, events.
class shell_streams {
public:
  explicit shell_streams(desk_context& desk) : desk_(desk) {}
  ~shell_streams(); ///< ends all open streams
  void open(const open_stream& x, given done);
  void tell(const value& row); ///< sends an event to all streams that show events of its kind
  void serve();                ///< to be called every `tick` while a stream is open
  bool idle() const { return streams_.empty(); }
  std::function<void()> on_open;

  static constexpr std::size_t most = 64;
  double most_rate = 10'000, most_rows = 1'000'000; ///< limits of one trace

private:
  struct watched_node {
    std::uint64_t id = 0;
    value last = value::object();
    bool over = false, asking = false;
    std::string why;
  };
  struct stream {
    std::shared_ptr<row_sink> to;
    bool events = false;
    std::string kind;                          ///< kind of events that are shown
    std::map<std::string, std::uint64_t> seen; ///< for events: the newest number that each node has shown
    std::map<std::string, watched_node> on;
    std::string actor, experiment; ///< the traced actor; the followed experiment
    std::chrono::steady_clock::time_point until, refreshed;
    std::vector<std::string> abouts; ///< for an experiment: the experiment and its trials
    std::set<std::string> polling;   ///< nodes that were asked for events and have not answered
    std::uint64_t gone = 0;          ///< how many answers in a row lacked the actor
    std::uint64_t most = 0, shown = 0;
  };
  void on(const std::shared_ptr<row_sink>& to, const commands::shell_events& x, given done);
  void on(const std::shared_ptr<row_sink>& to, const commands::shell_trace& x, given done);
  void on(const std::shared_ptr<row_sink>& to, const commands::shell_follow& x, given done);
  template <class Stream>
  commands::inspect_watch wish_of(const Stream& x) const;
  void begin(const std::shared_ptr<row_sink>& to, const std::vector<std::string>& where,
             const std::string& actor, const std::string& experiment, const commands::inspect_watch& wish,
             given done);
  void end_stream(std::uint64_t id, const std::string& why);
  void take(std::uint64_t id, stream& s, const std::string& node, watched_node& one);
  void show(std::uint64_t id, const std::string& node, value taken);
  void refresh_trials(std::uint64_t id, stream& s);
  void poll_events(std::uint64_t id, stream& s);
  desk_context& desk_;
  std::map<std::uint64_t, stream> streams_;
  std::uint64_t stream_ids_ = 0;
};

} // namespace troupe
