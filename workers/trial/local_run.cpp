// A run without a cluster: lines of JSON and folders below ./troupe-runs, as the Python package writes them.

#include "workers/trial/report_sink.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace troupe::trial {
namespace {

namespace fs = std::filesystem;

error failed(const std::string& what) { return {errc::io, what + ": " + std::strerror(errno)}; }

nlohmann::json number(double x) {
  if (std::isnan(x))
    return "NaN";
  if (std::isinf(x))
    return x > 0 ? "Infinity" : "-Infinity";
  return x;
}

class local_run final : public report_sink {
public:
  local_run(fs::path folder, bool resumed, bool speaks)
      : folder_(std::move(folder)), resumed_(resumed), speaks_(speaks) {}
  ~local_run() override {
    if (file_ >= 0)
      close(file_);
  }

  result<void> training(std::int64_t steps, const metrics& m) override { return write("training", steps, m); }
  result<void> validation(std::int64_t steps, const metrics& m) override {
    if (auto ok = write("validation", steps, m); !ok)
      return ok;
    return flush();
  }
  result<void> checkpoint(const std::string& uuid, std::int64_t steps, const file_list& files) override {
    if (auto ok = flush(); !ok)
      return ok;
    const nlohmann::json row = {{"uuid", uuid},
                                {"steps", steps},
                                {"files", files},
                                {"metadata", nlohmann::json::object()},
                                {"time_us", now_us()}};
    const int file =
      open((folder_ / "checkpoints.jsonl").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const std::string line = row.dump() + "\n";
    const bool ok =
      file >= 0 && ::write(file, line.data(), line.size()) == ssize_t(line.size()) && fsync(file) == 0;
    auto outcome = ok ? result<void>{} : failed("cannot write " + (folder_ / "checkpoints.jsonl").string());
    if (file >= 0)
      close(file);
    return outcome;
  }
  result<fs::path> checkpoint_root() override {
    std::error_code fault;
    fs::create_directories(folder_ / "checkpoints", fault);
    if (fault)
      return error{errc::io, "cannot make " + (folder_ / "checkpoints").string() + ": " + fault.message()};
    return folder_ / "checkpoints";
  }
  result<fs::path> resume_from() override {
    fs::path newest;
    std::ifstream rows(folder_ / "checkpoints.jsonl");
    for (std::string line; resumed_ && std::getline(rows, line);) {
      const auto row = nlohmann::json::parse(line, nullptr, false); // a crash may have cut the last line off
      if (row.is_object() && row.contains("uuid") && row["uuid"].is_string())
        if (const auto path = folder_ / "checkpoints" / row["uuid"].get<std::string>();
            fs::is_directory(path))
          newest = path;
    }
    return newest;
  }
  void progress(double) override {}
  std::string stop_reason() override { return {}; } // nobody asks a local run to stop
  result<void> finish() override { return flush(); }
  std::string place() const override { return folder_.string(); }

private:
  result<void> write(const char* group, std::int64_t steps, const metrics& m) {
    if (!speaks_)
      return {};
    if (file_ < 0) {
      std::error_code fault;
      fs::create_directories(folder_, fault);
      file_ = open((folder_ / "reports.jsonl").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      if (file_ < 0)
        return failed("cannot write " + (folder_ / "reports.jsonl").string());
    }
    auto values = nlohmann::json::object();
    for (const auto& [name, x] : m.all())
      values[name] = number(x);
    const nlohmann::json row = {
      {"group", group}, {"steps", steps}, {"metrics", values}, {"time_us", now_us()}};
    const std::string line = row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (::write(file_, line.data(), line.size()) != ssize_t(line.size()))
      return failed("cannot write " + (folder_ / "reports.jsonl").string());
    return {};
  }
  result<void> flush() {
    if (file_ >= 0 && fsync(file_) != 0)
      return failed("cannot sync " + (folder_ / "reports.jsonl").string());
    return {};
  }

  fs::path folder_;
  bool resumed_, speaks_;
  int file_ = -1;
};

} // namespace

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

result<std::unique_ptr<report_sink>> open_local_run(const settings& s, const std::string& program) {
  std::error_code fault;
  const fs::path top = fs::current_path(fault) / "troupe-runs";
  fs::path folder;
  if (s.resume_run == "latest") {
    fs::file_time_type newest = fs::file_time_type::min();
    for (const auto& run : fs::directory_iterator(top, fault))
      if (const auto at = fs::last_write_time(run.path() / "reports.jsonl", fault); !fault && at >= newest) {
        newest = at;
        folder = run.path();
      }
    if (folder.empty())
      return error{errc::not_found, "TROUPE_RESUME=latest: there is no run in " + top.string()};
  } else if (!s.resume_run.empty()) {
    folder = top / s.resume_run;
    if (!fs::is_directory(folder, fault))
      return error{errc::not_found, "TROUPE_RESUME=" + s.resume_run + ": there is no run " + folder.string()};
  } else if (!s.run_name.empty()) {
    folder = top / s.run_name;
  } else {
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::tm parts{};
    std::strftime(text, sizeof text, "-%Y%m%d-%H%M%S", localtime_r(&now, &parts));
    folder = top / (fs::path(program).filename().string() + text);
    for (int n = 2; fs::exists(folder, fault); ++n)
      folder = top / (fs::path(program).filename().string() + text + "-" + std::to_string(n));
  }
  return std::unique_ptr<report_sink>(
    std::make_unique<local_run>(folder, !s.resume_run.empty(), s.rank == 0));
}

} // namespace troupe::trial
