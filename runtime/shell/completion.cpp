#include "runtime/shell/completion.hpp"

#include "model/commands/table.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/cli/words.hpp"
#include "runtime/shell/command.hpp"
#include "runtime/shell/line.hpp"
#include "runtime/shell/session.hpp"

#include <algorithm>
#include <filesystem>

namespace troupe::shell {
namespace {

/// The words of the statement or filter in which the cursor stands. The last word (which may be empty) is
/// completed.
struct place {
  std::vector<std::string> words;
  std::size_t from = 0;
  bool after_pipe = false, in_file = false;
};

place place_of(std::string_view text) {
  place p;
  p.words.emplace_back();
  p.from = 0;
  char quote = 0;
  auto next = [&](std::size_t at) {
    if (!p.words.back().empty())
      p.words.emplace_back();
    p.from = at;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote) {
      if (c == quote)
        quote = 0;
      else
        p.words.back() += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ';' || c == '|') {
      p.words.assign(1, "");
      p.from = i + 1;
      p.after_pipe = c == '|';
      p.in_file = false;
    } else if (c == '>') {
      p.words.assign(1, "");
      p.from = i + 1;
      p.in_file = true;
    } else if (c == ' ' || c == '\t') {
      next(i + 1);
    } else {
      p.words.back() += c;
    }
  }
  return p;
}

void add(std::vector<candidate>& to, const std::string& word, std::string text, std::string help = "") {
  if (text.starts_with(word) &&
      std::none_of(to.begin(), to.end(), [&](const candidate& c) { return c.text == text; }))
    to.push_back({std::move(text), std::move(help)});
}

void add_files(std::vector<candidate>& to, const std::string& word) {
  auto slash = word.rfind('/');
  auto folder = slash == word.npos ? std::string() : word.substr(0, slash + 1);
  std::error_code wrong;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator at(folder.empty() ? "." : folder, wrong), end;
       !wrong && at != end && ++count < 5000; at.increment(wrong)) {
    auto name = at->path().filename().string();
    std::error_code ignored;
    add(to, word, folder + name + (at->is_directory(ignored) ? "/" : ""));
  }
  for (auto& c : to)
    c.text = shell::quoted(c.text); // qualified, because <iomanip> has one too
}

std::string kind_of(const std::string& actor) { return actor.substr(0, actor.find('/')); }

bool takes(const message_fields& m, const std::string& kind) {
  return m.kinds.empty() || std::any_of(m.kinds.begin(), m.kinds.end(), [&](const std::string& k) {
           return k == kind || k == "*" || k == "every kind";
         });
}

void add_arguments(std::vector<candidate>& to, const command& c, const std::vector<std::string>& words,
                   const live_names& names) {
  const auto& word = words.back();
  if (word.starts_with("-")) {
    for (const auto& o : c.options)
      add(to, word, std::string(o.names.substr(o.names.rfind(',') + 1)), std::string(o.text));
    add(to, word, "--output", "table, json, csv or yaml");
    return;
  }
  auto before = words.size() > 1 ? words[words.size() - 2] : "";
  if (before == "-o" || before == "--output") {
    for (const char* f : {"table", "json", "csv", "yaml"})
      add(to, word, f);
    return;
  }
  if (before == "--msg") {
    for (const auto& m : names.messages)
      add(to, word, m.name);
    return;
  }
  if (before == "--sort") {
    for (const char* key : {"backlog", "msg_per_s", "messages", "run_us_p50", "run_us_p99", "wait_us_p99",
                            "restarts", "uptime_s"})
      add(to, word, key);
    return;
  }
  std::size_t position = words.size() - 1; // 0: the first word after the name
  switch (c.completes) {
  case what::actor:
    if (position == 1 && c.name == "fault")
      for (const auto& fault : commands::choices("shell.fault", "fault"))
        add(to, word, fault);
    if (position == 0)
      for (const auto& a : names.actors)
        add(to, word, a);
    if (position == 0 && c.name == "cd") {
      for (const auto& n : names.nodes)
        add(to, word, n);
      add(to, word, "..");
    }
    break;
  case what::message_of_actor:
    if (position == 0) {
      for (const auto& a : names.actors)
        add(to, word, a);
    } else if (position == 1) {
      for (const auto& m : names.messages)
        if (takes(m, kind_of(words[0])))
          add(to, word, m.name);
    } else {
      for (const auto& m : names.messages)
        if (m.name == words[1])
          for (const auto& f : m.fields) {
            bool given = std::any_of(words.begin() + 2, words.end() - 1,
                                     [&](const std::string& w) { return w.starts_with(f + "="); });
            if (!given)
              add(to, word, f + "=");
          }
    }
    break;
  case what::node:
    if (position == 0) {
      for (const auto& a : names.actors)
        if (a.starts_with("agent/"))
          add(to, word, a.substr(6));
      for (const auto& n : names.nodes)
        add(to, word, n);
    } else
      for (const char* x : {"on", "off"})
        add(to, word, x);
    break;
  case what::level:
    for (const auto& level : commands::choices("shell.log.set", "level"))
      add(to, word, level);
    break;
  case what::kind: {
    if (word.starts_with("node=")) {
      for (const auto& n : names.nodes)
        add(to, word, "node=" + n);
      break;
    }
    for (const auto& a : names.actors)
      if (word.starts_with("kind="))
        add(to, word, "kind=" + kind_of(a));
    if (!word.starts_with("kind="))
      for (const char* key : {"kind=", "node=", "state="})
        add(to, word, key);
    break;
  }
  case what::correlation:
    for (const auto& a : names.actors)
      if (a.starts_with("trial/") || a.starts_with("experiment/"))
        add(to, word, a);
    break;
  case what::file:
    add_files(to, word);
    break;
  case what::command:
    break; // the caller handles it
  case what::none:
    if (c.name == "events")
      for (const auto& kind : commands::choices("shell.events", "kind"))
        add(to, word, "kind=" + kind);
    break;
  }
}

void add_verb(std::vector<candidate>& to, const std::vector<std::string>& words) {
  const auto& word = words.back();
  auto nouns = first_words();
  auto noun = cli::expand(words[0], nouns);
  if (noun.size() != 1)
    return;
  const cli::verb_spec* chosen = nullptr;
  for (const auto& v : cli::all_verbs()) {
    auto space = v.path.find(' ');
    if (v.path.substr(0, space) != noun[0])
      continue;
    if (space == v.path.npos)
      chosen = &v;
    else if (words.size() == 2 && !word.starts_with("-"))
      add(to, word, std::string(v.path.substr(space + 1)), std::string(v.summary));
    else if (words.size() > 2 && words[1] == v.path.substr(space + 1))
      chosen = &v;
  }
  if (chosen && word.starts_with("-"))
    for (const auto& o : cli::options_of(*chosen))
      add(to, word, cli::key_of(o), std::string(o.text));
}

void add_first_words(std::vector<candidate>& to, const std::string& word) {
  for (const auto& c : all_commands())
    if (!c.name.starts_with(":") || word.starts_with(":"))
      add(to, word, std::string(c.name), std::string(c.summary));
  for (const auto& w : first_words())
    if (!w.starts_with(":"))
      add(to, word, w);
}

} // namespace

completions complete(std::string_view before, const live_names& names,
                     const std::vector<std::string>& variables) {
  auto p = place_of(before);
  completions out;
  out.from = p.from;
  auto words = p.words;
  const auto word = words.back();
  while (out.from < before.size() && before[out.from] == ' ')
    ++out.from;
  if (auto dollar = word.rfind('$'); dollar != word.npos) {
    for (const auto& name : variables)
      add(out.all, word.substr(dollar), "$" + name);
    out.from += dollar;
    return out;
  }
  if (p.in_file) {
    add_files(out.all, word);
    return out;
  }
  if (p.after_pipe) {
    if (words.size() == 1)
      for (const auto& name : filter_names())
        add(out.all, word, name);
    return out;
  }
  // Words that stand before another command: watch -n 2s CMD, repeat N CMD, let x = CMD, help CMD.
  for (bool again = true; again && words.size() > 1;) {
    again = false;
    std::size_t skip = 0;
    if (words[0] == "watch")
      for (skip = 1; skip + 1 < words.size() && words[skip].starts_with("-");)
        skip += 2;
    else if (words[0] == "repeat")
      skip = 2;
    else if (words[0] == "let" && words.size() > 3 && words[2] == "=")
      skip = 3;
    else if (words[0] == "help" || words[0] == "?")
      skip = 1;
    if (skip == 0 || skip >= words.size())
      break;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(skip));
    again = true;
  }
  if (words.size() == 1) {
    add_first_words(out.all, word);
    return out;
  }
  std::size_t used = 0;
  std::vector<std::string> complete_words(words.begin(), words.end() - 1);
  if (const auto* c = find_command(complete_words, used))
    add_arguments(out.all, *c, {words.begin() + static_cast<std::ptrdiff_t>(used), words.end()}, names);
  else
    add_verb(out.all, words);
  for (const auto& c : all_commands()) // the second word of "config set"
    if (auto space = c.name.find(' ');
        words.size() == 2 && space != c.name.npos && words[0] == c.name.substr(0, space))
      add(out.all, word, std::string(c.name.substr(space + 1)), std::string(c.summary));
  return out;
}

std::string common_start(const std::vector<candidate>& all) {
  if (all.empty())
    return "";
  auto out = all.front().text;
  for (const auto& c : all) {
    std::size_t same = 0;
    while (same < out.size() && same < c.text.size() && out[same] == c.text[same])
      ++same;
    out.resize(same);
  }
  while (!out.empty() && (out.back() & 0x80) != 0 && !is_text(out)) // never cuts a letter
    out.pop_back();
  return out;
}

} // namespace troupe::shell
