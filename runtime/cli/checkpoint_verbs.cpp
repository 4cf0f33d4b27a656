#include "runtime/cli/experiments.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/client/checkpoint_download.hpp"

#include <ostream>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> checkpoint_columns = {{"UUID", "uuid"},
                                                {"TRIAL", "trialId"},
                                                {"STEPS", "metadata.steps_completed", show_as::number},
                                                {"STATE", "state", show_as::state},
                                                {"METRIC", "training.searcherMetric", show_as::number},
                                                {"FILES", "resources", show_as::count},
                                                {"REPORTED", "reportTime", show_as::age}};

bool is_uuid(const std::string& word) {
  return !word.empty() && word.size() <= 64 &&
         word.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
}

error no_uuid(const std::string& word) {
  return {errc::invalid,
          "'" + word + "' is not a checkpoint's uuid\nhint: troupe checkpoint list EXPERIMENT"};
}

} // namespace

int checkpoint_list(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::string path;
  if (given.has("--trial")) {
    path = "/api/v1/trials/" + std::to_string(given.number("--trial", 0)) + "/checkpoints";
  } else {
    auto id = named_experiment(**cluster, given.text("EXPERIMENT", "last"));
    if (!id)
      return s.fail(id.error());
    path = "/api/v1/experiments/" + to_string(*id) + "/checkpoints";
  }
  auto rows = (*cluster)->list(path, "checkpoints");
  if (rows)
    rows = s.chosen(*std::move(rows), checkpoint_grid());
  return rows ? s.print(show_rows(*rows, checkpoint_columns, s.output())) : s.fail(rows.error());
}

int checkpoint_describe(session& s, const arguments& given) {
  auto uuid = given.text("UUID");
  if (!is_uuid(uuid))
    return s.fail(no_uuid(uuid));
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto got = (*cluster)->get("/api/v1/checkpoints/" + uuid);
  if (!got)
    return s.fail(got.error());
  auto columns = checkpoint_columns;
  columns.push_back({"EXPERIMENT", "training.experimentId"});
  columns.push_back({"HYPERPARAMETERS", "training.hparams", show_as::compact});
  columns.push_back({"RESOURCES", "resources", show_as::compact});
  return s.print(show_one(part(got->body, "checkpoint"), columns, s.output()));
}

int checkpoint_download(session& s, const arguments& given) {
  auto uuid = given.text("UUID");
  if (!is_uuid(uuid))
    return s.fail(no_uuid(uuid));
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  std::filesystem::path target = given.text("--output-dir", uuid);
  if (auto ok = client::download_checkpoint(**cluster, uuid, target); !ok)
    return s.fail(ok.error());
  std::error_code wrong;
  s.io.out << std::filesystem::absolute(target, wrong).lexically_normal().string() << "\n";
  return exit_done;
}

} // namespace troupe::cli::verbs
