#pragma once
// The web page as routes: everything below /ui/, and the redirects that lead there.

#include "runtime/api/route.hpp"

#include <filesystem>

namespace troupe::web {

/// `dir`: serves the files of this folder instead of those in the binary, for work on the page; may be empty.
std::vector<api::route> page_routes(const std::filesystem::path& dir = {});

/// "/det/experiments/7/trials/12/logs" -> "/ui/trials/12": where the pages that Determined's tools print are
/// here.
std::string our_page(std::string_view path);

} // namespace troupe::web
