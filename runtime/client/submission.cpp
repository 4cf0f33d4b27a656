#include "runtime/client/submission.hpp"
#include "model/config/cluster_config.hpp"
#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"
#include "workers/context_files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <iterator>

namespace troupe::client {
namespace {

constexpr std::size_t most_config_bytes = 4 << 20;

} // namespace

result<std::string> read_config(const std::filesystem::path& file, std::istream& in) {
  if (file == "-")
    return std::string(std::istreambuf_iterator<char>(in), {});
  std::error_code wrong;
  if (std::filesystem::is_directory(file, wrong))
    return error{errc::invalid, file.string() + ": is a folder; expected a file"};
  if (auto bytes = std::filesystem::file_size(file, wrong); !wrong && bytes > most_config_bytes)
    return error{errc::invalid, file.string() + ": " + std::to_string(bytes >> 20) +
                                  " MB; a configuration has at most 4 MB"};
  errno = 0;
  std::ifstream text(file, std::ios::binary);
  if (!text)
    return error{errc::invalid, file.string() + ": " + std::strerror(errno ? errno : ENOENT)};
  return std::string(std::istreambuf_iterator<char>(text), {});
}

namespace {

result<void> check(const std::string& text, const std::string& name,
                   const std::vector<std::string>& overrides, const value& cluster) {
  config::surroundings around;
  around.overrides = overrides;
  around.storage_to_come = true; // the workspace and policies may complete it: the master checks it
  if (auto pool =
        config::pool_of_experiment(cluster, config::to_value(config::read_document(text, name).root))) {
    around.defaults = config::experiment_defaults(cluster, *pool);
    around.task_container_defaults = config::task_defaults(cluster, *pool);
  }
  auto outcome = config::load_experiment(text, name, config::level::complete, around);
  if (outcome.ok())
    return {};
  std::string all;
  for (const auto& fault : outcome.faults) {
    auto shown = config::render(fault, text);
    while (shown.ends_with('\n'))
      shown.pop_back();
    all += (all.empty() ? "" : "\n") + shown;
  }
  return error{errc::invalid, all};
}

} // namespace

result<std::string> with_overrides(const std::string& text, const std::string& name,
                                   const std::vector<std::string>& overrides) {
  auto config = config::to_value(config::read_document(text, name).root);
  for (const auto& one : overrides) {
    auto equals = one.find('=');
    if (equals == one.npos || equals == 0)
      return error{errc::invalid,
                   "--config takes KEY=VALUE, not '" + one + "'\nhint: --config searcher.max_trials=8"};
    value* at = &config;
    std::string_view path = std::string_view(one).substr(0, equals);
    while (!path.empty()) {
      auto key = std::string(path.substr(0, path.find('.')));
      path.remove_prefix(std::min(key.size() + 1, path.size()));
      if (!at->is_object())
        *at = value::object();
      at = &(*at)[key];
    }
    auto given = config::read_document(one.substr(equals + 1), "--config");
    if (!given.faults.empty())
      return error{errc::invalid, "--config " + one + ": " + given.faults.front().message};
    *at = config::to_value(given.root);
  }
  return to_json(config, 2) + "\n";
}

result<prepared> prepare(const submission& what, std::istream& in) {
  auto text = read_config(what.config, in);
  if (!text)
    return text.error();
  for (const auto& one : what.overrides)
    if (auto equals = one.find('='); equals == std::string::npos || equals == 0)
      return error{errc::invalid,
                   "--config takes KEY=VALUE, not '" + one + "'\nhint: --config searcher.max_trials=8"};
  auto shown_name = what.config == "-" ? std::string("<stdin>") : what.config.string();
  if (auto ok = check(*text, shown_name, what.overrides, what.cluster); !ok)
    return ok.error();
  prepared out;
  for (const auto& warning : config::warnings_of(*text, shown_name))
    out.warnings += config::render(warning, *text);
  if (!what.overrides.empty()) {
    auto laid_over = with_overrides(*text, shown_name, what.overrides);
    if (!laid_over)
      return laid_over.error();
    text = *std::move(laid_over);
  }
  out.what = {*std::move(text),
              what.config == "-" ? shown_name : what.config.filename().string(),
              "",
              what.activate,
              what.key,
              what.name};
  std::string context_digest;
  if (!what.context.empty()) {
    auto packed = workers::pack_context(what.context);
    if (!packed) {
      std::error_code none;
      bool there = std::filesystem::is_directory(what.context, none);
      return error{packed.error().code,
                   packed.error().what +
                     (there ? "\nhint: leave files out by naming them in .detignore"
                            : "\nhint: the second word is the folder with the trial's files")};
    }
    out.what.context = std::move(packed->tar);
    context_digest = packed->digest;
  }
  out.digest = workers::sha256(out.what.config + '\0' + out.what.name + '\0' + context_digest);
  return out;
}

} // namespace troupe::client
