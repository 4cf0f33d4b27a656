// Help, the manual page and the completions, all made from the table of verbs.

#include "runtime/cli/session.hpp"
#include "runtime/cli/verbs.hpp"

#include <algorithm>
#include <map>
#include <ostream>

namespace troupe::cli {
namespace {

std::string line(std::string_view path, std::string_view summary) {
  std::string left = "  " + std::string(path);
  left.resize(std::max<std::size_t>(left.size() + 2, 28), ' ');
  return left + std::string(summary) + "\n";
}

std::string option_names(const option_spec& o) { // "-o, --output FORMAT"
  auto names = std::string(o.names);
  if (auto comma = names.find(','); comma != std::string::npos)
    names.insert(comma + 1, " ");
  return names + (o.value.empty() ? "" : " ") + std::string(o.value);
}

std::string noun_of(const verb_spec& v) { return std::string(v.path.substr(0, v.path.find(' '))); }

constexpr std::string_view environment_text =
  "TROUPE_MASTER      address of the cluster for client commands: http://HOST:PORT\n"
  "TROUPE_DATA_DIR    data directory of up, master and run\n"
  "TROUPE_LISTEN      address of the HTTP API of up and master\n"
  "TROUPE_USER, TROUPE_PASSWORD, TROUPE_TOKEN   login (default: user `determined` with a blank "
  "password)\n"
  "TROUPE_CA_FILE     certificate authority of an https cluster\n"
  "NO_COLOR           turns colour off; CLICOLOR_FORCE turns it on in pipes too\n";

} // namespace

std::string help_text(const verb_spec& verb, bool with_shared) {
  auto usage = "troupe " + std::string(verb.path);
  std::string rows;
  for (const auto& a : verb.takes) {
    auto name = std::string(a.name) + (a.many ? "..." : "");
    usage += " " + (a.required ? name : "[" + name + "]");
    rows += line(name, a.text);
  }
  auto text = std::string(verb.summary) + ".\n\nUsage: " + usage + " [OPTIONS]\n";
  if (!rows.empty())
    text += "\nArguments:\n" + rows;
  auto group = [&](const char* title, std::span<const option_spec> options) {
    if (options.empty())
      return;
    text += std::string("\n") + title + ":\n";
    for (const auto& o : options)
      text += line(option_names(o), o.text);
  };
  group("Options", verb.options);
  if (verb.reads && with_shared)
    group("Output", read_options());
  if (verb.talks && with_shared)
    group("Cluster", client_options());
  if (with_shared) {
    group("Everywhere", common_options());
    text += line("-h, --help", "Show this help");
  }
  if (!verb.examples.empty())
    text += "\nExamples:\n";
  for (auto rest = verb.examples; !rest.empty();) {
    auto one = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    text += "  " + std::string(one) + "\n";
  }
  if (!verb.see.empty())
    text += "\nSee also: " + std::string(verb.see) + "\n";
  return text;
}

std::string overview_text() {
  std::string text = "troupe: train and search deep-learning models on your machines\n\n"
                     "Usage: troupe COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n";
  for (const auto& v : all_verbs())
    text += line(v.path, v.summary);
  text += line("help exit-codes", "Explain the exit codes; also `help environment`");
  text += "\nWords may be shortened as long as they are unambiguous: troupe e ls. `troupe COMMAND --help` "
          "tells more.\n"
          "Example:\n  troupe run configs/experiments/digits-asha.yaml\n";
  return text;
}

std::string noun_text(const std::string& noun) {
  std::string text = "Usage: troupe " + noun + " COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n";
  for (const auto& v : all_verbs())
    if (noun_of(v) == noun)
      text += line(v.path, v.summary);
  return text;
}

std::string manual_markdown() {
  std::string text =
    "# The command line\n\nMade from the verb table by `troupe help markdown`; a test keeps it current.\n\n"
    "```\n" +
    overview_text() + "```\n\n## Exit codes\n\n```\n" + exit_codes_text() + "```\n\n## Environment\n\n```\n" +
    std::string(environment_text) + "```\n";
  text += "\n## Options of many commands\n\nCommands that show something (list, describe, metrics, logs, "
          "status), and those that make or change it (create, set, archive, move and others), which print "
          "one line without `-o`:\n\n```\n";
  auto add = [&](std::span<const option_spec> options) {
    for (const auto& o : options)
      text += line(option_names(o), o.text);
  };
  add(read_options());
  text += "```\n\nCommands that talk to a cluster:\n\n```\n";
  add(client_options());
  text += "```\n\nAll:\n\n```\n";
  add(common_options());
  text += line("-h, --help", "Show the help of the command") + "```\n";
  for (const auto& v : all_verbs()) {
    if (!v.act)
      continue;
    auto help = help_text(v, false);
    while (help.ends_with('\n'))
      help.pop_back();
    text += "\n## troupe " + std::string(v.path) + "\n\n```\n" + help + "\n```\n";
  }
  return text;
}

std::string bash_completion() {
  std::map<std::string, std::string> seconds; // second words by noun
  std::string firsts = "help";
  std::string cases;
  for (const auto& v : all_verbs()) {
    auto noun = noun_of(v);
    if (firsts.find(" " + noun) == std::string::npos)
      firsts += " " + noun;
    if (auto space = v.path.find(' '); space != v.path.npos)
      seconds[noun] += " " + std::string(v.path.substr(space + 1));
    std::string flags = "--help";
    for (const auto& o : options_of(v))
      flags += " " + key_of(o);
    cases += "    '" + std::string(v.path) + "') flags='" + flags + "' ;;\n";
  }
  std::string nouns;
  for (const auto& [noun, words] : seconds)
    nouns += "    " + noun + ") seconds='" + words.substr(1) + "' ;;\n";
  return "# troupe: completions for bash. Load with: source <(troupe completion bash)\n"
         "_troupe() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} noun=${COMP_WORDS[1]} seconds='' flags=''\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         firsts +
         "' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $noun in\n" +
         nouns +
         "  esac\n"
         "  if [ \"$COMP_CWORD\" = 2 ] && [ -n \"$seconds\" ] && [ \"${word#-}\" = \"$word\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$seconds\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  local path=$noun\n"
         "  [ -n \"$seconds\" ] && [ \"${COMP_WORDS[2]#-}\" = \"${COMP_WORDS[2]}\" ] && path=\"$noun "
         "${COMP_WORDS[2]}\"\n"
         "  case $path in\n" +
         cases +
         "  esac\n"
         "  if [ \"${word#-}\" != \"$word\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _troupe troupe\n";
}

int show_help(session& s, const std::vector<std::string>& words) {
  if (words.empty() || words.front().starts_with("-")) {
    s.io.out << overview_text();
    return exit_done;
  }
  const auto& topic = words.front();
  if (topic == "exit-codes") {
    s.io.out << exit_codes_text();
  } else if (topic == "environment") {
    s.io.out << environment_text;
  } else if (topic == "markdown") {
    s.io.out << manual_markdown();
  } else {
    auto asked = words;
    asked.push_back("--help");
    auto meaning = resolve_words(asked);
    if (!meaning)
      return s.fail(meaning.error());
    s.io.out << (meaning->verb ? help_text(*meaning->verb) : noun_text(meaning->noun));
  }
  return exit_done;
}

} // namespace troupe::cli
