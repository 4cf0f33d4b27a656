#pragma once
// Verbs about the cluster's file, for the table in rows_of_node.cpp and rows_of_cluster.cpp.

#include "runtime/cli/arguments.hpp"

namespace troupe::cli::verbs {

// configuration_verbs.cpp
int check(session&, const arguments&);
int explain(session&, const arguments&);
int apply(session&, const arguments&);
int config_show(session&, const arguments&);
// service_verb.cpp
int install_service(session&, const arguments&);

} // namespace troupe::cli::verbs
