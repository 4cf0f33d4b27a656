#pragma once
// The journal as one viewer may see it where roles decide: lists leave out what the viewer may not see, and
// lookups do not find it. The rights are looked up for each call, so that a stream follows a change of roles.

#include "runtime/api/role_book.hpp"

namespace troupe::api {

/// The second interface of a veiled reader: it says in advance what lists would leave out.
class screen {
public:
  virtual ~screen() = default;
  virtual bool shows(experiment_id id, project_id in) const = 0;
  virtual bool shows(experiment_id id) const = 0;
  virtual bool shows_all() const = 0; ///< whether no experiment and no task is hidden
  /// Grows whenever the viewer may see more or less than before: with the roles that the viewer has, and with
  /// moves of experiments and projects.
  virtual std::uint64_t rights() const = 0;
};

/// A reader that hides what `by` may not see. Thread-safe, as every reader. It is a `screen` as well.
std::shared_ptr<storage::reader> veiled(std::shared_ptr<storage::reader> all, viewer by);

/// Whether the viewer may know of this fact.
bool sees(const viewer& by, const storage::reader& all, const storage::committed_fact& fact);

} // namespace troupe::api
