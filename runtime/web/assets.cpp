#include "runtime/web/assets.hpp"

#include <cstdint>

namespace {

/// Where something lies: its distance from the start of the table, because a distance needs no relocation.
struct place {
  std::int32_t offset;
  std::uint32_t size;
};
struct row {
  place path, type, digest, bytes, gzip;
};

} // namespace

/// The number of rows, followed by the rows.
extern "C" const std::uint32_t troupe_web_assets[];

namespace troupe::web {
namespace {

std::string_view at(const place& p) {
  return {reinterpret_cast<const char*>(troupe_web_assets) + p.offset, p.size};
}

} // namespace

bool has_assets() { return troupe_web_assets[0] > 0; }

std::optional<asset> find_asset(std::string_view path) {
  const auto* rows = reinterpret_cast<const row*>(troupe_web_assets + 1);
  for (std::uint32_t i = 0; i < troupe_web_assets[0]; ++i)
    if (at(rows[i].path) == path)
      return asset{at(rows[i].path), at(rows[i].type), at(rows[i].digest), at(rows[i].bytes),
                   at(rows[i].gzip)};
  return std::nullopt;
}

} // namespace troupe::web
