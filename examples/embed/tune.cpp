// Hyperparameter search in one process: the searchers alone, no cluster, no thread.
#include <troupe/study.hpp>

#include <cmath>
#include <cstdio>

int main() {
  auto study = troupe::study::make(
    {.searcher = "tpe",
     .metric = "loss",
     .max_trials = 60,
     .space = {{"lr", troupe::parameter::json{R"({"type": "log", "base": 10, "minval": -5, "maxval": 0})"}},
               {"width", troupe::parameter::json{R"({"type": "int", "minval": 8, "maxval": 256})"}}}});
  if (!study)
    return study.error().print(stderr);
  while (auto next = study->ask()) {
    const double loss =
      std::pow(std::log10(next->number("lr")) + 2, 2) + std::abs(next->number("width") - 64) / 64;
    if (auto said = study->tell(next->trial, {{"loss", loss}}); !said)
      return said.error().print(stderr);
    (void)study->finish(next->trial);
  }
  const auto best = study->best();
  std::printf("best loss %.3g of trial %s:", best->metric, best->trial.c_str());
  for (const auto& [name, value] : best->hparams)
    std::printf(" %s=%s", name.c_str(), value.c_str());
  std::printf("\n");
  return best->metric < 0.5 ? 0 : 1;
}
