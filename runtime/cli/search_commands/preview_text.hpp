#pragma once
// `troupe search preview CONFIG` shows what would run, as a table and a picture.

#include "searchers/preview.hpp"

#include <string>

namespace troupe::cli {

std::string preview_text(const searchers::search_preview& p, double divisor);

} // namespace troupe::cli
