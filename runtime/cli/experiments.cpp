#include "runtime/cli/experiments.hpp"
#include "workers/context_files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <iterator>

namespace troupe::cli {
namespace {

constexpr std::size_t most_config_bytes = 4 << 20;

result<std::string> read_config(const std::filesystem::path& file, std::istream& in) {
  if (file == "-")
    return std::string(std::istreambuf_iterator<char>(in), {});
  std::error_code wrong;
  if (std::filesystem::is_directory(file, wrong))
    return error{errc::invalid, file.string() + ": is a folder; expected the experiment's configuration file"};
  if (auto bytes = std::filesystem::file_size(file, wrong); !wrong && bytes > most_config_bytes)
    return error{errc::invalid, file.string() + ": " + std::to_string(bytes >> 20) +
                                  " MB; a configuration has at most 4 MB"};
  errno = 0;
  std::ifstream text(file, std::ios::binary);
  if (!text)
    return error{errc::invalid, file.string() + ": " + std::strerror(errno ? errno : ENOENT)};
  return std::string(std::istreambuf_iterator<char>(text), {});
}

} // namespace

result<void> apply_override(value& config, const std::string& override_text) {
  auto equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0)
    return error{errc::invalid, "--config takes KEY=VALUE, not '" + override_text +
                                  "'\nhint: --config searcher.max_trials=8"};
  std::string_view path = std::string_view(override_text).substr(0, equals);
  auto text = override_text.substr(equals + 1);
  auto parsed = parse_json(text);
  value* at = &config;
  while (true) {
    auto dot = path.find('.');
    auto key = std::string(path.substr(0, dot));
    if (key.empty() || (!at->is_object() && !at->is_null()))
      return error{errc::invalid, "--config " + override_text.substr(0, equals) + ": '" + key +
                                    "' lies below a value that is no map"};
    at = &(*at)[key];
    if (dot == path.npos)
      break;
    path.remove_prefix(dot + 1);
  }
  *at = parsed ? *std::move(parsed) : value(text);
  return {};
}

result<client::new_experiment> read_submission(const submission& what, std::istream& in) {
  client::new_experiment out;
  auto text = read_config(what.config, in);
  if (!text)
    return text.error();
  out.config = *std::move(text);
  out.config_name = what.config == "-" ? "<stdin>" : what.config.filename().string();
  out.activate = what.activate;
  out.key = what.key;
  out.name = what.name;
  if (!what.overrides.empty())
    return error{errc::unsupported, "--config needs the configuration library"};
  if (!what.context.empty()) {
    auto packed = workers::pack_context(what.context);
    if (!packed)
      return error{packed.error().code, packed.error().what + "\nhint: leave files out by naming them in .detignore"};
    out.context = std::move(packed->tar);
  }
  return out;
}

result<experiment_id> named_experiment(client::server& cluster, const std::string& word) {
  if (auto id = parse_id<experiment_id>(word))
    return id;
  if (word != "last")
    return error{errc::invalid, "'" + word + "' is no experiment id\nhint: a number, or last; troupe experiment list"};
  auto newest = cluster.get("/api/v1/experiments", {{"sortBy", "SORT_BY_ID"}, {"orderBy", "ORDER_BY_DESC"}, {"limit", "1"}});
  if (!newest)
    return newest.error();
  const auto& rows = part(newest->body, "experiments");
  if (!rows.is_array() || rows.empty())
    return error{errc::not_found, "there is no experiment yet\nhint: troupe experiment create CONFIG [DIR]"};
  return experiment_id{rows[0].value("id", std::uint64_t{0})};
}

result<trial_id> named_trial(const std::string& word) {
  if (auto id = parse_id<trial_id>(word))
    return id;
  return error{errc::invalid, "'" + word + "' is no trial id\nhint: a number; troupe trial list EXPERIMENT"};
}

} // namespace troupe::cli
