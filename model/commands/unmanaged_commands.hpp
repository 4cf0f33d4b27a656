#pragma once
// Commands about trials of unmanaged experiments: processes outside of the cluster that report by themselves.
// Their reports, checkpoints and lines are like those of any trial.

#include "model/commands/commands.hpp"

namespace troupe::commands {

struct trial_create {
  experiment_id experiment;
  value hparams = value::object();
  std::string external_id;
  template <class t = trial_create>
  static constexpr auto fields() {
    return std::tuple{
      need("experiment", &t::experiment, "number of the unmanaged experiment"),
      maybe("hparams", &t::hparams, "hyperparameters, by name").an_object(),
      maybe("external_id", &t::external_id, "a second creation with it answers the first one's id")};
  }
  static constexpr about is{
    "trial.create",
    cluster,
    {action::create, thing::trial},
    repeat::by_key,
    "Makes a trial of an unmanaged experiment; answered when it is durable. `invalid` "
    "where the experiment is managed: its search makes its trials.",
    "{id}"};
};
struct trial_start {
  trial_id id;
  bool resume = false;
  template <class t = trial_start>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the trial"),
      maybe("resume", &t::resume, "true: one that has run before goes on from its newest checkpoint")};
  }
  static constexpr about is{"trial.start",
                            cluster,
                            {action::report, thing::trial},
                            repeat::again,
                            "Begins the next run of an unmanaged trial; the run before, if it is open, is "
                            "over. `invalid` where it has run and `resume` is false.",
                            "{run, checkpoint, steps}"};
};
struct trial_hear {
  trial_id id;
  std::string state = "alive";
  template <class t = trial_hear>
  static constexpr auto fields() {
    return std::tuple{
      need("id", &t::id, "number of the trial"),
      maybe("state", &t::state, "what it is now").one_of_these("alive, running, completed, canceled, error")};
  }
  static constexpr about is{"trial.hear",
                            cluster,
                            {action::report, thing::trial},
                            repeat::safe,
                            "The process of an unmanaged trial lives, or has ended. One that is not heard of "
                            "for 5 minutes ends as error."};
};

} // namespace troupe::commands
