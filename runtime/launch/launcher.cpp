#include "runtime/launch/launcher.hpp"

#include "runtime/cli/session.hpp"
#include "runtime/launch/cluster_service.hpp"
#include "runtime/launch/serve.hpp"
#include "runtime/node/link.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

namespace troupe::launch {

int up(const cli::up_options& o, const std::string& version) {
  node::node_options n;
  n.data_dir = o.data_dir;
  n.listen = o.listen;
  n.agent_listen = o.agent_listen;
  n.agent_name = o.name;
  n.slots = o.slots;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.plain_http = o.plain_http;
  n.web_dir = o.web_dir;
  n.web_hosts = o.web_hosts;
  n.version = version;
  cluster_service cluster(o.config);
  if (auto ok = cluster.read(n); !ok)
    return cli::exit_after(ok.error());
  return serve(std::move(n), {o.daemon, "up", &cluster});
}

int master(const cli::master_options& o, const std::string& version) {
  node::node_options n;
  n.data_dir = o.data_dir;
  n.listen = o.listen;
  n.agent_listen = o.agent_listen;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.plain_http = o.plain_http;
  n.web_dir = o.web_dir;
  n.web_hosts = o.web_hosts;
  n.version = version;
  n.agent = false;
  cluster_service cluster(o.config, o.determined);
  if (auto ok = cluster.read(n); !ok)
    return cli::exit_after(ok.error());
  return serve(std::move(n), {o.daemon, "master", &cluster});
}

int agent(const cli::agent_options& o, const std::string& version) {
  node::node_options n;
  n.data_dir = o.data_dir;
  n.master_address = o.master;
  n.agent_name = o.name;
  n.slots = o.slots;
  n.tls_dir = o.tls_dir;
  n.trace_actors = o.trace_actors;
  n.allow_faults = o.allow_faults;
  n.version = version;
  n.master = false;
  n.labels = o.labels;
  n.pool = o.pool;
  if (!o.token_file.empty()) {
    std::FILE* in = std::fopen(o.token_file.c_str(), "re");
    char line[256] = {};
    if (!in || !std::fgets(line, sizeof line, in))
      return cli::exit_after(
        {errc::invalid, fmt::format("cannot read the join token in '{}'", o.token_file.string())});
    std::fclose(in);
    n.join_token = line;
    while (!n.join_token.empty() && std::isspace(static_cast<unsigned char>(n.join_token.back())))
      n.join_token.pop_back();
  }
  return serve(std::move(n), {o.daemon, "agent"});
}

result<cli::opened_here> open_here(const std::filesystem::path& data_dir, const std::string& version) {
  node::node_options n;
  n.data_dir = data_dir;
  n.any_port = true;
  n.agent = false;
  n.version = version;
  auto started = node::node::start(std::move(n));
  if (!started)
    return started.error();
  std::shared_ptr<node::node> here = std::move(*started);
  return cli::opened_here{here->url(), here};
}

int tls_init(const cli::tls_init_options& o) {
  if (auto ok = node::make_tls_files(o.dir, o.hosts, o.days, o.replace); !ok)
    return cli::exit_after(ok.error());
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

} // namespace troupe::launch
