#include "runtime/cli/run.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/cli/verbs.hpp"

#include <exception>
#include <iostream>
#include <unistd.h>

namespace troupe::cli {

namespace {

/// Finds --color wherever it stands, because it must be known before anything is printed.
colour_when colours_of(const words& given) {
  std::string text;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].starts_with("--color="))
      text = given[i].substr(8);
    else if (given[i] == "--color" && i + 1 < given.size())
      text = given[i + 1];
  }
  return colour_when_of(text);
}

int dispatch(const words& given, const hooks& node, console& io) {
  arguments none;
  session early{node, io, none};
  auto meaning = resolve_words(given);
  if (!meaning)
    return early.fail(meaning.error());
  if (!meaning->verb) {
    if (meaning->noun.empty() || meaning->noun == "help")
      return show_help(early, meaning->rest);
    io.out << noun_text(meaning->noun);
    return exit_done;
  }
  const auto& verb = *meaning->verb;
  if (!verb.act) {
    const auto& hook = verb.path == "config" ? node.config : node.search;
    if (!hook)
      return early.fail(
        {errc::unsupported, "this program was built without '" + std::string(verb.path) + "'"});
    return hook(meaning->rest, io.in, io.out, io.err);
  }
  if (meaning->wants_help) {
    io.out << help_text(verb);
    return exit_done;
  }
  auto given_to_verb = parse_arguments(verb, meaning->rest);
  if (!given_to_verb)
    return early.fail(given_to_verb.error());
  if (given_to_verb->has("--help")) {
    io.out << help_text(verb);
    return exit_done;
  }
  session s{node, io, *given_to_verb};
  auto last = verb.path.substr(verb.path.rfind(' ') + 1);
  s.only_reads = last == "list" || last == "describe" || last == "logs" || last == "metrics" ||
                 last == "download" || last == "versions";
  return verb.act(s, *given_to_verb);
}

} // namespace

int run(const words& given, const hooks& node, console& io) {
  try {
    int code = dispatch(given, node, io);
    io.out.flush();
    if (!io.out && code == exit_done)
      code = exit_failed; // the output could not be written: the disk is full or the pipe is closed
    return code;
  } catch (const std::exception& bug) { // from a library that throws where it should not
    io.err << error_text({errc::internal, std::string("a bug in troupe: ") + bug.what()}, io.err_screen);
    return exit_bug;
  }
}

int run(int argc, char** argv, const hooks& node) {
  words given(argv + (argc > 0 ? 1 : 0), argv + argc);
  auto colours = colours_of(given);
  bool no_colour = !client::process_environment("NO_COLOR").empty();
  bool force = !client::process_environment("CLICOLOR_FORCE").empty();
  console io{std::cin,
             std::cout,
             std::cerr,
             terminal_of(STDOUT_FILENO, colours, no_colour, force),
             terminal_of(STDERR_FILENO, colours, no_colour, force),
             STDOUT_FILENO,
             [] { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); },
             client::process_environment};
  return run(given, node, io);
}

} // namespace troupe::cli
