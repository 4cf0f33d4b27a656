#include "actors/journal/fact_reader_actor.hpp"

#include "actors/shells/driven.hpp"
#include "actors/shells/probed.hpp"

#include <caf/all.hpp>

namespace troupe {
namespace {

using base = actor_base<fact_reader_actor>;

class fact_reader_state {
public:
  static inline const char* name = "fact_reader";
  explicit fact_reader_state(base* self) : self_(self) {}

  fact_reader_actor::behavior_type make_behavior(std::shared_ptr<storage::reader> reads) {
    self_->enter("fact_reader");
    reads_ = std::move(reads);
    return {
      [this](const read_facts& x) -> caf::result<facts_read> {
        self_->quit(); // the actor ends after this message
        auto stored = reads_->facts_of(x.entity, x.first);
        if (!stored)
          return to_caf(stored.error());
        return facts_read{std::move(*stored)};
      },
    };
  }

private:
  base* self_;
  std::shared_ptr<storage::reader> reads_;
};

} // namespace

fact_reader_actor spawn_fact_reader(caf::actor_system& sys, std::shared_ptr<storage::reader> reads) {
  using impl = shell<fact_reader_state, fact_reader_actor, std::shared_ptr<storage::reader>>;
  return spawn_with_own_thread<impl>(sys, std::move(reads));
}

} // namespace troupe
