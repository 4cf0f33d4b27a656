// Runs statements: pipes, redirection, `let`, `watch`, `repeat`, scripts, and the verbs of `troupe`.

#include "runtime/cli/run.hpp"
#include "runtime/cli/verbs.hpp"
#include "runtime/cli/words.hpp"
#include "runtime/shell/filters.hpp"
#include "runtime/shell/host_pipe.hpp"
#include "runtime/shell/session.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace troupe::shell {
namespace {

constexpr int most_nested = 16;
constexpr int most_text_faults = 20; ///< a script with more faults is not taken for a script

/// The text of a word; empty where the word was quoted or has variables.
std::string plain(const word& w) {
  return !w.quoted && w.parts.size() == 1 && !w.parts[0].variable ? w.parts[0].text : "";
}

error wrong(const std::string& what, const std::string& hint) {
  return {errc::invalid, what + "\nhint: " + hint};
}

bool is_name(const std::string& text) {
  return !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_') &&
         text != "_" &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// Takes the words "-n T" and "--max N" from the front of `words`.
result<typed_words> options_before(const command& c, std::vector<word>& words, const lookup& variables) {
  std::vector<std::string> flags;
  while (!words.empty()) {
    auto flag = plain(words.front());
    if (flag.size() < 2 || flag[0] != '-')
      break;
    words.erase(words.begin());
    flags.push_back(flag);
    bool has_value = flag.find('=') == flag.npos && flag != "--help" && flag != "-h";
    if (has_value && !words.empty()) {
      auto text = expanded(words.front(), variables);
      if (!text)
        return text.error();
      flags.push_back(*text);
      words.erase(words.begin());
    }
  }
  auto open = c;
  open.least = 0;
  return read_typed_words(open, flags);
}

} // namespace

std::vector<std::string> first_words() {
  std::vector<std::string> out;
  auto add = [&](std::string_view path) {
    auto word = std::string(path.substr(0, path.find(' ')));
    if (std::find(out.begin(), out.end(), word) == out.end())
      out.push_back(word);
  };
  for (const auto& c : all_commands())
    add(c.name);
  for (const auto& v : cli::all_verbs())
    add(v.path);
  return out;
}

bool verb_acts(std::string_view path) {
  static const std::vector<std::string> look = {"list",       "describe", "logs",   "metrics", "download",
                                                "follow",     "wait",     "pareto", "status",  "version",
                                                "completion", "config",   "search", "check",   "explain",
                                                "show",       "diff",     "events", "versions"};
  auto last = std::string(path.substr(path.rfind(' ') + 1));
  return std::find(look.begin(), look.end(), last) == look.end();
}

// ---- one statement

int session::run_statement(const statement& s) {
  auto first = plain(s.words.front());
  if (first == "let")
    return run_let(s);
  if (first == "watch")
    return run_watch(s);
  if (first == "repeat")
    return run_repeat(s);
  return run_pipeline(s.words, s);
}

int session::run_pipeline(const std::vector<word>& words, const statement& s) {
  auto given = expanded(words, variables_as_text());
  if (!given)
    return fail(given.error());
  std::vector<bool> quoted;
  for (const auto& w : words)
    quoted.push_back(w.quoted);
  std::vector<std::vector<std::string>> filters;
  std::string host;
  for (const auto& stage : s.pipes) {
    host = stage.host;
    if (!host.empty())
      break;
    auto texts = expanded(stage.words, variables_as_text());
    if (!texts)
      return fail(texts.error());
    filters.push_back(*std::move(texts));
  }
  own_format_.reset();
  std::unique_ptr<host_pipe> pipe;
  std::ofstream file;
  if (!host.empty()) {
    std::map<std::string, std::string> more;
    for (const auto& [name, x] : variables_)
      if (name != "_")
        more[name] = x.id;
    io_.out.flush();
    auto started = host_pipe::start(host, more, capturing_);
    if (!started)
      return fail(started.error());
    pipe = *std::move(started);
    out_ = &pipe->in();
  } else if (s.to) {
    auto name = expanded(s.to->file, variables_as_text());
    if (!name)
      return fail(name.error());
    file.open(*name, s.to->append ? std::ios::app : std::ios::trunc);
    if (!file)
      return fail(
        {errc::io, *name + ": " + std::strerror(errno) + "\nhint: name a file that may be written"});
    out_ = &file;
  }
  collecting_ = !filters.empty() || (capturing_ && !pipe);
  int code = finish_pipeline(evaluate(*std::move(given), std::move(quoted)), filters);
  bool full = s.to && !file.flush();
  out_ = &io_.out;
  collecting_ = false;
  if (pipe) {
    int of_host = pipe->finish();
    code = code ? code : of_host;
    if (capturing_) {
      auto text = pipe->captured();
      while (text.ends_with('\n'))
        text.pop_back();
      captured_ = answer{shape::text, text, {}, {}};
    }
  }
  if (full && code == 0)
    return fail({errc::io, std::string("the output could not be written: ") + std::strerror(errno)});
  return code;
}

int session::finish_pipeline(outcome got, const std::vector<std::vector<std::string>>& filters) {
  for (const auto& words : filters) {
    if (got.fault || got.code != 0)
      break;
    auto next = filtered(std::move(got.what), words);
    if (!next)
      got.fault = next.error();
    else
      got.what = *std::move(next);
  }
  for (const auto& text : got.what.notes)
    note(text);
  if (got.fault)
    return fail(*got.fault);
  remember(got.what);
  if (capturing_ && out_ == &io_.out) {
    captured_ = std::move(got.what);
  } else {
    *out_ << render(got.what, how());
    out_->flush();
  }
  return interrupted() ? static_cast<int>(cli::exit_interrupted) : got.code;
}

outcome session::evaluate(std::vector<std::string> words, std::vector<bool> quoted) {
  std::size_t used = 0;
  const auto* c = quoted[0] ? nullptr : find_command(words, used);
  if (!c) {
    auto known = first_words();
    auto meant = cli::expand(words[0], known);
    if (meant.size() == 1) {
      words[0] = meant[0];
      c = find_command(words, used);
    } else if (meant.empty()) {
      auto near = cli::nearest(words[0], known);
      return wrong("unknown command '" + cli::printable(words[0].substr(0, 60)) + "'",
                   near ? "did you mean '" + *near + "'?" : "help lists the commands");
    } else {
      std::string list;
      for (const auto& m : meant)
        list += (list.empty() ? "" : ", ") + m;
      return wrong("'" + words[0] + "' may mean " + list, meant.front());
    }
  }
  if (!c)
    return run_verb(words);
  auto skip = static_cast<std::ptrdiff_t>(used);
  return run_command(*c, {words.begin() + skip, words.end()}, {quoted.begin() + skip, quoted.end()});
}

outcome session::run_command(const command& c, const std::vector<std::string>& words,
                             const std::vector<bool>& quoted) {
  auto g = read_typed_words(c, words, quoted);
  if (!g)
    return g.error();
  if (g->has("--help"))
    return answer{shape::text, command_help(c).substr(0, command_help(c).size() - 1), {}, {}};
  if (g->has("--output"))
    set_own_format(g->text("--output"));
  if (c.acts && !may_write())
    return error{errc::denied, "the session is read-only\nhint: :rw allows changes for 15 minutes"};
  return c.act(*this, *g);
}

outcome session::run_verb(const std::vector<std::string>& words) {
  auto meaning = cli::resolve_words(words);
  if (!meaning)
    return meaning.error();
  auto asked = words;
  std::string path = meaning->verb ? std::string(meaning->verb->path) : "";
  bool help =
    !meaning->verb || meaning->wants_help || std::find(words.begin(), words.end(), "--help") != words.end();
  if (!help) {
    if (path == "shell" || path == "up" || path == "master" || path == "agent")
      return wrong("'" + path + "' does not run inside the shell",
                   "troupe " + path + " in a terminal of its own");
    if (verb_acts(path) && !may_write())
      return error{errc::denied, "the session is read-only, and '" + path +
                                   "' changes something\nhint: :rw allows changes for 15 minutes"};
  }
  auto formatted = [&] {
    return std::any_of(words.begin(), words.end(),
                       [](const std::string& w) { return w.starts_with("-o") || w.starts_with("--output"); });
  };
  bool reads = !help && meaning->verb && meaning->verb->reads;
  std::ostringstream kept;
  auto screen = how().screen;
  if (reads && !formatted()) {
    const char* names[] = {"table", "json", "csv", "yaml"};
    if (collecting_)
      asked.insert(asked.end(), {"-o", "json"});
    else if (format_ != cli::output_format::table)
      asked.insert(asked.end(), {"-o", names[static_cast<int>(format_)]});
  }
  auto url = cluster() ? api_->where().url : attach_;
  auto env = [this, url](const char* name) {
    return std::string_view(name) == "TROUPE_MASTER" && !url.empty() ? url : io_.env(name);
  };
  cli::console inner{*in_,           collecting_ ? kept : *out_,    io_.err, screen,
                     io_.err_screen, to_screen() ? io_.out_fd : -1, io_.now, env};
  int code = cli::run(asked, node_hooks_, inner);
  if (!collecting_ || code != 0)
    return code;
  auto parsed = reads ? parse_json(kept.str()) : result<value>(error{});
  if (parsed)
    return answer{parsed->is_array() ? shape::rows : shape::text, *std::move(parsed), {}, {}};
  auto text = kept.str();
  while (text.ends_with('\n'))
    text.pop_back();
  return answer{shape::text, text, {}, {}};
}

// ---- let, watch, repeat

int session::run_let(const statement& s) {
  if (s.words.size() == 1) {
    auto rows = value::array();
    for (const auto& [name, x] : variables_)
      rows.push_back({{"name", name}, {"is", x.id}, {"value", x.what}});
    *out_ << render({shape::rows, rows, {{"NAME", "name"}, {"IS", "is"}}, {}}, how()) << std::flush;
    return cli::exit_done;
  }
  auto bad = [&](const std::string& what) {
    return fail(wrong(what, "let x = ps --top 1, or let x = trial/7"));
  };
  if (s.words[1].parts.empty() || s.words[1].quoted || s.words[1].parts[0].variable)
    return bad("'let' needs a name");
  std::vector<word> rest(s.words.begin() + 1, s.words.end());
  auto drop = [&](std::size_t count) { // bytes of the first word
    auto& text = rest.front().parts.front().text;
    text.erase(0, count);
    if (text.empty())
      rest.front().parts.erase(rest.front().parts.begin());
    if (rest.front().parts.empty() && !rest.front().quoted)
      rest.erase(rest.begin());
  };
  auto name = rest.front().parts.front().text;
  name.resize(std::min(name.find('='), name.size()));
  if (!is_name(name))
    return bad("'" + name + "' is not a name for a variable");
  if (s.words.size() == 2 && name == plain(s.words[1])) {
    auto at = variables_.find(name);
    if (at == variables_.end())
      return fail(text_of(name).error());
    *out_ << (how().format == cli::output_format::json ? to_json(at->second.what) + "\n"
                                                       : cli::to_yaml(at->second.what))
          << std::flush;
    return cli::exit_done;
  }
  drop(name.size());
  if (rest.empty() || rest.front().parts.empty() || rest.front().parts.front().variable ||
      rest.front().parts.front().text[0] != '=')
    return bad("'let " + name + "' needs '='");
  drop(1);
  if (rest.empty())
    return bad("'let " + name + " =' needs a value or a command");
  if (s.to)
    return bad("'let' keeps the result; '>' has no place there");
  auto texts = expanded(rest, variables_as_text());
  if (!texts)
    return fail(texts.error());
  auto known = first_words();
  std::size_t used = 0;
  bool runs = !rest.front().quoted && (find_command(*texts, used) ||
                                       std::find(known.begin(), known.end(), texts->front()) != known.end());
  if (!runs) {
    if (!s.pipes.empty())
      return bad("'" + texts->front() + "' is not a command, so nothing can be piped");
    std::string text;
    for (const auto& one : *texts)
      text += (text.empty() ? "" : " ") + one;
    variables_[name] = {text, text};
    return cli::exit_done;
  }
  capturing_ = true;
  captured_ = {};
  int code = run_pipeline(rest, s);
  capturing_ = false;
  if (code == cli::exit_done)
    variables_[name] = {captured_.what, id_of(captured_.what, captured_.columns)};
  return code;
}

int session::run_watch(const statement& s) {
  std::size_t used = 0;
  const auto& c = *find_command({"watch"}, used);
  std::vector<word> rest(s.words.begin() + 1, s.words.end());
  auto g = options_before(c, rest, variables_as_text());
  if (!g)
    return fail(g.error());
  if (g->has("--help"))
    return *out_ << command_help(c), cli::exit_done;
  if (rest.empty())
    return fail(wrong("'watch' needs a command", "watch -n 2s ps --top 3"));
  auto every = std::max(g->span("--every", std::chrono::seconds(2)), std::chrono::milliseconds(100));
  auto most = g->number("--max", -1);
  bool draws = io_.screen.interactive && s.pipes.empty() && !s.to && interactive;
  for (std::int64_t i = 0; most < 0 || i < most; ++i) {
    if (i > 0 && !pause(every))
      break;
    if (draws) {
      cli::refresh_size(io_.out_fd, io_.screen);
      io_.out << "\x1b[H\x1b[2J"
              << cli::painted("every " + span_arg(every) + " s, Ctrl-C ends   " +
                                clock_text(to_rfc3339(io_.now())),
                              cli::paint::dim, io_.screen)
              << "\n";
    }
    int code = run_pipeline(rest, s);
    bool comes_back = interactive && code == cli::exit_unreachable;
    if (code != 0 && !comes_back)
      return code;
    if (!io_.out)
      return cli::exit_failed;
  }
  return interrupted() ? cli::exit_interrupted : cli::exit_done;
}

int session::run_repeat(const statement& s) {
  auto count_text =
    s.words.size() > 1 ? expanded(s.words[1], variables_as_text()) : result<std::string>(std::string());
  if (!count_text)
    return fail(count_text.error());
  std::size_t count = 0;
  auto [end, fault] = std::from_chars(count_text->data(), count_text->data() + count_text->size(), count);
  if (fault != std::errc{} || end != count_text->data() + count_text->size() || s.words.size() < 3)
    return fail(wrong("'repeat' needs a number and a command", "repeat 3 ps --top 1"));
  for (std::size_t i = 0; i < count && !interrupted(); ++i)
    if (int code = run_pipeline({s.words.begin() + 2, s.words.end()}, s); code != 0)
      return code;
  return interrupted() ? cli::exit_interrupted : cli::exit_done;
}

// ---- texts and scripts

int session::run(std::string_view text, const std::string& place) {
  auto before = std::exchange(place_, place);
  int code = run_here(text);
  place_ = before;
  return code;
}

int session::run_here(std::string_view text) {
  auto line = parse_line(text);
  if (!line)
    return fail(line.error());
  if (line->open)
    return fail(
      wrong("a quote is not closed, or a line ends in '\\' and no other follows", "close it: 'text'"));
  for (const auto& s : line->statements) {
    if (int code = run_statement(s); code != 0)
      return code;
    if (quitting_)
      break;
  }
  return cli::exit_done;
}

int session::run_file(const std::string& path, bool keep_going) {
  if (path == "-")
    return run_stream(io_.in, "standard input", keep_going);
  if (depth_ >= most_nested)
    return fail(
      wrong(path + ": files are sourced " + std::to_string(most_nested) + " deep; does one source itself?",
            "take the `source` line out"));
  std::ifstream in(path);
  if (in && in.peek() == std::ifstream::traits_type::eof() && !in.eof())
    in.setstate(std::ios::failbit); // a folder can be opened, but not read
  if (!in && !in.eof())
    return fail(
      wrong(path + ": " + std::strerror(errno ? errno : EISDIR), "name a file with one command a line"));
  in.clear();
  return run_stream(in, path, keep_going);
}

int session::run_stream(std::istream& in, const std::string& name, bool keep_going) {
  std::istringstream nothing;
  auto* before =
    std::exchange(in_, &in == &io_.in ? &nothing : in_); // a verb must not read the script as its input
  ++depth_;
  int code = run_script(in, name, keep_going);
  --depth_;
  in_ = before;
  return code;
}

int session::run_script(std::istream& in, const std::string& name, bool keep_going) {
  int first_code = 0, number = 0, begun_at = 0, text_faults = 0;
  std::string text;
  auto& from = *in.rdbuf();
  constexpr auto end = std::istream::traits_type::eof();
  for (bool more = true; more && !quitting_;) {
    std::string line;
    std::size_t bytes = 0;
    int c = end;
    while ((c = from.sbumpc()) != end && c != '\n')
      if (++bytes <= most_line_bytes)
        line += static_cast<char>(c);
    more = c != end;
    ++number;
    if (text.empty())
      begun_at = number;
    auto place = name + ":" + std::to_string(begun_at) + ": ";
    int code = 0;
    if (bytes > most_line_bytes || text.size() + line.size() > most_line_bytes) {
      auto before = std::exchange(place_, place);
      code = fail(wrong("a line of " + std::to_string(bytes + text.size()) + " bytes; at most " +
                          std::to_string(most_line_bytes) + " are read",
                        "put long values into a file"));
      place_ = before;
      text.clear();
    } else {
      text += (text.empty() ? "" : "\n") + line;
      bool readable = is_text(text);
      auto parsed = readable ? parse_line(text) : result<parsed_line>(error{});
      if (parsed && parsed->open && more)
        continue;
      if (!more && text.empty())
        break;
      code = run(text, place);
      text.clear();
      if (!readable && ++text_faults >= most_text_faults) {
        note(name + " is not text: the rest is left out");
        return first_code ? first_code : code;
      }
    }
    if (code != 0 && first_code == 0)
      first_code = code;
    if (code != 0 && (!keep_going || code == cli::exit_interrupted))
      break;
    if (!io_.out)
      return first_code ? first_code : static_cast<int>(cli::exit_failed);
  }
  return first_code;
}

} // namespace troupe::shell
