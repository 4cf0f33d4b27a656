#pragma once
// Templates of configurations, and the registry of models and their versions. The machine decides which
// changes of these are possible; the right of the caller is checked before. Pure. The cluster's actor is the
// shell; the facts stand in the stream "cluster". The texts of errors are those that Determined's clients
// know.

#include "actors/machine.hpp"
#include "model/commands/place_commands.hpp"

#include <set>

namespace troupe {

/// Not thread-safe: one actor owns the machine. `by` is the name of the user who asks. The shell has asked
/// `places` before whether the named workspaces exist.
class registry {
public:
  using decided = result<std::vector<registry_fact>>;

  /// Fails with errc::conflict where `fresh` is set and the template exists, and with errc::not_found where
  /// `known` is set and it does not.
  [[nodiscard]] decided put(const commands::template_put& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided rename(const commands::template_rename& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided remove(const commands::template_remove& wanted, const std::string& by,
                               time_point now);

  /// Fails with errc::invalid where the name is not valid, and with errc::conflict where it is taken.
  [[nodiscard]] decided make(const commands::model_create& wanted, const std::string& by, time_point now);
  /// Gives no fact where nothing changes. Fails with errc::not_found, and with errc::invalid as above and for
  /// a model that is archived.
  [[nodiscard]] decided change(const commands::model_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::model_remove& wanted, const std::string& by, time_point now);
  /// The number of the new version is the highest number of the model plus 1.
  [[nodiscard]] decided make(const commands::version_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::version_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::version_remove& wanted, const std::string& by, time_point now);

  bool holds_models(workspace_id id) const;
  const template_changed* find_template(const std::string& name) const; ///< null: there is no such template
  /// Deletes the templates of a workspace that is deleted.
  std::vector<registry_fact> drop_templates(workspace_id of, const std::string& by, time_point now);

  void replay(const registry_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<model_id, model_changed>& models() const { return models_; }
  bool is_registered(const std::string& checkpoint) const { return registered_.contains(checkpoint); }
  std::vector<std::string> registered() const; ///< every checkpoint that a model version has
  /// Fails with errc::invalid where models have one of these checkpoints as a version. `what`: "deleted" or
  /// "patched". The error names only models of `seen`, because the caller may not know of the others.
  result<void> check_unregistered(const std::vector<std::string>& checkpoints,
                                  const std::vector<model_id>& seen, const std::string& what) const;
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  using version_id = std::pair<model_id, std::uint64_t>;

  std::vector<registry_fact> note(registry_fact fact);
  void forget(version_id id);
  result<void> check_template_name(const std::string& name, const std::string& of) const;
  result<void> check_name(const std::string& name, model_id of) const;
  result<model_changed> to_change(model_id id) const; ///< errc::not_found; errc::invalid: archived

  std::map<std::string, template_changed> templates_;
  std::map<model_id, model_changed> models_;
  std::map<version_id, model_version_changed> versions_;
  std::map<std::string, std::set<version_id>> registered_; ///< the versions, by their checkpoints
  model_id newest_model_;
};

} // namespace troupe
