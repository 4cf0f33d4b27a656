#pragma once
// Lets the machines decide each command about places and the registry. The result is the facts, and the
// answer that is given once they are durable. Pure. The right of the caller is checked before.

#include "actors/catalogue/places.hpp"
#include "actors/catalogue/registry.hpp"
#include "model/commands/table.hpp"

namespace troupe {

struct place_change {
  std::vector<cluster_fact> facts;
  value answer = value::object();
};

template <class Fact>
result<place_change> as_change(result<std::vector<Fact>> decided) {
  if (!decided)
    return decided.error();
  place_change out;
  for (auto& one : *decided)
    std::visit([&](auto& f) { out.facts.emplace_back(std::move(f)); }, one);
  return out;
}

/// `ended`: whether the experiment that the command names has ended.
template <class Command>
result<place_change> decide(places& where, registry& books, const Command& x, bool ended,
                            const std::string& by, time_point now) {
  using namespace commands;
  using c = Command;
  if constexpr (requires { x.workspace.has_value(); })
    if (x.workspace)
      if (auto fine = where.takes(*x.workspace); !fine)
        return fine.error();
  if constexpr (std::is_same_v<c, workspace_create> || std::is_same_v<c, project_create>) {
    auto done = as_change(where.make(x, by, now));
    if (done)
      std::visit(
        [&](const auto& f) {
          if constexpr (requires { f.id.value; })
            done->answer["id"] = f.id.value;
        },
        done->facts.back());
    return done;
  } else if constexpr (std::is_same_v<c, experiment_describe>) {
    return as_change(where.change(x, ended, by, now));
  } else if constexpr (std::is_same_v<c, workspace_remove>) {
    if (books.holds_models(x.id) && x.id != workspace_id{1}) // workspace 1 is refused later in any case
      return error{errc::conflict,
                   "workspace " + to_string(x.id) + " owns models\nhint: move or delete them first"};
    auto done = as_change(where.remove(x, by, now));
    if (done)
      done->answer["completed"] = !where.knows(x.id);
    if (done)
      for (auto& one : books.drop_templates(x.id, by, now))
        std::visit([&](auto& f) { done->facts.emplace_back(std::move(f)); }, one);
    return done;
  } else if constexpr (std::is_same_v<c, project_remove>) {
    auto done = as_change(where.remove(x, by, now));
    if (done)
      done->answer["completed"] = !where.projects().contains(x.id);
    return done;
  } else if constexpr (contains<place_commands, c>) {
    return as_change(where.change(x, by, now));
  } else if constexpr (std::is_same_v<c, template_put>) {
    return as_change(books.put(x, by, now));
  } else if constexpr (std::is_same_v<c, template_rename>) {
    return as_change(books.rename(x, by, now));
  } else if constexpr (std::is_same_v<c, model_create> || std::is_same_v<c, version_create>) {
    auto done = as_change(books.make(x, by, now));
    if (done) {
      if constexpr (std::is_same_v<c, model_create>)
        done->answer["id"] = std::get<model_changed>(done->facts.back()).id.value;
      else
        done->answer["version"] = std::get<model_version_changed>(done->facts.back()).version;
    }
    return done;
  } else if constexpr (std::is_same_v<c, model_change> || std::is_same_v<c, version_change>) {
    return as_change(books.change(x, by, now));
  } else {
    return as_change(books.remove(x, by, now));
  }
}

} // namespace troupe
