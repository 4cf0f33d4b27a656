#pragma once
// Templates of configurations, and the registry of models and their versions: what may become of them is
// decided here; whether the caller has the right is decided before. Pure. The cluster's actor is its shell:
// its facts stand in the stream "cluster". Texts of errors are those that Determined's clients know.

#include "actors/machine.hpp"
#include "model/commands/place_commands.hpp"

namespace troupe {

/// Not thread-safe: one actor owns it. `by` is the name of the user who asks. Whether workspaces that are
/// named exist, the shell asks `places` before.
class registry {
public:
  using decided = result<std::vector<registry_fact>>;

  /// errc::conflict where `fresh` and there is one, errc::not_found where `known` and there is none.
  [[nodiscard]] decided put(const commands::template_put& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided rename(const commands::template_rename& wanted, const std::string& by,
                               time_point now);
  [[nodiscard]] decided remove(const commands::template_remove& wanted, const std::string& by,
                               time_point now);

  /// errc::invalid where the name is no name, errc::conflict where it is taken.
  [[nodiscard]] decided make(const commands::model_create& wanted, const std::string& by, time_point now);
  /// No fact where nothing changes. errc::not_found; errc::invalid as above and for what is archived.
  [[nodiscard]] decided change(const commands::model_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::model_remove& wanted, const std::string& by, time_point now);
  /// The next version is the highest there is and one.
  [[nodiscard]] decided make(const commands::version_create& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided change(const commands::version_change& wanted, const std::string& by, time_point now);
  [[nodiscard]] decided remove(const commands::version_remove& wanted, const std::string& by, time_point now);

  bool holds_models(workspace_id id) const;
  const template_changed* find_template(const std::string& name) const; ///< null where there is none
  /// The templates of a workspace that goes, deleted.
  std::vector<registry_fact> drop_templates(workspace_id of, const std::string& by, time_point now);

  void replay(const registry_fact& fact);
  void replay(const cluster_fact& fact);

  const std::map<model_id, model_changed>& models() const { return models_; }
  /// The newest version of a model that this checkpoint is; null where it is none.
  const model_version_changed* version_of(const std::string& checkpoint) const;
  std::vector<std::string> registered() const; ///< every checkpoint that is a version of a model
  std::string snapshot() const;
  value describe() const; ///< the state, for people

private:
  using version_id = std::pair<model_id, std::uint64_t>;

  std::vector<registry_fact> note(registry_fact fact);
  result<void> check_template_name(const std::string& name, const std::string& of) const;
  result<void> check_name(const std::string& name, model_id of) const;
  result<model_changed> to_change(model_id id) const; ///< errc::not_found, errc::invalid where it is archived

  std::map<std::string, template_changed> templates_;
  std::map<model_id, model_changed> models_;
  std::map<version_id, model_version_changed> versions_;
  model_id newest_model_;
};

} // namespace troupe
