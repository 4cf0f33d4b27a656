// Only this file includes CLI11, which takes seconds to compile, and throws.

#include "runtime/cli/arguments.hpp"
#include "runtime/cli/words.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <list>

namespace troupe::cli {
namespace {

constexpr option_spec common[] = {
  {"--color", "WHEN", "Use of colour: auto, always or never; NO_COLOR is honoured", option_kind::text,
   "auto always never"},
};
constexpr option_spec client[] = {
  {"--master", "URL",
   "Address of the cluster, http://HOST:PORT or HOST:PORT (default: $TROUPE_MASTER, or the last `up`)",
   option_kind::text},
  {"-v,--verbose", "", "Show each request as a curl command", option_kind::toggle},
};
constexpr option_spec read[] = {
  {"-o,--output", "FORMAT",
   "Output format: table, json, csv or yaml; json is one value with the keys of the API", option_kind::text,
   "table json csv yaml"},
  {"--columns", "A,B", "Show only these columns, in a table or csv", option_kind::text},
  {"--no-header", "", "Leave out the header line of a table or csv", option_kind::toggle},
  {"-q,--quiet", "", "Print only the ids, one on each line", option_kind::toggle},
};

/// Where CLI11 puts what it reads: one for each argument and option, which it also names.
struct slot {
  std::string key;
  option_kind kind = option_kind::text;
  CLI::Option* option = nullptr;
  std::vector<std::string> texts = {};
  bool flag = false;
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto part = text.substr(0, text.find(at));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (!part.empty())
      parts.emplace_back(part);
  }
  return parts;
}

/// A list keeps its elements in place, because `app` points to them.
void declare(CLI::App& app, const verb_spec& verb, std::list<slot>& slots) {
  for (const auto& a : verb.takes) {
    auto& to = slots.emplace_back(slot{std::string(a.name), option_kind::list});
    to.option = app.add_option(to.key, to.texts, std::string(a.text))->type_name("");
    if (a.many)
      to.option->expected(a.required ? 1 : 0, CLI::detail::expected_max_vector_size);
    else
      to.option->expected(1)->allow_extra_args(false);
    if (a.required)
      to.option->required();
  }
  auto add = [&](const option_spec& o, const char* group) {
    auto& to = slots.emplace_back(slot{key_of(o), o.kind});
    if (o.kind == option_kind::toggle) {
      to.option = app.add_flag(std::string(o.names), to.flag, std::string(o.text))->group(group);
      return;
    }
    auto* made = to.option =
      app.add_option(std::string(o.names), to.texts, std::string(o.text))->group(group);
    made->type_name(std::string(o.value));
    if (o.kind == option_kind::maybe_text)
      made->expected(0, 1);
    if (o.kind == option_kind::list)
      made->take_all()->expected(1)->allow_extra_args(false);
    if (o.kind == option_kind::text || o.kind == option_kind::number)
      made->expected(1)->take_last()->allow_extra_args(false); // otherwise it takes the arguments after it
  };
  for (const auto& o : verb.options)
    add(o, "Options");
  if (verb.reads)
    for (const auto& o : read)
      add(o, "Output");
  if (verb.talks)
    for (const auto& o : client)
      add(o, "Client");
  for (const auto& o : common)
    add(o, "Client");
}

std::vector<std::string> flag_names(const verb_spec& verb) {
  std::vector<std::string> names{"--help"};
  for (const auto& o : options_of(verb))
    for (auto& name : split(o.names, ','))
      if (name.starts_with("--"))
        names.push_back(std::move(name));
  return names;
}

error wrong(std::string what, const std::string& hint) {
  return {errc::invalid, std::move(what) + "\nhint: " + hint};
}

error unknown(const verb_spec& verb, const std::string& word) {
  auto help = "troupe " + std::string(verb.path) + " --help";
  if (!word.starts_with("-") || word == "-")
    return wrong("unexpected argument '" + word + "'", help);
  auto name = word.substr(0, word.find('='));
  auto near = nearest(name, flag_names(verb));
  return wrong("unknown option '" + name + "'", near ? "did you mean '" + *near + "'?" : help);
}

result<void> check_values(const verb_spec& verb, const arguments& given) {
  for (const auto& o : options_of(verb)) {
    auto key = key_of(o);
    if (!given.has(key))
      continue;
    auto text = given.text(key);
    if (o.kind == option_kind::number) {
      std::int64_t number = 0;
      auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (fault != std::errc{} || end != text.data() + text.size() || number < 0)
        return wrong(key + " takes a whole number of at least 0, not '" + text + "'",
                     key + " " + std::string(o.value));
    }
    auto choices = split(o.choices, ' ');
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
      std::string list;
      for (const auto& c : choices)
        list += (list.empty() ? "" : ", ") + c;
      auto near = nearest(text, choices);
      return wrong(key + " takes one of " + list + ", not '" + text + "'",
                   near ? "did you mean '" + *near + "'?" : key + " " + choices.front());
    }
  }
  return {};
}

} // namespace

std::string arguments::text(std::string_view key, std::string_view otherwise) const {
  auto at = given_.find(key);
  return at == given_.end() || at->second.empty() ? std::string(otherwise) : at->second.back();
}

std::int64_t arguments::number(std::string_view key, std::int64_t otherwise) const {
  auto written = text(key);
  std::int64_t number = otherwise;
  if (!written.empty())
    std::from_chars(written.data(), written.data() + written.size(), number);
  return number;
}

std::vector<std::string> arguments::all(std::string_view key) const {
  auto at = given_.find(key);
  return at == given_.end() ? std::vector<std::string>{} : at->second;
}

std::span<const option_spec> common_options() { return common; }
std::span<const option_spec> client_options() { return client; }
std::span<const option_spec> read_options() { return read; }

std::vector<option_spec> options_of(const verb_spec& verb) {
  std::vector<option_spec> all(verb.options.begin(), verb.options.end());
  if (verb.reads)
    all.insert(all.end(), std::begin(read), std::end(read));
  if (verb.talks)
    all.insert(all.end(), std::begin(client), std::end(client));
  all.insert(all.end(), std::begin(common), std::end(common));
  return all;
}

std::string key_of(const option_spec& option) { return split(option.names, ',').back(); }

result<arguments> parse_arguments(const verb_spec& verb, const std::vector<std::string>& given) {
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.allow_extras();
  std::list<slot> slots;
  declare(app, verb, slots);
  std::vector<std::string> reversed(given.rbegin(), given.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    arguments help;
    help.set("--help", {});
    return help;
  } catch (const CLI::RequiredError&) {
    for (const auto& a : verb.takes)
      if (a.required && app.get_option(std::string(a.name))->count() == 0)
        return wrong("'" + std::string(verb.path) + "' needs " + std::string(a.name),
                     "troupe " + std::string(verb.path) + " --help");
    return wrong("an argument is missing", "troupe " + std::string(verb.path) + " --help");
  } catch (const CLI::ParseError& why) {
    return wrong(why.what(), "troupe " + std::string(verb.path) + " --help");
  }
  if (auto extras = app.remaining(); !extras.empty()) {
    for (const auto& word : extras)
      if (word.starts_with("-") && word != "-" && word != "--")
        return unknown(verb, word);
    if (extras.front() != "--" || extras.size() > 1)
      return unknown(verb, extras.front() == "--" ? extras[1] : extras.front());
  }
  arguments read_values;
  for (const auto& s : slots)
    if (s.option->count() > 0) {
      auto texts = s.kind == option_kind::toggle ? std::vector<std::string>{} : s.option->results();
      read_values.set(s.key, std::move(texts));
    }
  if (auto ok = check_values(verb, read_values); !ok)
    return ok.error();
  return read_values;
}

} // namespace troupe::cli
