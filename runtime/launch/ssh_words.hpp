#pragma once
// How this program calls ssh for a node of the cluster's file: it never asks, and never trusts an unknown
// host.

#include "model/value.hpp"

#include <string>
#include <vector>

namespace troupe::launch {

/// `node` is an entry of `nodes` with `ssh`; sh runs `script` on its host.
std::vector<std::string> ssh_words(const value& node, const std::string& script);

/// The words as one command line of sh.
std::string command_line(const std::vector<std::string>& words);

} // namespace troupe::launch
