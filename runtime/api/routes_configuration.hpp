#pragma once
// The configuration of the whole cluster, as a cluster file says it: what is in force, and another one in its
// place.
//
// Commands behind the gate (gate.hpp), of the node and not of the cluster's actor:
//   configuration.get   {} -> {configuration, revision, by_hand: {users: [name]}}   null and 0 where none was
//   ever put configuration.put   {configuration, revision, secrets: {users: {NAME: PASSWORD}}, prune: [name]}
//   -> {revision, tokens}
//                       configuration as model/config/cluster_file.hpp completes it; conflict where
//                       `revision` is not the newest, or where experiments run in a pool that it no longer
//                       names. Durable when answered; a repeat settles what a crash left. tokens: [{user,
//                       name, file}]
// and of the actor:
//   pool.list           {} -> {pools: [{name, default, slots: {total, used}, agents, waiting, experiments}]}

#include "runtime/api/route.hpp"

namespace troupe::api {

std::vector<route> configuration_routes();

} // namespace troupe::api
