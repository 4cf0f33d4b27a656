#pragma once
// The web page as routes: everything below /ui/, and the redirects that lead there.

#include "runtime/api/route.hpp"

#include <filesystem>

namespace troupe::web {

/// `dir`: folder whose files replace those in the binary, for work on the page; may be empty.
std::vector<api::route> page_routes(const std::filesystem::path& dir = {});

/// The address of this page that replaces an address that Determined's tools print:
/// "/det/experiments/7/trials/12/logs" -> "/ui/trials/12".
std::string our_page(std::string_view path);

} // namespace troupe::web
