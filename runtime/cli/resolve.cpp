#include "runtime/cli/verbs.hpp"
#include "runtime/cli/words.hpp"

#include <algorithm>

namespace troupe::cli {
namespace {

std::string first_word(std::string_view path) { return std::string(path.substr(0, path.find(' '))); }

std::string second_word(std::string_view path) {
  auto space = path.find(' ');
  return space == path.npos ? "" : std::string(path.substr(space + 1));
}

const verb_spec* find_verb(std::string_view path) {
  auto verbs = all_verbs();
  auto at = std::find_if(verbs.begin(), verbs.end(), [&](const verb_spec& v) { return v.path == path; });
  return at == verbs.end() ? nullptr : &*at;
}

/// The first words (where `noun` is empty), or the second words of a noun; each once.
std::vector<std::string> words_after(const std::string& noun) {
  std::vector<std::string> known;
  for (const auto& v : all_verbs()) {
    if (!noun.empty() && first_word(v.path) != noun)
      continue;
    auto word = noun.empty() ? first_word(v.path) : second_word(v.path);
    if (!word.empty() && std::find(known.begin(), known.end(), word) == known.end())
      known.push_back(std::move(word));
  }
  if (noun.empty())
    known.emplace_back("help");
  return known;
}

/// The known word that `word` means.
result<std::string> meant(const std::string& word, const std::string& noun) {
  auto known = words_after(noun);
  if (word == "ls" && std::find(known.begin(), known.end(), "list") != known.end())
    return std::string("list");
  auto found = expand(word, known);
  if (found.size() == 1)
    return found.front();
  auto prefix = noun.empty() ? std::string("troupe ") : "troupe " + noun + " ";
  if (found.size() > 1) {
    std::string list;
    for (const auto& f : found)
      list += (list.empty() ? "" : ", ") + f;
    return error{errc::invalid, "'" + word + "' may mean " + list + "\nhint: " + prefix + found.front()};
  }
  auto what = (noun.empty() ? "unknown command '" : "unknown command '" + noun + " ") + word + "'";
  if (auto near = nearest(word, known))
    return error{errc::invalid, what + "\nhint: did you mean '" + *near + "'?   " + prefix + *near};
  return error{errc::invalid, what + "\nhint: " + prefix + "--help"};
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// How many words an option before the verb takes, the option included.
std::size_t words_of_option(const std::string& word) {
  static const std::vector<std::string> with_value = {"--master", "--color", "-o", "--output", "--columns"};
  return std::find(with_value.begin(), with_value.end(), word) != with_value.end() ? 2 : 1;
}

} // namespace

result<resolved> resolve_words(const std::vector<std::string>& given) {
  resolved out;
  std::size_t at = 0;
  auto skip_options = [&] { // keeps options for the verb
    while (at < given.size() && is_option(given[at])) {
      if (given[at] == "--help" || given[at] == "-h") {
        out.wants_help = true;
        ++at;
        continue;
      }
      if (given[at] == "--version")
        return "version";
      for (auto count = words_of_option(given[at]); count > 0 && at < given.size(); --count)
        out.rest.push_back(given[at++]);
    }
    return "";
  };
  if (std::string(skip_options()) == "version") {
    out.verb = find_verb("version");
    return out;
  }
  if (at == given.size()) {
    if (!out.rest.empty() && !out.wants_help)
      return error{errc::invalid, "a command is missing\nhint: troupe --help"};
    return out;
  }
  auto first = meant(given[at++], "");
  if (!first)
    return first.error();
  if (*first == "help") {
    out.noun = "help";
    out.rest.assign(given.begin() + static_cast<std::ptrdiff_t>(at), given.end());
    return out;
  }
  const auto* alone = find_verb(*first);
  bool raw = alone && !alone->act; // the words after it belong to another library
  if (raw && at < given.size() && find_verb(*first + " " + given[at])) { // but `config show` is ours
    out.verb = find_verb(*first + " " + given[at++]);
    out.rest.insert(out.rest.end(), given.begin() + static_cast<std::ptrdiff_t>(at), given.end());
    return out;
  }
  auto seconds = words_after(*first);
  if (!seconds.empty() && !raw) {
    auto before = out.rest.size();
    auto start = at;
    if (!alone)
      skip_options();
    bool is_word = at < given.size() && !is_option(given[at]);
    if (is_word && (!alone || !expand(given[at], seconds).empty() || given[at] == "ls")) {
      auto second = meant(given[at++], *first);
      if (!second)
        return second.error();
      out.verb = find_verb(*first + " " + *second);
    } else if (alone) {
      if (is_word && alone->takes.empty())
        return meant(given[at], *first).error();
      out.verb = alone;
    } else if (out.wants_help) {
      out.noun = *first;
      return out;
    } else if ((out.verb = find_verb(*first + " list"))) { // a noun without a verb
      out.rest.resize(before);
      at = start;
    } else {
      return error{errc::invalid, "'" + *first + "' needs a command\nhint: troupe " + *first + " --help"};
    }
  } else {
    out.verb = alone;
  }
  out.rest.insert(out.rest.end(), given.begin() + static_cast<std::ptrdiff_t>(at), given.end());
  if (out.wants_help && raw)
    out.rest.insert(out.rest.begin(), "--help");
  return out;
}

} // namespace troupe::cli
