#pragma once
// The journal as one viewer may see it where roles decide: what may not be seen is not found, and lists leave
// it out. The rights are looked up for each call, so that a stream follows a change of roles.

#include "runtime/api/role_book.hpp"

namespace troupe::api {

/// What a veiled reader is beside a reader: it says at once what lists would leave out.
class screen {
public:
  virtual ~screen() = default;
  virtual bool shows(experiment_id id, project_id in) const = 0;
};

/// Thread-safe, as any reader; a `screen`, too.
std::shared_ptr<storage::reader> veiled(std::shared_ptr<storage::reader> all, viewer by);

/// Whether the viewer may know of this fact.
bool sees(const viewer& by, const storage::reader& all, const storage::committed_fact& fact);

} // namespace troupe::api
