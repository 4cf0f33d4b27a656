#include "workers/trial/settings.hpp"

#include "workers/collectives/shm.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace troupe::trial {
namespace {

error invalid(std::string what) { return {errc::invalid, std::move(what)}; }

template <class T>
bool parse_whole(const std::string& text, T& out) {
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), out);
  return why == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_number(const std::string& text, double& out) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])))
    return false;
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

result<int> number_of(const std::function<std::string(const char*)>& variable, const char* name,
                      int otherwise, int least, int most) {
  const std::string text = variable(name);
  int x = otherwise;
  if (!text.empty() && (!parse_whole(text, x) || x < least || x > most))
    return invalid(std::string(name) + "='" + text + "': expected a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most));
  return x;
}

std::string names_in(const nlohmann::json& hparams) {
  std::string names;
  for (const auto& [name, ignored] : hparams.items())
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

error missing(const nlohmann::json& hparams, std::string_view path) {
  return {errc::not_found, "the hyperparameter '" + std::string(path) +
                             "' is not given (there are: " + names_in(hparams) +
                             "); by hand it is given as --" + std::string(path) + "=VALUE"};
}

error other_type(std::string_view path, const nlohmann::json& x, const char* expected) {
  return invalid("the hyperparameter '" + std::string(path) + "' is " + x.dump() + ": expected " + expected);
}

result<void> take_flag(const std::string& argument, nlohmann::json& hparams) {
  const auto equals = argument.find('=');
  if (!argument.starts_with("--") || equals == std::string::npos || equals == 2)
    return invalid("'" + argument + "': hyperparameters are given as --name=value");
  nlohmann::json* at = &hparams;
  std::string name = argument.substr(2, equals - 2);
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.')) {
    at = &(*at)[name.substr(0, dot)];
    name.erase(0, dot + 1);
    if (!at->is_object())
      *at = nlohmann::json::object();
  }
  (*at)[name] = argument.substr(equals + 1);
  return {};
}

/// The host of each rank, from "HOST=SLOTS HOST=SLOTS ..." in the order of ranks.
result<std::vector<std::string>> hosts_of_ranks(const std::string& gang, int size) {
  std::vector<std::string> hosts;
  std::istringstream parts(gang);
  for (std::string part; parts >> part;) {
    const auto equals = part.rfind('=');
    int slots = 0;
    if (equals == std::string::npos || equals == 0 || !parse_whole(part.substr(equals + 1), slots) ||
        slots < 0 || slots > size)
      return invalid("TROUPE_GANG: '" + part + "' is not HOST=SLOTS");
    hosts.insert(hosts.end(), std::size_t(slots), part.substr(0, equals));
  }
  if (!hosts.empty() && hosts.size() != std::size_t(size))
    return invalid("TROUPE_GANG='" + gang + "' has " + std::to_string(hosts.size()) +
                   " ranks, WORLD_SIZE=" + std::to_string(size));
  return hosts;
}

} // namespace

result<settings> read_settings(const std::function<std::string(const char*)>& variable,
                               const std::vector<std::string>& arguments, const std::string& process) {
  settings s;
  s.process = process;
  s.endpoint = variable("TROUPE_HARNESS");
  s.endpoint_file = variable("TROUPE_HARNESS_FILE");
  s.token = variable("TROUPE_TASK_TOKEN");
  s.allocation = variable("TROUPE_ALLOCATION_ID");
  s.checkpoint_dir = variable("TROUPE_CHECKPOINT_DIR");
  s.resume = variable("TROUPE_RESUME_CHECKPOINT");
  s.run_name = variable("TROUPE_RUN_NAME");
  s.resume_run = variable("TROUPE_RESUME");
  if (s.on_cluster()) {
    if (s.token.empty() || s.allocation.empty() || s.checkpoint_dir.empty())
      return invalid("TROUPE_HARNESS is set, but TROUPE_TASK_TOKEN, TROUPE_ALLOCATION_ID or "
                     "TROUPE_CHECKPOINT_DIR is not; unset "
                     "TROUPE_HARNESS to run alone");
    const std::string text = variable("TROUPE_HPARAMS");
    s.hparams = nlohmann::json::parse(text.empty() ? "{}" : text, nullptr, false);
    if (!s.hparams.is_object())
      return invalid("TROUPE_HPARAMS is not a JSON object");
  }
  for (const auto& [name, text] : {std::pair{"TROUPE_RUN_NAME", s.run_name}, {"TROUPE_RESUME", s.resume_run}})
    if (text == "." || text == ".." || text.find('/') != std::string::npos)
      return invalid(std::string(name) + "='" + text +
                     "': expected the name of a folder in ./troupe-runs, without a slash");

  struct {
    const char* name;
    int* to;
    int otherwise, least;
  } const numbers[] = {{"WORLD_SIZE", &s.size, 1, 1},
                       {"RANK", &s.rank, 0, 0},
                       {"LOCAL_WORLD_SIZE", &s.local_size, 1, 1},
                       {"LOCAL_RANK", &s.local_rank, 0, 0}};
  for (const auto& x : numbers) {
    auto n = number_of(variable, x.name, x.otherwise, x.least, 1 << 20);
    if (!n)
      return n.error();
    *x.to = *n;
  }
  if (s.rank >= s.size || s.local_rank >= s.local_size || s.local_size > s.size)
    return invalid("RANK=" + std::to_string(s.rank) + " of WORLD_SIZE=" + std::to_string(s.size) +
                   ", LOCAL_RANK=" + std::to_string(s.local_rank) +
                   " of LOCAL_WORLD_SIZE=" + std::to_string(s.local_size) + " cannot be");
  const std::string meeting = variable("MASTER_ADDR"); // agents of one host meet on its loopback
  s.meeting = meeting;
  s.one_host = s.local_size == s.size || meeting == "127.0.0.1" || meeting == "localhost" || meeting == "::1";
  auto hosts = hosts_of_ranks(variable("TROUPE_GANG"), s.size);
  if (!hosts)
    return hosts.error();
  s.hosts = std::move(*hosts);
  s.member = variable("TROUPE_COLLECTIVE");
  if (s.member == "auto")
    s.member.clear();
  if (!s.member.empty() && s.member != "shm" && s.member != "tcp" && s.member != "nccl")
    return invalid("TROUPE_COLLECTIVE='" + s.member + "': expected auto, shm, tcp or nccl");
  s.has_gpus = !s.on_cluster() || !variable("CUDA_VISIBLE_DEVICES").empty(); // CUDA knows it in a run by hand
  if (s.size > 1 && s.member != "shm" &&
      (!s.one_host || s.member == "tcp")) { // at the port of troupe.dist, which only Python uses
    auto port = number_of(variable, "TROUPE_DIST_PORT", 0, 1, 65535);
    if (port && *port == 0)
      if (port = number_of(variable, "MASTER_PORT", 29500, 1, 65534); port)
        *port += 1;
    if (!port)
      return port.error();
    s.meeting_port = *port;
    if (meeting.empty())
      return invalid("WORLD_SIZE=" + std::to_string(s.size) +
                     ", but MASTER_ADDR does not say where the ranks meet");
  }
  // In a run by hand, the ranks of torchrun meet by its address and name.
  s.group = s.on_cluster() ? group_of_task(s.allocation, s.token)
                           : "hand-" + meeting + "-" + variable("MASTER_PORT") + "-" +
                               variable("TORCHELASTIC_RUN_ID") + "-" + variable("TORCHELASTIC_RESTART_COUNT");
  for (char& c : s.group)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.')
      c = '_';

  for (const auto& argument : arguments) {
    if (argument == "--help" || argument == "-h")
      s.wants_help = true;
    else if (auto ok = take_flag(argument, s.hparams); !ok)
      return ok.error();
  }
  std::string seed = variable("TROUPE_TRIAL_SEED");
  if (const auto* given = find(s.hparams, "seed"); seed.empty() && given)
    seed = given->is_string() ? given->get<std::string>() : given->dump();
  if (!seed.empty() && !parse_whole(seed, s.seed))
    return invalid("the seed '" + seed + "' is not a whole number from 0");
  return s;
}

std::optional<settings> settings_in_group(const settings& started, const std::vector<int>& members,
                                          std::uint32_t generation) {
  const auto place = std::find(members.begin(), members.end(), started.rank);
  if (place == members.end())
    return std::nullopt;
  auto next = started;
  next.rank = int(place - members.begin());
  next.size = int(members.size());
  next.group += ".g" + std::to_string(generation);
  if (const int first = members.front(); first >= 0 && std::size_t(first) < started.hosts.size())
    next.meeting = started.hosts[std::size_t(first)]; // the port is the same on all agents of a gang
  return next;
}

const nlohmann::json* find(const nlohmann::json& hparams, std::string_view path) {
  if (auto whole = hparams.find(std::string(path)); whole != hparams.end())
    return &*whole;
  const nlohmann::json* at = &hparams;
  while (true) {
    const auto dot = path.find('.');
    if (!at->is_object())
      return nullptr;
    const auto next = at->find(std::string(path.substr(0, dot)));
    if (next == at->end())
      return nullptr;
    at = &*next;
    if (dot == std::string_view::npos)
      return at;
    path.remove_prefix(dot + 1);
  }
}

result<std::string> text_in(const nlohmann::json& hparams, std::string_view path) {
  const auto* x = find(hparams, path);
  if (!x)
    return missing(hparams, path);
  if (!x->is_string())
    return other_type(path, *x, "text");
  return x->get<std::string>();
}

result<double> double_in(const nlohmann::json& hparams, std::string_view path) {
  const auto* x = find(hparams, path);
  if (!x)
    return missing(hparams, path);
  double number = 0;
  if (x->is_number())
    return x->get<double>();
  if (x->is_string() && parse_number(x->get<std::string>(), number))
    return number;
  return other_type(path, *x, "a number");
}

result<std::int64_t> integer_in(const nlohmann::json& hparams, std::string_view path) {
  const auto* x = find(hparams, path);
  if (!x)
    return missing(hparams, path);
  std::int64_t whole = 0;
  if (x->is_number_integer())
    return x->get<std::int64_t>();
  if (x->is_string() && parse_whole(x->get<std::string>(), whole))
    return whole;
  if (auto number = double_in(hparams, path);
      number && std::floor(*number) == *number && std::abs(*number) < 9e15)
    return std::int64_t(*number); // 64.0, 1e6
  return other_type(path, *x, "a whole number");
}

result<bool> bool_in(const nlohmann::json& hparams, std::string_view path) {
  const auto* x = find(hparams, path);
  if (!x)
    return missing(hparams, path);
  if (x->is_boolean())
    return x->get<bool>();
  std::string text = x->is_string() ? x->get<std::string>() : "";
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  for (const char* yes : {"true", "yes", "on", "1"})
    if (text == yes)
      return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (text == no)
      return false;
  return other_type(path, *x, "true or false");
}

} // namespace troupe::trial
