// Checks what a run needs, once all layers are merged.

#include "model/config/check.hpp"

#include "model/chosen_name.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

class completeness {
public:
  completeness(const node& text, report& out) : text_(text), out_(out) {}

  void check(const value& x, const shape& s) {
    if (!s.may_lack || s.merge == merging::hyperparameter)
      return;
    const auto& one = narrowed(s, x);
    if (&one != &s)
      return check(x, one);
    if (x.is_array() && s.items) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        trail::guard step(way_, i);
        check(x[i], *s.items);
      }
      return;
    }
    if (!x.is_object())
      return;
    for (const auto& k : s.keys) {
      if (k.needed != need::to_run && !k.what->may_lack)
        continue;
      auto found = x.find(k.name);
      if (found != x.end() && !found->is_null()) {
        trail::guard step(way_, k.name);
        check(*found, *k.what);
      } else if (k.needed == need::to_run) {
        missing(way_.text(), k.name, "the key '" + k.name + "' is missing",
                "add " + k.name + ": " + example(k));
      }
    }
    for (const auto& r : s.rules)
      if (r.level == need::to_run && !r.holds(to_node(x)))
        if (auto path = way_.text(); !out_.knows_below(path))
          fault(path, r.message, r.hint);
  }

  /// Reports a fault of `owner`, unless its `key` is given and has a fault of its own.
  void missing(const std::string& owner, const std::string& key, std::string message, std::string hint) {
    if (!out_.knows(below(owner, key)))
      fault(owner, std::move(message), std::move(hint));
  }

  void fault(const std::string& path, std::string message, std::string hint) {
    out_.fault(place_of(text_, path), path, std::move(message), std::move(hint));
  }

private:
  static std::string example(const key& k) {
    if (!k.what->members.empty())
      return "{" + k.what->discriminator + ": " + k.what->members.front().value + ", ...}";
    if (k.what->takes(kind::string))
      return "NAME";
    return k.what->takes(kind::integer) ? "16" : "...";
  }

  const node& text_;
  report& out_;
  trail way_;
};

const value* part(const value& x, const char* name) {
  auto found = x.find(name);
  return found == x.end() || found->is_null() ? nullptr : &*found;
}

} // namespace

void check_completeness(const value& x, const shape& s, const node& text, report& out) {
  completeness(text, out).check(x, s);
}

namespace {

constexpr const char* connection_string_hint =
  "write connection_string: DefaultEndpointsProtocol=https;AccountName=NAME;AccountKey=KEY and leave out "
  "account_url and credential";

/// Reports what Determined's client cannot use of an azure storage. In a task it writes TensorBoard files,
/// for which it takes nothing but a connection string.
void check_azure(const value& storage, bool unmanaged, completeness& c) {
  if (const auto* type = part(storage, "type"); !type || *type != "azure")
    return;
  const auto* container = part(storage, "container");
  const auto* address = part(storage, "account_url");
  const auto* login = part(storage, "connection_string");
  if (container && container->is_string() && container->get_ref<const std::string&>().starts_with('/'))
    c.fault("checkpoint_storage.container", "the name of a container does not begin with a slash",
            "write container: NAME");
  if (login && *login == "")
    c.fault("checkpoint_storage.connection_string", "must not be empty", connection_string_hint);
  if (login || !address)
    return;
  if (*address == "")
    c.fault("checkpoint_storage.account_url", "must not be empty", connection_string_hint);
  else if (!unmanaged)
    c.fault(
      "checkpoint_storage.account_url",
      "a task cannot use account_url: Determined's client writes TensorBoard files by connection_string "
      "alone",
      connection_string_hint);
}

/// Reports a choice among no values.
void check_choices(const value& space, const std::string& path, completeness& c) {
  for (const auto& [name, part] : space.items()) {
    if (!part.is_object())
      continue;
    auto type = part.find("type");
    if (type == part.end())
      check_choices(part, below(path, name), c);
    else if (*type == "categorical" && part["vals"].empty())
      c.fault(below(path, name) + ".vals", "a choice needs at least one value",
              "add the values: vals: [1, 2]");
  }
}

} // namespace

bool names_no_program(const value& entrypoint) {
  if (entrypoint.is_array())
    return entrypoint.empty() || names_no_program(entrypoint.front());
  return entrypoint.is_null() ||
         (entrypoint.is_string() && is_blank(entrypoint.get_ref<const std::string&>()));
}

void check_runnable(const value& experiment, const node& text, report& out, bool unmanaged) {
  completeness c(text, out);
  if (!part(experiment, "entrypoint"))
    c.missing("", "entrypoint", "the key 'entrypoint' is missing: what a trial runs",
              "add entrypoint: python3 train.py");
  else if (!unmanaged && names_no_program(experiment["entrypoint"]))
    c.fault("entrypoint", no_program, "write it as entrypoint: python3 train.py");
  const auto* workspace = part(experiment, "workspace");
  const auto* project = part(experiment, "project");
  auto filled = [](const value* v) {
    return v && v->is_string() && !v->get_ref<const std::string&>().empty();
  };
  if (filled(workspace) != filled(project) && !out.knows(filled(workspace) ? "project" : "workspace"))
    c.fault(filled(workspace) ? "workspace" : "project", "workspace and project must be given together",
            filled(workspace) ? "add project" : "add workspace");
  if (const auto* space = part(experiment, "hyperparameters"))
    check_choices(*space, "hyperparameters", c);
  if (const auto* storage = part(experiment, "checkpoint_storage"); storage && storage->is_object())
    check_azure(*storage, unmanaged, c);
  const auto* searcher = part(experiment, "searcher");
  const auto* name = searcher ? part(*searcher, "name") : nullptr;
  if (!name || !name->is_string())
    return;
  const auto& kind = name->get_ref<const std::string&>();
  const auto* m = schemas().at("searcher")->member_named(kind);
  if (m && m->legacy)
    c.fault("searcher.name", "the searcher '" + kind + "' is of older versions: it can be read, not run",
            "use adaptive_asha");
  if (part(*searcher, "source_trial_id") && part(*searcher, "source_checkpoint_uuid"))
    c.fault("searcher.source_checkpoint_uuid",
            "source_trial_id and source_checkpoint_uuid exclude each other", "remove one of the two");
  if (kind == "adaptive_asha" || kind == "async_halving")
    for (auto needed : {"time_metric", "max_time"})
      if (!part(*searcher, needed)) {
        bool old = part(*searcher, "max_length") != nullptr;
        c.missing("searcher", needed, "the searcher '" + kind + "' needs the key '" + needed + "'",
                  old
                    ? "replace max_length: write time_metric: batches and max_time: 1000"
                    : std::string("add ") +
                        (std::string_view(needed) == "max_time" ? "max_time: 1000" : "time_metric: batches"));
      }
}

} // namespace troupe::config
