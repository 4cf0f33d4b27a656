#include "runtime/api/update_book.hpp"

#include "model/rows.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::api {
namespace {

constexpr std::size_t most_ids = 100'000;

double unix_seconds(time_point at) { return std::chrono::duration<double>(at.time_since_epoch()).count(); }

const char* name(updated kind) {
  return kind == updated::project ? "project" : kind == updated::model ? "model" : "modelversion";
}
const char* plural(updated kind) {
  return kind == updated::project ? "projects" : kind == updated::model ? "models" : "modelversions";
}

using keys = std::vector<std::string_view>;

result<void> only_keys(const value& of, const keys& known, const std::string& where) {
  for (const auto& [key, unused] : of.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return error{errc::invalid, where + ": '" + key.substr(0, 50) + "' is none of its keys"};
  return {};
}

value object_or_empty(const value& x) { return x.is_object() ? x : value::object(); }

} // namespace

std::uint64_t version_number(model_id model, std::uint64_t version) { return model.value << 16 | version; }

update_book::update_book() {
  auto first = uncategorized_project();
  update_entry made;
  made.workspace = first.workspace;
  made.owner = first.owner;
  made.shape = {{"id", 1},           {"name", first.name}, {"description", ""},
                {"archived", false}, {"created_at", 0.0},  {"notes", value::array()},
                {"workspace_id", 1}, {"immutable", true},  {"state", "UNSPECIFIED"},
                {"key", first.key}};
  made.id = 1;
  all_[{updated::project, 1}] = std::move(made);
}

void update_book::put(updated kind, std::uint64_t id, update_entry made) {
  made.id = id;
  auto& at = all_[{kind, id}];
  if (at.seq)
    by_seq_.erase({at.seq, kind, id});
  // A fact says when the project changed, and its first fact when the project was made.
  if (kind == updated::project && at.shape.is_object())
    made.shape["created_at"] = at.shape["created_at"];
  by_seq_.insert({made.seq, kind, id});
  at = std::move(made);
}

void update_book::take(const fact& x, std::uint64_t number) {
  const auto seq = number + 1;
  if (const auto* p = std::get_if<project_changed>(&x)) {
    value notes = value::array();
    for (const auto& note : p->notes)
      notes.push_back({{"name", note.name}, {"contents", note.contents}});
    put(updated::project, p->id.value,
        {seq,
         p->deleted,
         p->workspace,
         0,
         0,
         p->owner,
         {{"id", p->id.value},
          {"name", p->name},
          {"description", p->description},
          {"archived", p->archived},
          {"created_at", unix_seconds(p->at)},
          {"notes", std::move(notes)},
          {"workspace_id", p->workspace.value},
          {"immutable", p->id.value == 1},
          {"state", p->deletion == deletion_step::ordered  ? "DELETING"
                    : p->deletion == deletion_step::failed ? "DELETE_FAILED"
                                                           : "UNSPECIFIED"},
          {"key", p->key}}});
  } else if (const auto* m = std::get_if<model_changed>(&x)) {
    put(updated::model, m->id.value,
        {seq,
         m->deleted,
         m->workspace,
         0,
         0,
         m->owner,
         {{"id", m->id.value},
          {"name", m->name},
          {"description", m->description},
          {"archived", m->archived},
          {"creation_time", unix_seconds(m->created)},
          {"notes", m->notes},
          {"workspace_id", m->workspace.value},
          {"last_updated_time", unix_seconds(m->at)},
          {"metadata", object_or_empty(m->metadata)},
          {"labels", m->labels}}});
    // The versions of a model move with it.
    for (auto at = all_.lower_bound({updated::version, 0}); at != all_.end(); ++at)
      if (auto& version = at->second; version.parent == m->id.value && version.workspace != m->workspace) {
        auto moved = version;
        moved.seq = seq;
        moved.workspace = m->workspace;
        moved.shape["workspace_id"] = m->workspace.value;
        moved.with_others = true;
        put(updated::version, at->first.second, std::move(moved));
      }
  } else if (const auto* v = std::get_if<model_version_changed>(&x)) {
    const auto model = all_.find({updated::model, v->model.value});
    const auto workspace = model == all_.end() ? workspace_id{1} : model->second.workspace;
    put(updated::version, version_number(v->model, v->version),
        {seq,
         v->deleted,
         workspace,
         0,
         v->model.value,
         v->owner,
         {{"id", version_number(v->model, v->version)},
          {"name", v->name},
          {"version", v->version},
          {"checkpoint_uuid", v->checkpoint},
          {"creation_time", unix_seconds(v->created)},
          {"last_updated_time", unix_seconds(v->at)},
          {"metadata", object_or_empty(v->metadata)},
          {"model_id", v->model.value},
          {"comment", v->comment},
          {"labels", v->labels},
          {"notes", v->notes},
          {"workspace_id", workspace.value}}});
  }
}

std::vector<std::pair<updated, std::uint64_t>> update_book::after(std::uint64_t seq) const {
  std::vector<std::pair<updated, std::uint64_t>> out;
  for (auto at = by_seq_.lower_bound({seq + 1, updated{}, 0}); at != by_seq_.end(); ++at)
    out.emplace_back(std::get<1>(*at), std::get<2>(*at));
  return out;
}

result<std::set<std::uint64_t>> read_ranges(const std::string& text) {
  std::set<std::uint64_t> out;
  const auto* at = text.data();
  const auto* end = at + text.size();
  const error wrong{errc::invalid, "'" + text.substr(0, 50) + "' is not a list of ids, as 1,3-5"};
  const auto number = [&](std::uint64_t& x) {
    const auto [next, fault] = std::from_chars(at, end, x);
    const bool fine = fault == std::errc{} && next != at;
    at = next;
    return fine;
  };
  while (at != end) {
    std::uint64_t first = 0, last = 0;
    if (!number(first))
      return wrong;
    last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first)
        return wrong;
    }
    if (last - first >= most_ids || out.size() + (last - first) >= most_ids)
      return error{errc::invalid, "more than " + std::to_string(most_ids) + " ids"};
    for (auto id = first;; ++id) {
      out.insert(out.end(), id);
      if (id == last)
        break;
    }
    if (at == end)
      break;
    if (*at++ != ',' || at == end)
      return wrong;
  }
  return out;
}

std::string write_ranges(const std::set<std::uint64_t>& ids) {
  std::string out;
  for (auto at = ids.begin(); at != ids.end();) {
    const auto first = *at;
    auto last = first;
    while (++at != ids.end() && *at == last + 1)
      last = *at;
    out +=
      (out.empty() ? "" : ",") + std::to_string(first) + (last == first ? "" : "-" + std::to_string(last));
  }
  return out;
}

result<void> update_subscription::subscribe(const std::string& message, const update_book& book,
                                            const world& in, std::vector<std::string>& out) {
  auto read = parse_json(message);
  if (!read || !read->is_object())
    return error{errc::invalid, "a message is a JSON object with sync_id, known and subscribe"};
  const auto& body = *read;
  const auto part = [](const value& of, const char* key) {
    return of.is_object() ? of.value(key, value()) : value();
  };
  const auto sync = part(body, "sync_id");
  if (!sync.is_string() || sync.get_ref<const std::string&>().size() > 1000)
    return error{errc::invalid, "sync_id: has to be a text of at most 1000 bytes"};
  for (const auto& [key, unused] : body.items())
    if (key != "sync_id" && key != "known" && key != "subscribe")
      return error{errc::invalid, "'" + key.substr(0, 50) + "' is not a part of a message"};
  std::map<updated, filter> filters;
  const auto known = part(body, "known"), subscribe = part(body, "subscribe");
  for (const auto& [key, of] : {std::pair{"known", &known}, {"subscribe", &subscribe}}) {
    if (of->is_null())
      continue;
    if (!of->is_object())
      return error{errc::invalid, std::string(key) + ": has to be an object"};
    if (auto fine = only_keys(*of, {"projects", "models", "modelversions"}, key); !fine)
      return fine;
  }
  for (const auto kind : {updated::project, updated::model, updated::version}) {
    auto& f = filters[kind];
    if (const auto ids = part(known, plural(kind)); ids.is_string()) {
      auto has = read_ranges(ids);
      if (!has)
        return error{errc::invalid, std::string("known.") + plural(kind) + ": " + has.error().what};
      f.has = std::move(*has);
    } else if (!ids.is_null()) {
      return error{errc::invalid, std::string("known.") + plural(kind) + ": has to be a text"};
    }
    const auto spec = part(subscribe, plural(kind));
    if (spec.is_null())
      continue;
    const std::string where = std::string("subscribe.") + plural(kind);
    if (!spec.is_object())
      return error{errc::invalid, where + ": has to be an object"};
    f.wanted = true;
    if (auto fine =
          only_keys(spec,
                    kind == updated::project ? keys{"workspace_ids", "project_ids", "since"}
                    : kind == updated::model ? keys{"workspace_ids", "model_ids", "user_ids", "since"}
                                             : keys{"model_ids", "model_version_ids", "user_ids", "since"},
                    where);
        !fine)
      return fine;
    const auto list = [&](const char* key, std::set<std::uint64_t>& into) -> result<void> {
      const auto ids = part(spec, key);
      if (ids.is_null())
        return {};
      if (!ids.is_array() || ids.size() > most_ids)
        return error{errc::invalid, where + "." + key + ": has to be a list of numbers"};
      for (const auto& id : ids) {
        if (!id.is_number_unsigned())
          return error{errc::invalid, where + "." + key + ": has to be a list of numbers"};
        into.insert(id.get<std::uint64_t>());
      }
      return {};
    };
    const char* own = kind == updated::project ? "project_ids"
                      : kind == updated::model ? "model_ids"
                                               : "model_version_ids";
    result<void> fine = list(own, f.ids);
    if (fine && kind != updated::version)
      fine = list("workspace_ids", f.workspaces);
    if (fine && kind != updated::project)
      fine = list("user_ids", f.users);
    if (fine && kind == updated::version)
      fine = list("model_ids", f.parents);
    if (!fine)
      return fine;
    if (const auto since = part(spec, "since"); since.is_number_unsigned())
      f.since = since.get<std::uint64_t>();
    else if (!since.is_null())
      return error{errc::invalid, where + ".since: has to be a number"};
  }
  filters_ = std::move(filters);
  out.push_back(to_json({{"sync_id", sync}, {"complete", false}}));
  sync_ = sync;
  due_.clear();
  for (auto& [kind, f] : filters_) {
    std::set<std::uint64_t> gone, has;
    for (const auto id : f.has) {
      const auto at = book.all().find({kind, id});
      if (at != book.all().end() ? matches(kind, at->second, in) : false)
        has.insert(id);
      // The stock client sends ids of models where it should send ids of versions. So ids of versions that
      // never existed are not answered.
      else if (at != book.all().end() || kind != updated::version)
        gone.insert(id);
    }
    if (!gone.empty())
      out.push_back(to_json({{std::string(plural(kind)) + "_deleted", write_ranges(gone)}}));
    for (const auto& [key, x] : book.all()) {
      if (key.first != kind || !matches(kind, x, in))
        continue;
      // A client that was cut off may have heard only some of several changes with one number.
      if (!has.contains(key.second) || x.seq > f.since || (x.with_others && x.seq == f.since))
        due_.emplace_back(x.seq, kind, key.second);
      has.insert(key.second);
    }
    f.has = std::move(has);
  }
  std::sort(due_.begin(), due_.end()); // in the order of changes, over all kinds
  seen_ = book.newest();
  return {};
}

void update_subscription::follow(const update_book& book, const world& in, std::vector<std::string>& out,
                                 std::size_t most) {
  std::size_t bytes = 0;
  for (; !due_.empty() && bytes < most; due_.pop_front()) {
    const auto& [seq, kind, id] = due_.front();
    const auto& x = book.all().at({kind, id});
    if (x.seq != seq || !matches(kind, x, in)) // the thing has changed since, and that change comes later
      continue;
    out.push_back(upsert(kind, x, in));
    bytes += out.back().size();
  }
  if (!due_.empty())
    return;
  if (sync_) {
    out.push_back(to_json({{"sync_id", *std::exchange(sync_, std::nullopt)}, {"complete", true}}));
    late_ = true;
  }
  for (const auto& [kind, id] : book.after(seen_)) {
    auto& f = filters_[kind];
    const auto& x = book.all().at({kind, id});
    if (late_ && bytes >= most && x.seq != seen_) // versions that moved with their model have the same number
      return;
    seen_ = x.seq;
    if (matches(kind, x, in)) {
      f.has.insert(id);
      out.push_back(upsert(kind, x, in));
    } else if (f.has.erase(id)) {
      out.push_back(to_json({{std::string(plural(kind)) + "_deleted", std::to_string(id)}}));
    } else {
      continue;
    }
    bytes += out.back().size();
  }
  seen_ = book.newest();
  late_ = false;
}

bool update_subscription::matches(updated kind, const update_entry& x, const world& in) const {
  const auto at = filters_.find(kind);
  if (at == filters_.end() || !at->second.wanted || x.deleted)
    return false;
  const auto& f = at->second;
  const bool named = f.ids.contains(x.id) || f.workspaces.contains(x.workspace.value) ||
                     f.parents.contains(x.parent) ||
                     (!f.users.empty() && f.users.contains(in.user_id(x.owner)));
  return named && in.sees(kind, x);
}

std::string update_subscription::upsert(updated kind, const update_entry& x, const world& in) const {
  auto shape = x.shape;
  shape["seq"] = x.seq;
  shape["user_id"] = in.user_id(x.owner);
  return to_json({{name(kind), std::move(shape)}});
}

} // namespace troupe::api
