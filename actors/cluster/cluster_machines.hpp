#pragma once
// The machines whose facts form the stream "cluster". Each machine takes its own facts and ignores those of
// the others. `uses` has no facts.

#include "actors/catalogue/catalogue.hpp"
#include "actors/catalogue/deliveries.hpp"
#include "actors/catalogue/house_rules.hpp"
#include "actors/catalogue/people.hpp"
#include "actors/catalogue/places.hpp"
#include "actors/catalogue/registry.hpp"
#include "actors/cluster/checkpoint_uses.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/cluster/members.hpp"

#include <algorithm>

namespace troupe {

struct cluster_machines {
  cluster ids;
  members who;
  catalogue records;
  places where;
  registry books;
  people folk = {};
  house_rules rules = {};
  deliveries post = deliveries{};
  checkpoint_uses uses = {};

  /// Tells `where` of facts that another machine has decided and taken.
  void pass_on(const std::vector<cluster_fact>& facts) {
    for (const auto& fact : facts)
      where.replay(fact);
  }
  cluster::created create(experiment_created wanted, const seen_by& sees) {
    auto made = ids.create(std::move(wanted), sees);
    for (const auto& fact : made.facts)
      where.replay(fact);
    return made;
  }
  /// Whether the user of this name may know of the experiment by roles; nobody: no.
  bool sees(const std::string& user, experiment_id id) const {
    const auto in = where.workspace_id_of(id);
    const auto& all = records.users();
    const auto by =
      std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.second.name == user; });
    return in && by != all.end() && folk.may(by->first, authority::permission::view_experiment_metadata, in);
  }
  void replay(const cluster_fact& fact) {
    ids.replay(fact);
    who.replay(fact);
    records.replay(fact);
    where.replay(fact);
    books.replay(fact);
    folk.replay(fact);
    rules.replay(fact);
    post.replay(fact);
  }
  std::string snapshot() const {
    return ids.snapshot() + who.snapshot() + records.snapshot() + where.snapshot() + books.snapshot() +
           folk.snapshot() + rules.snapshot() + post.snapshot();
  }
  value describe() const {
    auto shown = ids.describe();
    shown.update(who.describe());
    shown.update(records.describe());
    shown.update(where.describe());
    shown.update(books.describe());
    shown.update(folk.describe());
    shown.update(rules.describe());
    shown.update(post.describe());
    return shown;
  }
};

} // namespace troupe
