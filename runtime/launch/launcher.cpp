#include "runtime/launch/launcher.hpp"

#include "runtime/cli/session.hpp"
#include "runtime/launch/cluster_service.hpp"
#include "runtime/launch/daemon.hpp"
#include "runtime/launch/service_notice.hpp"
#include "runtime/launch/signals.hpp"
#include "runtime/node/link.hpp"
#include "runtime/node/node.hpp"

#include <cstdio>
#include <iostream>

namespace troupe::node {
namespace {

int fail(const error& why) {
  std::cout.flush();
  std::cerr << cli::error_text(why, {}) << std::flush;
  if (why.code == errc::invalid)
    return cli::exit_usage;
  return why.code == errc::unreachable ? cli::exit_unreachable
         : why.code == errc::conflict  ? cli::exit_conflict
                                       : cli::exit_failed;
}

/// Starts, says where, waits for the end. `cluster` is of the master role.
int serve(node_options options, bool daemon, const std::string& role, cluster_service* cluster = nullptr) {
  daemon_notice notice;
  if (daemon) {
    auto forked = become_daemon(options.data_dir / (role + ".log"));
    if (!forked)
      return fail(forked.error());
    if (forked->parent)
      return forked->exit_code;
    notice = std::move(forked->notice);
  }
  service_notice service;
  std::unique_ptr<node> running;
  std::mutex mutex;
  int asked = 0;
  bool serving = false;
  signal_thread signals([&](int number) {
    std::lock_guard lock(mutex);
    if (number == SIGHUP) {
      if (cluster && serving && !asked)
        cluster->reload([&service] { service.reloading(); }, [&service] { service.ready("serving"); });
      return;
    }
    if (number == SIGUSR1) { // by the keeper of nodes: its tasks end with it
      if (!cluster && running)
        running->end_tasks_with_agent();
      if (cluster)
        return;
    }
    if (++asked > 1) {
      if (running)
        running->end_agent(); // tasks that should not outlive it are killed
      std::_Exit(cli::exit_interrupted);
    }
    if (running)
      running->ask_to_stop({errc::invalid, ""});
  });
  bool with_agent = options.agent;
  auto where = options.data_dir;
  auto master = options.master_address;
  const auto how = options;
  if (cluster)
    cluster->attach(options);
  auto started = node::start(std::move(options));
  if (!started) {
    notice.failed(started.error().what);
    return fail(started.error());
  }
  {
    std::lock_guard lock(mutex);
    running = std::move(*started);
    if (asked)
      running->ask_to_stop({errc::invalid, ""});
  }
  if (cluster) {
    if (auto ok = cluster->begin(*running, how); !ok) {
      notice.failed(ok.error().what);
      cluster->stop();
      running->stop();
      return fail(ok.error());
    }
    with_agent = with_agent && !cluster->has_nodes();
  }
  if (with_agent)
    if (auto ok = running->start_agent(); !ok) {
      notice.failed(ok.error().what);
      return fail(ok.error());
    }
  auto greeting =
    running->url().empty() ? "troupe agent for the master at " + master : "troupe is up at " + running->url();
  greeting += ", data in " + where.string();
  if (!running->url().empty())
    greeting += std::string("\nstop it with ") + (daemon ? "" : "Ctrl-C or: ") + "troupe down";
  if (cluster)
    greeting += cluster->to_do();
  std::cout << greeting << std::endl;
  // In the background "ready" means that work can be given to it.
  if (daemon && with_agent)
    if (auto ok = running->wait_registered(std::chrono::seconds(30)); !ok) {
      notice.failed(ok.error().what);
      running->stop();
      return fail(ok.error());
    }
  if (daemon && cluster && cluster->has_nodes())
    if (auto ok = cluster->wait_for_nodes(); !ok) {
      notice.failed(ok.error().what);
      cluster->stop();
      running->stop();
      return fail(ok.error());
    }
  notice.ready(greeting);
  service.ready(running->url().empty() ? "agent" : "serving at " + running->url());
  service.watch([&] { return !cluster || cluster->answers(); });
  {
    std::lock_guard lock(mutex);
    serving = true;
  }
  auto why = running->wait();
  service.stopping();
  {
    std::lock_guard lock(mutex);
    serving = false;
  }
  if (cluster)
    cluster->stop(); // agents end before their master
  running->stop();
  if (!why.what.empty())
    return fail(why);
  return cli::exit_done;
}

} // namespace

int up(const cli::up_options& o, const std::string& version) {
  node_options n;
  n.data_dir = o.data_dir;
  n.listen = o.listen;
  n.agent_listen = o.agent_listen;
  n.agent_name = o.name;
  n.slots = o.slots;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.version = version;
  cluster_service cluster(o.config);
  if (auto ok = cluster.read(n); !ok)
    return fail(ok.error());
  return serve(std::move(n), o.daemon, "up", &cluster);
}

int master(const cli::master_options& o, const std::string& version) {
  node_options n;
  n.data_dir = o.data_dir;
  n.listen = o.listen;
  n.agent_listen = o.agent_listen;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.version = version;
  n.agent = false;
  cluster_service cluster(o.config);
  if (auto ok = cluster.read(n); !ok)
    return fail(ok.error());
  return serve(std::move(n), o.daemon, "master", &cluster);
}

int agent(const cli::agent_options& o, const std::string& version) {
  node_options n;
  n.data_dir = o.data_dir;
  n.master_address = o.master;
  n.agent_name = o.name;
  n.slots = o.slots;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.version = version;
  n.master = false;
  if (!o.token_file.empty()) {
    std::FILE* in = std::fopen(o.token_file.c_str(), "re");
    char line[256] = {};
    if (!in || !std::fgets(line, sizeof line, in))
      return fail({errc::invalid, "cannot read the join token in '" + o.token_file.string() + "'"});
    std::fclose(in);
    n.join_token = line;
    while (!n.join_token.empty() && std::isspace(static_cast<unsigned char>(n.join_token.back())))
      n.join_token.pop_back();
  }
  return serve(std::move(n), o.daemon, "agent");
}

result<cli::opened_here> open_here(const std::filesystem::path& data_dir, const std::string& version) {
  node_options n;
  n.data_dir = data_dir;
  n.any_port = true;
  n.agent = false;
  n.version = version;
  auto started = node::start(std::move(n));
  if (!started)
    return started.error();
  std::shared_ptr<node> here = std::move(*started);
  return cli::opened_here{here->url(), here};
}

int tls_init(const cli::tls_init_options& o) {
  if (auto ok = make_tls_files(o.dir, o.hosts, o.days, o.replace); !ok)
    return fail(ok.error());
  auto dir = o.dir.string();
  std::cout << "The cluster's certificates and join token are in " << dir << ", good for " << o.days
            << " days.\n"
            << "On the master's host: troupe master --tls-dir " << dir << "\n"
            << "To an agent's host copy only ca.pem, agent.pem, agent.key and join-token, then there:\n"
            << "  troupe agent --master HOST:PORT --tls-dir DIR\n"
            << "For the client's verbs: export TROUPE_CA_FILE=" << (o.dir / "ca.pem").string() << "\n"
            << "Keep ca.key where nobody else can read it: who has it can join the cluster." << std::endl;
  return cli::exit_done;
}

} // namespace troupe::node
