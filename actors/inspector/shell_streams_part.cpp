#include "actors/inspector/desk_part.hpp"

#include <caf/all.hpp>

namespace troupe {

shell_streams::~shell_streams() {
  for (auto& [id, s] : streams_)
    s.to->end({{"why", "the shell's desk ended"}});
}

void shell_streams::tell(const value& row) {
  for (auto& [id, s] : streams_)
    if (s.events && (s.kind.empty() || s.kind == field_text(row, "kind")))
      s.to->push(row);
}

void shell_streams::open(const open_stream& x, given done) {
  if (streams_.size() >= most)
    return done(error{errc::busy, "the shell serves " + std::to_string(most) + " streams already"});
  using streams = commands::join<commands::desk_streams, commands::list<commands::shell_events>>;
  auto begun = commands::dispatch<std::monostate, streams>("shell." + x.what.name, x.what.fields,
                                                           [&](const auto& what) -> result<std::monostate> {
                                                             on(x.to, what, done);
                                                             return std::monostate{};
                                                           });
  if (!begun)
    done(begun.error());
}

void shell_streams::on(const std::shared_ptr<row_sink>& to, const commands::shell_events& x, given done) {
  stream s;
  s.to = to;
  s.events = true;
  s.kind = x.kind;
  desk_.ask_all("", commands::inspect_events{0, 1}, [this, s, done](named_answers got) mutable {
    for (const auto& [node, answer] : got)
      if (answer)
        s.seen[node] = answer->value("newest", std::uint64_t{0});
    streams_[++stream_ids_] = std::move(s);
    on_open();
    done(value::object());
  });
}

template <class Stream>
commands::inspect_watch shell_streams::wish_of(const Stream& x) const {
  commands::inspect_watch wish;
  wish.msg = x.msg;
  wish.max = std::min(x.max, most_rows);
  wish.rate = std::min(x.rate, most_rate);
  wish.for_ms = std::clamp(x.for_s, 0.001, 3600.0) * 1000;
  return wish;
}

void shell_streams::on(const std::shared_ptr<row_sink>& to, const commands::shell_trace& x, given done) {
  desk_.locate(x.actor, [this, to, wish = wish_of(x), done](result<desk_context::place> at) mutable {
    if (!at)
      return done(at.error());
    wish.actor = at->actor;
    begin(to, {at->node}, at->actor, "", wish, done);
  });
}

void shell_streams::on(const std::shared_ptr<row_sink>& to, const commands::shell_follow& x, given done) {
  auto wish = wish_of(x);
  const auto& wanted = x.correlation;
  if (wanted.starts_with("req/")) {
    const auto dot = wanted.find('.');
    const auto requester = number_in_text(wanted.substr(4, dot == wanted.npos ? dot : dot - 4));
    const auto request = dot == wanted.npos ? std::nullopt : number_in_text(wanted.substr(dot + 1));
    if (!requester || !request || *requester < 0 || *request < 0)
      return done(error{
        errc::invalid, "the field 'correlation': a request is written req/ACTOR.NUMBER, as `msgs` shows it"});
    wish.requester = static_cast<std::uint64_t>(*requester);
    wish.request = static_cast<std::uint64_t>(*request);
  } else {
    if (!correlation_of_name(wanted))
      return done(
        error{errc::not_found, "nothing is known under the correlation '" + wanted.substr(0, 100) +
                                 "'\nhint: trial/7, experiment/3, or a request as `msgs` shows it"});
    wish.about_these = x.about_these.empty() ? std::vector{wanted} : x.about_these;
  }
  begin(to, desk_.nodes(true), "", wanted.starts_with("experiment/") ? wanted : "", wish, done);
}

void shell_streams::begin(const std::shared_ptr<row_sink>& to, const std::vector<std::string>& where,
                          const std::string& actor, const std::string& experiment,
                          const commands::inspect_watch& wish, given done) {
  struct starting {
    stream s;
    std::size_t left = 0;
    std::optional<error> failed;
  };
  auto all = std::make_shared<starting>();
  all->s.to = to;
  all->s.actor = actor;
  all->s.experiment = experiment;
  all->s.most = static_cast<std::uint64_t>(wish.max);
  all->s.until =
    desk_.self->clock().now() + std::chrono::milliseconds(static_cast<std::int64_t>(wish.for_ms) + 500);
  all->left = where.size();
  for (const auto& node : where)
    desk_.ask(node, wish, [this, all, node, done](result<value> got) {
      if (got)
        all->s.on[node].id = got->value("id", std::uint64_t{0});
      else if (!all->failed)
        all->failed = got.error();
      if (--all->left > 0)
        return;
      if (all->s.on.empty())
        return done(all->failed.value_or(error{errc::unreachable, "no node answers"}));
      streams_[++stream_ids_] = std::move(all->s);
      on_open();
      done(value::object());
    });
}

void shell_streams::end_stream(std::uint64_t id, const std::string& why) {
  auto it = streams_.find(id);
  if (it == streams_.end())
    return;
  auto s = std::move(it->second);
  streams_.erase(it);
  std::uint64_t seen = 0, dropped = 0;
  for (auto& [node, one] : s.on) {
    seen += one.last.value("seen", std::uint64_t{0});
    dropped += one.last.value("dropped", std::uint64_t{0});
    desk_.ask(node, commands::inspect_unwatch{one.id}, [](result<value>) {});
  }
  if (!s.events)
    s.to->end({{"seen", seen}, {"shown", s.shown}, {"dropped", dropped}, {"why", why}});
  else
    s.to->end({{"why", why}});
}

void shell_streams::serve() {
  std::vector<std::pair<std::uint64_t, std::string>> over;
  for (auto& [id, s] : streams_) {
    if (s.to->closed()) {
      over.emplace_back(id, "nobody reads");
      continue;
    }
    if (s.events) {
      poll_events(id, s);
      continue;
    }
    bool all_over = true;
    std::string why;
    for (auto& [node, one] : s.on) {
      all_over = all_over && one.over;
      if (!one.why.empty())
        why = one.why;
      if (!one.over && !one.asking)
        take(id, s, node, one);
    }
    if (all_over)
      over.emplace_back(id, why.empty() ? "max" : why);
    else if (desk_.self->clock().now() > s.until + std::chrono::seconds(2))
      over.emplace_back(id, "time");
  }
  for (const auto& [id, why] : over)
    end_stream(id, why);
}

void shell_streams::take(std::uint64_t id, stream& s, const std::string& node, watched_node& one) {
  one.asking = true;
  commands::inspect_taken question{one.id, s.experiment.empty() ? std::vector<std::string>() : s.abouts};
  refresh_trials(id, s);
  desk_.ask(node, std::move(question), [this, id, node](result<value> got) {
    auto it = streams_.find(id);
    if (it == streams_.end())
      return;
    auto& s = it->second;
    auto& one = s.on[node];
    if (!got) {
      one.asking = false;
      one.over = true;
      one.why = got.error().code == errc::not_found ? "the node " + node + " forgot it"
                                                    : "the node " + node + " went away";
      return;
    }
    desk_.with_names(std::move(*got), [this, id, node](value named) { show(id, node, std::move(named)); });
  });
}

void shell_streams::show(std::uint64_t id, const std::string& node, value taken) {
  auto it = streams_.find(id);
  if (it == streams_.end())
    return;
  auto& s = it->second;
  auto& one = s.on[node];
  one.asking = false;
  for (auto& row : taken["rows"])
    if (s.shown < s.most) { // the limit counts the rows of all nodes
      ++s.shown;
      s.to->push(std::move(row));
    }
  taken.erase("rows");
  one.last = std::move(taken);
  const bool late = desk_.self->clock().now() > s.until;
  if (one.last.value("over", false) || late || s.shown >= s.most) {
    one.over = true;
    one.why = s.shown >= s.most || one.last.value("shown", std::uint64_t{0}) >= s.most ? "max" : "time";
  } else if (one.last.value("gone", false)) {
    if (++s.gone >= 20) { // the actor may be made again
      one.over = true;
      one.why = s.actor + " has ended";
    }
  } else
    s.gone = 0;
}

/// Makes the stream of an experiment show its new trials, too.
void shell_streams::refresh_trials(std::uint64_t id, stream& s) {
  const auto now = desk_.self->clock().now();
  if (s.experiment.empty() || now - s.refreshed < std::chrono::seconds(1))
    return;
  s.refreshed = now;
  desk_.ask(desk_.setup.node, commands::inspect_tree{}, [this, id](result<value> got) {
    auto it = streams_.find(id);
    if (!got || it == streams_.end())
      return;
    auto& s = it->second;
    std::vector<std::string> abouts{s.experiment};
    for (const auto& row : (*got)["rows"])
      if (field_text(row, "owner") == s.experiment && field_text(row, "actor").starts_with("trial/"))
        abouts.push_back(field_text(row, "actor"));
    s.abouts = std::move(abouts);
  });
}

void shell_streams::poll_events(std::uint64_t id, stream& s) {
  for (const auto& node : desk_.nodes(true)) {
    if (s.polling.contains(node))
      continue;
    s.polling.insert(node);
    desk_.ask(node, commands::inspect_events{s.seen[node], 512}, [this, id, node](result<value> got) {
      auto it = streams_.find(id);
      if (it == streams_.end())
        return;
      auto& s = it->second;
      s.polling.erase(node);
      if (!got)
        return;
      for (auto& row : (*got)["rows"])
        if (s.kind.empty() || field_text(row, "kind") == s.kind)
          s.to->push(std::move(row));
      s.seen[node] = got->value("newest", s.seen[node]);
    });
  }
}

} // namespace troupe
