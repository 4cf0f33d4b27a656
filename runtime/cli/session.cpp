#include "runtime/cli/session.hpp"

#include <iostream>

namespace troupe::cli {
namespace {

std::string hint_for(const error& why) {
  switch (why.code) {
  case errc::unauthorized:
    return "set TROUPE_USER and TROUPE_PASSWORD, or TROUPE_TOKEN";
  case errc::unreachable:
    return why.what.find("troupe up") == std::string::npos
             ? "check with `troupe status` whether the cluster is running there"
             : "";
  case errc::busy:
    return "try again in a moment";
  case errc::timeout:
    return "the outcome is unknown: look at the state before you try again";
  case errc::not_found:
    if (why.what.starts_with("experiment"))
      return "troupe experiment list";
    return why.what.starts_with("trial") ? "troupe trial list EXPERIMENT" : "";
  default:
    return "";
  }
}

} // namespace

int exit_of(errc code) {
  switch (code) {
  case errc::invalid:
    return exit_usage;
  case errc::not_found:
    return exit_not_found;
  case errc::conflict:
  case errc::gap:
    return exit_conflict;
  case errc::denied:
  case errc::unauthorized:
    return exit_denied;
  case errc::unreachable:
    return exit_unreachable;
  case errc::timeout:
    return exit_timeout;
  case errc::internal:
    return exit_bug;
  case errc::busy:
  case errc::no_space:
  case errc::io:
  case errc::corrupt:
  case errc::unsupported:
    return exit_failed;
  }
  return exit_bug;
}

int exit_after(const error& why) {
  std::cout.flush();
  std::cerr << error_text(why, {}) << std::flush;
  return exit_of(why.code);
}

int exit_of_state(std::string_view state) {
  if (state.starts_with("STATE_"))
    state.remove_prefix(6);
  if (state == "COMPLETED")
    return exit_done;
  return state == "CANCELED" ? exit_canceled : exit_failed;
}

std::string exit_codes_text() {
  return "  0  success; for run, wait and create --follow: the experiment completed\n"
         "  1  failure: the experiment ended in ERROR, or a disk or the server refused\n"
         "  2  usage or configuration error; nothing was changed\n"
         "  3  the experiment was cancelled or killed\n"
         "  4  not logged in, or not allowed\n"
         "  5  the thing that was named does not exist\n"
         "  6  the cluster cannot be reached\n"
         "  7  no answer in time, or --timeout is over\n"
         "  8  the state of the thing does not allow it, or the thing changed meanwhile\n"
         " 70  a bug in troupe\n"
         "130  interrupted; `run` has paused its experiment, every other command leaves it as it is\n";
}

std::string error_text(const error& why, const terminal& screen) {
  auto what = why.what;
  std::string hint;
  while (what.ends_with('\n'))
    what.pop_back();
  if (auto at = what.rfind("\nhint: "); at != std::string::npos) {
    if (what.find('\n', at + 1) == std::string::npos) { // else it belongs to one fault of several
      hint = what.substr(at + 7);
      what.resize(at);
    }
  } else {
    hint = hint_for(why);
  }
  auto text = painted("error:", paint::red, screen) + " " + what + "\n";
  if (!hint.empty())
    text += painted("hint:", paint::cyan, screen) + " " + hint + "\n";
  return text;
}

result<client::server*> session::server() {
  if (!cluster) {
    auto where = client::find_server(given.text("--master"), io.env);
    if (!where && where.error().code == errc::unreachable && only_reads)
      where = open_here(where.error());
    if (!where)
      return where.error();
    auto options = client::options_from(io.env);
    if (given.has("--verbose"))
      options.trace = [this](const std::string& line) { io.err << line << "\n"; };
    cluster = std::make_unique<client::server>(*std::move(where), std::move(options));
  }
  return cluster.get();
}

result<client::server_address> session::open_here(const error& otherwise) {
  auto dir = client::data_dir_to_read(io.env);
  std::error_code ignored;
  if (!node.open_here || !std::filesystem::exists(dir / "master" / "db", ignored))
    return otherwise;
  auto here = node.open_here(dir);
  if (!here)
    return here.error();
  own_node = std::move(here->node);
  return client::server_address{here->url, "data directory", dir, 0};
}

int session::fail(const error& why) {
  io.out.flush();
  io.err << error_text(why, io.err_screen);
  return exit_of(why.code);
}

int session::print(const result<std::string>& text) {
  if (!text)
    return fail(text.error());
  io.out << *text;
  io.out.flush();
  return exit_done;
}

result<value> session::chosen(value rows, const grid& of) const {
  return selected(std::move(rows), of, given.text("--where"), given.text("--sort"));
}

output_options session::output() const {
  output_options options;
  auto format = given.text("--output", "table");
  options.format = format == "json"   ? output_format::json
                   : format == "csv"  ? output_format::csv
                   : format == "yaml" ? output_format::yaml
                                      : output_format::table;
  options.header = !given.has("--no-header");
  options.quiet = given.has("--quiet");
  auto list = given.text("--columns");
  for (std::size_t at = 0; at < list.size();) {
    auto end = std::min(list.find(',', at), list.size());
    if (end > at)
      options.columns.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  options.screen = io.screen;
  options.now = io.now();
  return options;
}

} // namespace troupe::cli
