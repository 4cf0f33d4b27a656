#include "runtime/cli/pool_verbs.hpp"

#include "runtime/cli/exit_codes.hpp"
#include "runtime/cli/session.hpp"

namespace troupe::cli::verbs {

int pool_replay(session& s, const arguments& given) {
  if (given.text("FILE") != "-")
    return s.fail({errc::invalid, "`troupe pool replay` reads standard input: give it as -"});
  if (!s.node.pool_replay)
    return s.fail({errc::unsupported, "this program was built without 'pool replay'"});
  return s.node.pool_replay(s.io.in, s.io.out);
}

} // namespace troupe::cli::verbs
