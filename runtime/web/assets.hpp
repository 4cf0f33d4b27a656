#pragma once
// The files of the web page, which are in the binary. web/embed.mjs writes the table.

#include <optional>
#include <string_view>

namespace troupe::web {

struct asset {
  std::string_view path;   ///< path below /ui/, for example "assets/index-1a2b3c.js"
  std::string_view type;   ///< value of Content-Type
  std::string_view digest; ///< SHA-256 of the file, in hexadecimal
  /// The file, and its compressed form; `gzip` is empty if it is not smaller.
  std::string_view bytes, gzip;
};

bool has_assets(); ///< false in a build without the web page
std::optional<asset> find_asset(std::string_view path);

} // namespace troupe::web
