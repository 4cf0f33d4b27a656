#pragma once
// The shell's own filters after a "|". They work on rows, whatever the output format. Pure.
//
//   where KEY=V KEY!=V KEY~TEXT 'KEY>N' 'KEY<=N'     columns A,B     order [-]KEY     first [N]     last [N]
//   count

#include "runtime/shell/answer.hpp"

namespace troupe::shell {

/// `words` begins with the filter's name. Fails with errc::invalid, and says what is wrong and what would be
/// right.
result<answer> filtered(answer what, const std::vector<std::string>& words);

} // namespace troupe::shell
