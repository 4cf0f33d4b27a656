#include "runtime/provider/command_provider.hpp"

#include "system/run_command.hpp"

#include <algorithm>

namespace troupe::provider {
namespace {

constexpr std::size_t longest_id = 255;

/// For messages: at most 80 bytes of what a command printed.
std::string quoted(std::string_view text) {
  std::string out(text.substr(0, 80));
  std::replace_if(
    out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  return "'" + out + (text.size() > 80 ? "...'" : "'");
}

bool good_id(std::string_view id) {
  return !id.empty() && id.size() <= longest_id && id.front() != '-' &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 32 && c < 127; });
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    if (!line.empty())
      lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

error garbage(std::string_view line, const std::string& expected) {
  return {errc::corrupt, "it printed " + quoted(line) + ", which is not " + expected};
}

std::optional<time_point> time_of(const value& x) {
  if (x.is_number() && x >= 0 && x < 1e11)
    return time_point(std::chrono::duration_cast<duration>(std::chrono::duration<double>(x.get<double>())));
  if (x.is_string())
    return from_rfc3339(x.get<std::string>());
  return std::nullopt;
}

} // namespace

result<std::vector<cloud_instance>> read_instances(std::string_view text) {
  const std::string expected =
    "a line {\"id\", \"state\": \"starting\" | \"running\" | \"stopping\" | \"stopped\", \"agent\", "
    "\"launched\"}";
  constexpr const char* states[] = {"starting", "running", "stopping", "stopped"};
  std::vector<cloud_instance> out;
  for (const auto line : lines_of(text)) {
    const auto said = parse_json(line);
    if (!said || !said->is_object() || !said->contains("id") || !(*said)["id"].is_string())
      return garbage(line, expected);
    cloud_instance one;
    one.id = (*said)["id"].get<std::string>();
    if (!good_id(one.id))
      return garbage(line, "an instance: its id has to be 1 to 255 printable characters without spaces");
    const auto state = said->value("state", value());
    const auto known =
      std::find_if(std::begin(states), std::end(states), [&](const char* name) { return state == name; });
    if (known == std::end(states))
      return garbage(line, expected);
    one.state = static_cast<cloud_instance::phase>(known - std::begin(states));
    if (const auto agent = said->value("agent", value()); agent.is_string())
      one.agent = agent.get<std::string>();
    else if (!agent.is_null())
      return garbage(line, expected);
    if (const auto launched = said->value("launched", value()); !launched.is_null()) {
      const auto at = time_of(launched);
      if (!at)
        return garbage(line, "an instance: `launched` has to be seconds or a time as 2026-01-02T03:04:05Z");
      one.launched = *at;
    }
    out.push_back(std::move(one));
  }
  return out;
}

result<std::vector<std::string>> read_ids(std::string_view text) {
  std::vector<std::string> out;
  for (auto line : lines_of(text))
    while (!line.empty()) {
      const auto end = std::min(line.find_first_of(" \t"), line.size());
      if (const auto word = line.substr(0, end); !word.empty()) {
        if (!good_id(word))
          return garbage(word, "an id of 1 to 255 printable characters");
        out.emplace_back(word);
      }
      line.remove_prefix(std::min(end + 1, line.size()));
    }
  return out;
}

command_provider::command_provider(const value& settings, world where) : ends_(where.ends) {
  for (const char* which : {"list", "launch", "terminate"})
    if (const auto words = settings.value(which, value()); words.is_array())
      for (const auto& word : words)
        if (word.is_string())
          commands_[which].push_back(word.get<std::string>());
  std::string labels;
  if (const auto all = settings.value("labels", value()); all.is_object())
    for (const auto& [key, content] : all.items())
      labels += (labels.empty() ? "" : ",") + key + "=" +
                (content.is_string() ? content.get<std::string>() : to_json(content));
  environment_ = {{"TROUPE_POOL", where.pool},
                  {"TROUPE_MASTER", where.master},
                  {"TROUPE_JOIN_TOKEN_FILE", where.join_token_file.string()},
                  {"TROUPE_SLOTS", std::to_string(settings.value("instance_slots", 0))},
                  {"TROUPE_LABELS", labels},
                  {"TROUPE_COUNT", "0"}};
}

result<std::string> command_provider::call(const char* which, std::vector<std::string> arguments,
                                           int count) const {
  const auto known = commands_.find(which);
  if (known == commands_.end())
    return error{errc::invalid, std::string("the provider has no command `") + which + "`"};
  auto words = known->second;
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto environment = environment_;
  environment["TROUPE_COUNT"] = std::to_string(count);
  auto said = run_command(words, environment, limit, ends_.get());
  if (!said)
    return error{said.error().code, std::string(which) + ": " + said.error().what};
  if (said->exit_code != 0)
    return error{errc::io, std::string(which) + ": " +
                             (said->last_line.empty() ? said->exit_code < 0
                                                          ? std::string("a signal ended it")
                                                          : "exit code " + std::to_string(said->exit_code)
                                                      : said->last_line)};
  return std::move(said->out);
}

result<std::vector<cloud_instance>> command_provider::list() {
  auto said = call("list", {}, 0);
  if (!said)
    return said.error();
  auto all = read_instances(*said);
  return all ? std::move(all) : error{all.error().code, "list: " + all.error().what};
}

result<std::vector<std::string>> command_provider::launch(int count) {
  auto said = call("launch", {}, count);
  if (!said)
    return said.error();
  auto ids = read_ids(*said);
  return ids ? std::move(ids) : error{ids.error().code, "launch: " + ids.error().what};
}

result<void> command_provider::terminate(const std::vector<std::string>& ids) {
  auto said = call("terminate", ids, static_cast<int>(ids.size()));
  if (!said)
    return said.error();
  return {};
}

} // namespace troupe::provider
