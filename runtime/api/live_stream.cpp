#include "runtime/api/live_stream.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/feed.hpp"
#include "runtime/api/log_shape.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/seen_totals.hpp"
#include "runtime/api/series_columns.hpp"
#include "runtime/api/veil.hpp"
#include "storage/trial_watch.hpp"

#include <algorithm>
#include <limits>

namespace troupe::api {
namespace {

constexpr duration least_pause = 250ms, heartbeat = 5s, cluster_pause = 1s, steps_pause = 1s,
                   rights_pause = 5s, totals_last = 5s;
constexpr std::size_t facts_at_once = 2000, points_at_once = 5000, lines_at_once = 500;

/// The last answers of the cluster's actors, which answer on threads of their own.
struct cluster_view {
  std::mutex mutex;
  value now = value::object();
  std::string sent;
  int waiting_for = 0;
};

class live : public body_stream {
public:
  live(std::shared_ptr<const services> parts, principal who, std::uint64_t user, live_topics topics,
       std::uint64_t after)
      : parts_(std::move(parts)), who_(std::move(who)), user_(user), topics_(std::move(topics)),
        // After a backup was restored, a reader may name a fact that is not there yet.
        after_(std::min(after, parts_->storage->sequence())) {}

  result<piece> next(time_point now) override {
    piece out;
    if (std::exchange(greeted_, true)) {
      if (now - looked_ < least_pause) {
        out.pause = least_pause - (now - looked_);
        return out;
      }
    } else {
      out.bytes = event("hello", {{"sequence", parts_->storage->sequence()},
                                  {"masterId", parts_->about.master_id},
                                  {"version", parts_->about.troupe_version},
                                  {"user", user_}});
      start_curves_and_logs();
      start_rights();
      trials_with_reports(now); // earlier reports are read with the lists
    }
    looked_ = now;
    if (auto ok = add_rows(now, out.bytes); !ok)
      return ok.error();
    for (auto& curve : curves_)
      if (auto ok = add_points(curve, out.bytes); !ok)
        return ok.error();
    for (auto& [trial, line] : lines_)
      if (auto ok = add_lines(trial, line, out.bytes); !ok)
        return ok.error();
    add_hidden(now, out.bytes);
    const bool answers_come = topics_.cluster && add_cluster(now, out.bytes);
    if (!out.bytes.empty())
      last_sent_ = now;
    else if (now - last_sent_ >= heartbeat) {
      out.bytes = "event: alive\ndata: {}\n\n"; // scripts of pages hear of events, not of comments
      last_sent_ = now;
    } else {
      out.pause = heartbeat - (now - last_sent_);
      if (steps_due_)
        out.pause = std::min(*out.pause, steps_looked_ + steps_pause - now);
      if (topics_.cluster)
        out.pause = std::min(*out.pause, answers_come ? least_pause : asked_ + cluster_pause - now);
    }
    return out;
  }

private:
  struct curve {
    live_topics::series of;
    std::map<trial_id, std::uint64_t> rows; ///< newest row of each trial that was sent
  };

  std::string event(const char* name, const value& data) const {
    return "id: " + std::to_string(after_) + "\nevent: " + name + "\ndata: " + to_json(data) + "\n\n";
  }

  /// Lets points and lines begin with those that come from now on; the reader gets earlier ones from `series`
  /// and the log.
  void start_curves_and_logs() {
    for (const auto& one : topics_.curves) {
      auto& c = curves_.emplace_back(curve{one, {}});
      auto trials = parts_->storage->trials(one.experiment);
      if (trials)
        for (const auto& t : *trials)
          if (!terminal(t.state))
            if (auto known = parts_->columns->column(t, one.group, one.metric, *parts_->storage))
              c.rows[t.id] = (*known)->empty() ? 0 : (*known)->back().row;
    }
    for (auto trial : topics_.logs) {
      auto newest = parts_->storage->logs_before(trial, std::numeric_limits<std::uint64_t>::max(), 1);
      lines_[trial] = newest && !newest->empty() ? newest->front().number : 0;
    }
  }

  /// Notes the experiments of the topics. The first answer tells which of them the viewer does not see,
  /// because a viewer that comes again may have seen them before.
  void start_rights() {
    const auto* screen = screen_of_viewer();
    if (!screen)
      return;
    rights_ = screen->rights();
    followed_ = topics_.trials_of;
    for (const auto& one : topics_.curves)
      followed_.insert(one.experiment);
    for (const auto trial : topics_.logs)
      if (const auto row = parts_->storage->trial(trial))
        followed_.insert(row->experiment);
  }

  /// Where roles decide, tells of what the viewer may not see any more. Rights change without a fact that the
  /// viewer may see.
  void add_hidden(time_point now, std::string& out) {
    const auto* screen = screen_of_viewer();
    if (!screen)
      return;
    std::erase_if(followed_, [&](experiment_id id) {
      const bool hidden = !screen->shows(id);
      if (hidden)
        out += event("gone", {{"experiment", id.value}});
      return hidden;
    });
    if (now - told_rights_ < rights_pause)
      return; // this is called again in time, as a stream never waits longer than for the check of its token
    if (const auto rights = screen->rights(); rights != std::exchange(rights_, rights)) {
      told_rights_ = now;
      out += event("lost", {{"topic", "experiments"}, {"count", 0}});
    }
  }

  const screen* screen_of_viewer() const { return dynamic_cast<const screen*>(parts_->storage.get()); }

  /// Trials that have reported since the last answer, so that their rows have new steps. Storage is asked
  /// once a second.
  std::set<trial_id> trials_with_reports(time_point now) {
    // The rows themselves are read as the viewer may see them.
    const auto& everything = *(parts_->all ? *parts_->all : *parts_).storage;
    const auto* watch = dynamic_cast<const storage::trial_watch*>(&everything);
    if (!watch || topics_.trials_of.empty())
      return {};
    steps_due_ = now - steps_looked_ < steps_pause;
    if (steps_due_)
      return {};
    steps_looked_ = now;
    auto news = watch->reports_since(reports_seen_);
    reports_seen_ = news.version;
    if (news.all) // true at the start and after very many reports; later reports name their trials
      return {};
    return {news.changed.begin(), news.changed.end()};
  }

  /// Adds the rows of experiments and trials that the facts since the last look are about.
  result<void> add_rows(time_point now, std::string& out) {
    std::set<experiment_id> experiments;
    auto trials = trials_with_reports(now);
    for (bool more = true; more;) {
      auto facts = parts_->storage->facts_after(after_, facts_at_once);
      if (!facts)
        return facts.error();
      for (const auto& one : *facts) {
        after_ = one.sequence;
        note(one, experiments, trials);
      }
      more = facts->size() == facts_at_once;
    }
    auto places = place_book::read(*parts_->storage);
    if (!places)
      return places.error();
    for (auto id : experiments)
      if (topics_.experiments || topics_.trials_of.contains(id)) {
        auto row = parts_->storage->experiment(id);
        if (!row && row.error().code == errc::not_found) { // the experiment was deleted
          out += event("gone", {{"experiment", id.value}});
          followed_.erase(id);
          continue;
        }
        if (!row)
          return row.error();
        auto shape = experiment_shape(*row, *parts_->users, *places);
        shape.erase("originalConfig");
        out += event("experiment", shape);
        if (topics_.trials_of.contains(id))
          followed_.insert(id); // it may have become visible after the stream's start
      }
    for (auto id : trials)
      if (auto row = parts_->storage->trial(id); row && topics_.trials_of.contains(row->experiment))
        out += event("trial", trial_progress_shape(*row));
    return {};
  }

  void note(const storage::committed_fact& one, std::set<experiment_id>& experiments,
            std::set<trial_id>& trials) {
    const std::string_view entity = one.entity;
    const auto slash = entity.find('/');
    const auto kind = entity.substr(0, slash),
               rest = slash == entity.npos ? std::string_view{} : entity.substr(slash + 1);
    if (kind == "experiment") {
      experiments.insert(parse_id<experiment_id>(rest));
      if (auto fact = decode_as<experiment_fact>(one.bytes))
        if (auto* step = std::get_if<search_stepped>(&*fact)) {
          if (step->trial)
            trials.insert(step->trial);
          for (const auto& t : step->created)
            trials.insert(t.trial);
          for (const auto& t : step->stopped)
            trials.insert(t.trial);
        }
      return;
    }
    if (kind == cluster_entity) {
      if (auto shape = fact_shape(one)) {
        const auto type = shape->value("type", "");
        for (const char* tag : {experiment_created::tag, experiment_described::tag, experiment_moved::tag,
                                experiment_deleted::tag, experiment_continued::tag})
          if (type == tag)
            experiments.insert({shape->at("id").get<std::uint64_t>()});
        if (type == trial_deleted::tag) // the experiment has fewer trials now
          experiments.insert({shape->at("experiment").get<std::uint64_t>()});
      }
      return;
    }
    const auto task = kind == "allocation" ? parse_allocation(rest).task
                      : kind == "trial"    ? parse_task(rest)
                                           : task_id{};
    if (!task || !task.is_trial())
      return;
    trials.insert(task.trial());
    if (kind != "trial")
      return;
    // A run that starts from a checkpoint may archive the best report of its experiment.
    const auto fact = decode_as<trial_fact>(one.bytes);
    const auto* run = fact ? std::get_if<run_started>(&*fact) : nullptr;
    if (run && run->from_steps > 0)
      if (const auto row = parts_->storage->trial(task.trial()))
        experiments.insert(row->experiment);
  }

  result<void> add_points(curve& c, std::string& out) {
    auto trials = parts_->storage->trials(c.of.experiment);
    if (!trials)
      return trials.error();
    for (const auto& t : *trials) {
      const bool known = c.rows.contains(t.id);
      if (terminal(t.state) && !known)
        continue;
      auto points = parts_->columns->column(t, c.of.group, c.of.metric, *parts_->storage);
      if (!points)
        return points.error();
      auto& row = c.rows[t.id];
      auto rule = parts_->columns->rollback(t, *parts_->storage);
      if (!rule)
        return rule.error();
      const auto gone = (*rule)->limits(c.of.group);
      value steps = value::array(), at = value::array(), y = value::array();
      auto first = std::upper_bound((*points)->begin(), (*points)->end(), row,
                                    [](std::uint64_t r, const series_point& p) { return r < p.row; });
      const auto fresh = static_cast<std::size_t>((*points)->end() - first);
      if (fresh > points_at_once) {
        out += event("lost", {{"topic", "series"}, {"count", fresh - points_at_once}});
        first = (*points)->end() - points_at_once;
      }
      const series_point* told = nullptr;
      for (; first != (*points)->end(); ++first) {
        row = first->row;
        if (gone({first->run}, first->steps))
          continue;
        if (told && replaces(*first, *told, c.of.group)) {
          at.back() = static_cast<double>(first->at) / 1e6;
          y.back() = first->y;
          told = &*first;
          continue;
        }
        told = &*first;
        steps.push_back(first->steps);
        at.push_back(static_cast<double>(first->at) / 1e6);
        y.push_back(first->y);
      }
      if (!y.empty())
        out += event("points", {{"experiment", c.of.experiment.value},
                                {"group", c.of.group},
                                {"metric", c.of.metric},
                                {"trial", t.id.value},
                                {"row", row},
                                {"steps", std::move(steps)},
                                {"at", std::move(at)},
                                {"y", std::move(y)}});
      if (terminal(t.state))
        c.rows.erase(t.id);
    }
    return {};
  }

  result<void> add_lines(trial_id trial, std::uint64_t& seen, std::string& out) {
    auto lines = parts_->storage->logs(trial, seen, lines_at_once);
    if (!lines)
      return lines.error();
    for (const auto& line : *lines) {
      seen = line.number;
      auto shape = log_shape(line);
      shape["trial"] = trial.value;
      out += event("line", shape);
    }
    return {};
  }

  /// Where roles hide something, the totals of the cluster become those of what the reader sees.
  void hide_totals(value& cluster, time_point now) {
    if (!parts_->roles || hides_nothing(*parts_->storage))
      return;
    if (now - counted_ >= totals_last)
      if (const auto open = count_open(*parts_->storage)) {
        open_ = *open;
        counted_ = now;
      }
    cluster["status"]["experiments_active"] = open_;
    cluster["status"]["waiting"] = count_waiting(cluster["waiting"]);
  }

  /// Asks the cluster at most once a second, and sends its answer where that is new. Returns whether answers
  /// are on their way, so that they are sent soon.
  bool add_cluster(time_point now, std::string& out) {
    auto view = cluster_;
    bool ask = false, asked = false;
    {
      std::lock_guard lock{view->mutex};
      if (view->waiting_for == 0 && view->now.size() == 3) {
        hide_totals(view->now, now);
        auto text = to_json(view->now);
        if (text != view->sent)
          out += event("cluster", view->now);
        view->sent = std::move(text);
      }
      asked = view->waiting_for != 0;
      ask = !asked && now - asked_ >= cluster_pause;
      if (ask)
        view->waiting_for = 3;
    }
    if (!ask)
      return asked;
    asked_ = now;
    const auto into = [view](const char* key, std::function<value(value)> shape) {
      return [view, key, shape = std::move(shape)](result<value> got) {
        if (got)
          got = shape(std::move(*got)); // outside of the lock, which loops of the server take
        std::lock_guard lock{view->mutex};
        --view->waiting_for;
        if (got)
          view->now[key] = std::move(*got);
      };
    };
    auto& cluster = parts_->cluster;
    cluster.order(who_, commands::status{}, into("status", [](value x) { return x; }));
    cluster.order(who_, commands::agent_list{}, into("agents", [](value x) {
                    value all = value::array();
                    for (const auto& one : x.value("agents", value::array()))
                      all.push_back(agent_shape(one));
                    return all;
                  }));
    cluster.order(who_, commands::queue_list{},
                  into("waiting", [](value x) { return x.value("waiting", value::array()); }));
    return true;
  }

  std::shared_ptr<const services> parts_;
  principal who_;
  std::uint64_t user_; ///< number of the user whose rights the stream has
  live_topics topics_;
  std::uint64_t after_;
  std::vector<curve> curves_;
  std::map<trial_id, std::uint64_t> lines_;
  std::shared_ptr<cluster_view> cluster_ = std::make_shared<cluster_view>();
  std::uint64_t reports_seen_ = 0; ///< version of the reports that were looked at
  time_point looked_, last_sent_, asked_, steps_looked_;
  time_point counted_;               ///< when `open_` was counted
  std::int64_t open_ = 0;            ///< number of experiments that the reader sees and that have not ended
  std::set<experiment_id> followed_; ///< those of the topics that are not `gone`
  std::uint64_t rights_ = 0;         ///< the screen's `rights` of which the reader knows
  time_point told_rights_;
  bool greeted_ = false;
  bool steps_due_ = false; ///< there may be reports whose steps were not sent yet
};

} // namespace

result<live_topics> live_topics::read(std::string_view text) {
  live_topics all;
  int count = 0;
  for (const auto& element : list_elements(text)) {
    const std::string_view one = element;
    const error wrong{errc::invalid, "'" + element.substr(0, 100) +
                                       "' is not a topic; there are experiments, experiment/7, "
                                       "series/7/validation/loss, logs/12 and cluster"};
    if (++count > 100)
      return error{errc::invalid, "at most 100 topics at once"};
    const auto slash = one.find('/');
    const auto kind = one.substr(0, slash),
               rest = slash == one.npos ? std::string_view{} : one.substr(slash + 1);
    if (one == "experiments")
      all.experiments = true;
    else if (one == "cluster")
      all.cluster = true;
    else if (const auto id = parse_id<experiment_id>(rest); kind == "experiment" && id)
      all.trials_of.insert(id);
    else if (const auto trial = parse_id<trial_id>(rest); kind == "logs" && trial)
      all.logs.insert(trial);
    else if (kind == "series") {
      const auto second = rest.find('/');
      const auto third = second == rest.npos ? rest.npos : rest.find('/', second + 1);
      const auto of = parse_id<experiment_id>(rest.substr(0, second));
      if (!of || third == rest.npos || third == second + 1)
        return wrong;
      all.curves.push_back(
        {of, std::string(rest.substr(second + 1, third - second - 1)), std::string(rest.substr(third + 1))});
    } else
      return wrong;
  }
  return all;
}

std::unique_ptr<body_stream> live_stream(std::shared_ptr<const services> parts, principal who,
                                         std::uint64_t user, live_topics topics, std::uint64_t after) {
  return std::make_unique<live>(std::move(parts), std::move(who), user, std::move(topics), after);
}

} // namespace troupe::api
