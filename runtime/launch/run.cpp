// `troupe run`: its own cluster for one experiment, with the command line's display.

#include "runtime/cli/follow.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/client/submission.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/signals.hpp"
#include "runtime/node/node.hpp"
#include "system/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace troupe::launch {
namespace {

constexpr auto pause_limit = std::chrono::seconds(30);

/// Begins the key of every experiment of the same configuration and files.
std::string key_of(const client::prepared& what) { return "run:" + what.digest; }

std::vector<experiment_row> unfinished(const node::node& here) {
  std::vector<experiment_row> out;
  if (auto all = here.reads()->experiments())
    for (auto& row : *all)
      if (!terminal(row.state) && !stopping(row.state))
        out.push_back(std::move(row));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

class session {
public:
  session(const cli::run_options& o, node::node& here)
      : o_(o), here_(here), client_(client::server_address{here.url(), "", o.data_dir, 0}) {}

  /// The experiment to go on with, or a new one. All others are paused before any slot exists.
  result<experiment_id> choose(const std::optional<client::prepared>& wanted) {
    experiment_id chosen;
    auto open = unfinished(here_);
    if (o_.resume) {
      for (const auto& row : open)
        if (o_.resume_id == 0 || row.id.value == o_.resume_id)
          chosen = row.id;
      if (!chosen)
        return no_such();
      std::cout << "going on with experiment " << to_string(chosen) << std::endl;
    } else if (!o_.fresh) {
      auto key = key_of(*wanted);
      for (const auto& row : open)
        if (row.key.starts_with(key))
          chosen = row.id;
      if (chosen)
        std::cout << "going on with experiment " << to_string(chosen)
                  << ", which has the same configuration and files and is not finished (--new starts another)"
                  << std::endl;
    }
    for (const auto& row : open)
      if (row.id != chosen) {
        if (auto ok = client_.post(path(row.id, "pause")); !ok)
          return ok.error();
        std::cout << "experiment " << to_string(row.id) << " (" << row.name
                  << ") is unfinished and stays paused; resume it: troupe run --resume " << to_string(row.id)
                  << std::endl;
      }
    if (chosen) {
      if (auto ok = client_.post(path(chosen, "activate")); !ok)
        return ok.error();
      return chosen;
    }
    auto what = wanted->what;
    what.key = key_of(*wanted) + ":" + random_hex(4);
    return client_.create(what);
  }

  int follow_to_end(experiment_id id, const std::atomic<bool>& once, const std::atomic<bool>& twice) {
    auto canvas = cli::standard_canvas(o_.color);
    auto outcome = cli::follow(client_, id, canvas, once);
    switch (outcome.why) {
    case cli::followed::by::end:
      return cli::exit_of_state(outcome.state);
    case cli::followed::by::fault:
      return cli::exit_after(outcome.fault);
    case cli::followed::by::interrupt:
      break;
    }
    std::cout << "pausing experiment " << to_string(id) << "; Ctrl-C again kills it" << std::endl;
    if (auto ok = client_.post(path(id, "pause")); !ok && ok.error().code != errc::conflict)
      return cli::exit_after(ok.error());
    auto paused = cli::follow_pause(client_, id, canvas, pause_limit, twice);
    if (paused.why == cli::paused::by::ended)
      return cli::exit_of_state(paused.state);
    if (paused.why == cli::paused::by::timeout)
      for (auto trial : paused.waiting)
        std::cout << "trial " << to_string(trial)
                  << " did not save in time; it will resume from its latest checkpoint" << std::endl;
    std::cout << "experiment " << to_string(id) << " is paused; resume it: troupe run --resume "
              << to_string(id) << std::endl;
    return cli::exit_interrupted;
  }

private:
  static std::string path(experiment_id id, const char* verb) {
    return fmt::format("/api/v1/experiments/{}/{}", to_string(id), verb);
  }
  error no_such() const {
    auto where = " in " + o_.data_dir.string();
    if (o_.resume_id == 0)
      return {errc::not_found, fmt::format("no experiment is unfinished{}\nhint: troupe run CONFIG", where)};
    auto row = here_.reads()->experiment({o_.resume_id});
    return row ? error{errc::conflict, fmt::format("experiment {} is {}\nhint: troupe run CONFIG --new",
                                                   o_.resume_id, std::string(name(row->state)))}
               : error{errc::not_found, "there is no experiment " + std::to_string(o_.resume_id) + where};
  }

  const cli::run_options& o_;
  node::node& here_;
  client::server client_;
};

} // namespace

int run(const cli::run_options& o, const std::string& version) {
  std::optional<client::prepared> wanted;
  if (!o.resume) {
    auto context = o.context;
    if (context.empty())
      context = std::filesystem::absolute(o.config).parent_path(); // the files beside the configuration
    auto read = client::prepare({o.config, context, o.set, true, "", ""}, std::cin);
    if (!read)
      return cli::exit_after(read.error());
    wanted = std::move(*read);
    std::cerr << wanted->warnings;
  }
  std::atomic<bool> once{false}, twice{false};
  std::atomic<node::node*> running{nullptr};
  signal_thread signals([&](int number) {
    if (number == SIGHUP)
      return;
    if (!twice.exchange(once.exchange(true)))
      return;
    if (auto* here = running.load())
      here->end_agent(); // no process of a trial is left behind
    std::_Exit(cli::exit_interrupted);
  });
  node::node_options n;
  n.data_dir = o.data_dir;
  n.listen = o.listen;
  n.any_port = true;
  n.slots = o.slots;
  n.trace_actors = o.trace_actors;
  n.version = version;
  auto started = node::node::start(std::move(n));
  if (!started)
    return cli::exit_after(started.error());
  auto& here = **started;
  running = &here;
  struct forget_at_end {
    std::atomic<node::node*>& who;
    ~forget_at_end() { who = nullptr; }
  } before_it_is_gone{running};
  session s(o, here);
  auto id = s.choose(wanted);
  if (!id)
    return cli::exit_after(id.error());
  std::cout << "experiment " << to_string(*id) << std::endl;
  if (const auto page = here.web_link("", ""); !page.empty())
    std::cout << "web page: " << page << "experiments/" << to_string(*id) << std::endl;
  if (auto ok = here.start_agent(); !ok)
    return cli::exit_after(ok.error());
  int code = s.follow_to_end(*id, once, twice);
  here.stop();
  return code;
}

} // namespace troupe::launch
