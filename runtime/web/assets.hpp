#pragma once
// The files of the web page, as they lie in the binary. The table is written by web/embed.mjs.

#include <optional>
#include <string_view>

namespace troupe::web {

struct asset {
  std::string_view path;        ///< below /ui/, as "assets/index-1a2b3c.js"
  std::string_view type;        ///< for Content-Type
  std::string_view digest;      ///< hex digits of its SHA-256
  std::string_view bytes, gzip; ///< the file, and the same compressed; gzip is empty where that is no smaller
};

bool has_assets(); ///< false in a build without the page
std::optional<asset> find_asset(std::string_view path);

} // namespace troupe::web
