#include "actors/cluster/single_trials.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using of = experiment_state;
using is = trial_state;

TEST(SingleTrials, AreArchivedOnceTheyHaveEnded) {
  const struct {
    is trial;
    bool archived, search_archived, wanted;
    const char* outcome;
  } cases[] = {
    {is::completed, false, false, true, "yes"},
    {is::canceled, false, false, true, "yes"},
    {is::error, true, false, false, "yes"},
    {is::completed, true, false, true, "already"},
    {is::completed, false, false, false, "already"},
    {is::running, false, false, false, "already"},
    {is::running, false, false, true, "Run is not in terminal state."},
    {is::stopping, false, false, true, "Run is not in terminal state."},
    {is::completed, false, true, true, "Run is part of archived Search (id: '5')."},
    {is::completed, true, true, false, "Run is part of archived Search (id: '5')."},
    {is::completed, true, true, true, "Run is part of archived Search (id: '5')."},
  };
  for (const auto& c : cases) {
    trial_row trial;
    trial.state = c.trial;
    trial.archived = c.archived;
    experiment_row search;
    search.id = {5};
    search.archived = c.search_archived;
    search.state = of::active; // other trials of the experiment may still run
    const auto got = may_archive(trial, search, c.wanted);
    EXPECT_EQ(!got   ? got.error().what
              : *got ? "yes"
                     : "already",
              c.outcome)
      << name(c.trial) << c.archived << c.search_archived << c.wanted;
  }
}

TEST(SingleTrials, AreDeletedOnceTheirSearchHasEnded) {
  const struct {
    is trial;
    of search;
    const char* outcome;
  } cases[] = {
    {is::completed, of::completed, ""},
    {is::error, of::error, ""},
    {is::canceled, of::canceled, ""},
    {is::completed, of::delete_failed, ""},
    {is::running, of::active, "Run is not in a terminal state."},
    {is::paused, of::error, "Run is not in a terminal state."},
    {is::completed, of::active,
     "Run is part of a Search (id: '5') that has not ended: it may still need the run."},
    {is::completed, of::stopping_killed,
     "Run is part of a Search (id: '5') that has not ended: it may still need the run."},
    {is::completed, of::deleting, "Run is part of a Search (id: '5') that is being deleted."},
  };
  for (const auto& c : cases) {
    trial_row trial;
    trial.state = c.trial;
    experiment_row search;
    search.id = {5};
    search.state = c.search;
    const auto got = may_delete(trial, search);
    EXPECT_EQ(got ? "" : got.error().what, c.outcome) << name(c.trial) << " of " << name(c.search);
  }
}

} // namespace
} // namespace troupe
