#pragma once
// Our own filters after a "|": they work on rows, whatever the output format. Pure.
//
//   where KEY=V KEY!=V KEY~TEXT 'KEY>N' 'KEY<=N'     columns A,B     order [-]KEY     first [N]     last [N]
//   count

#include "runtime/shell/answer.hpp"

namespace troupe::shell {

/// `words` with the filter's name first. Fails with errc::invalid, naming what is wrong and what would be
/// right.
result<answer> filtered(answer what, const std::vector<std::string>& words);

} // namespace troupe::shell
