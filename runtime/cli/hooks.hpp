#pragma once
// What the verbs that live in the node are asked to do. The command line reads their flags into these values
// and calls the hook; the main program sets the hooks. A hook returns the exit code.

#include "model/value.hpp"

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

struct up_options {
  std::filesystem::path data_dir;     ///< never empty
  std::string listen;                 ///< HOST:PORT; empty: the node's default
  std::string agent_listen;           ///< HOST:PORT; empty: the port beside `listen`
  std::optional<int> slots;           ///< number of artificial CPU slots; none: the host's slots
  std::string name;                   ///< name of the agent in this process; empty: the host's name
  std::filesystem::path config;       ///< cluster file; empty: none
  std::filesystem::path tls_dir;      ///< folder that `tls init` made; empty: no TLS, only on loopback
  std::filesystem::path trace_actors; ///< file that gets one line for each message; empty: none
  bool daemon = false;
  bool allow_faults = false;          ///< whether the shell may disturb actors' mail, for tests
  bool plain_http = false;            ///< whether other hosts may reach `listen` without certificates
  std::filesystem::path web_dir;      ///< folder of a built web page instead of the binary's; empty: none
  std::vector<std::string> web_hosts; ///< further names under which a server on loopback answers
};

struct master_options {
  std::filesystem::path data_dir;
  std::string listen, agent_listen;
  std::filesystem::path config, tls_dir, trace_actors;
  bool daemon = false;
  bool allow_faults = false;          ///< whether the shell may disturb actors' mail, for tests
  bool plain_http = false;            ///< whether other hosts may reach `listen` without certificates
  std::filesystem::path web_dir;      ///< folder of a built web page instead of the binary's; empty: none
  std::vector<std::string> web_hosts; ///< further names under which a server on loopback answers
  bool determined = false;            ///< whether `config` is a file of a Determined master
};

struct agent_options {
  std::string master; ///< HOST:PORT of the master's HTTP (or agent) port; never empty
  std::filesystem::path data_dir;
  std::string name; ///< empty: the host's name
  std::optional<int> slots;
  std::filesystem::path tls_dir, trace_actors;
  std::filesystem::path token_file; ///< file with the join token; empty: the one in `tls_dir`
  std::map<std::string, std::string> labels;
  std::string pool; ///< empty: as the cluster file says, otherwise the default pool
  bool daemon = false;
  bool allow_faults = false; ///< whether the shell may disturb actors' mail, for tests
};

struct run_options {
  std::filesystem::path config;  ///< the experiment; empty with `resume`
  std::filesystem::path context; ///< folder or file; empty: the files beside the configuration
  std::vector<std::string> set;  ///< "a.b=value", replaces the configuration's value
  bool resume = false; ///< `--resume`: of `resume_id`, or of the newest unfinished one where that is 0
  std::uint64_t resume_id = 0;
  bool fresh = false; ///< `--new`: makes an experiment even where the same one is unfinished
  std::filesystem::path data_dir;
  std::string listen;
  std::optional<int> slots;
  std::filesystem::path trace_actors;
  std::string color = "auto"; ///< or "always", "never": for `standard_canvas`
};

struct tls_init_options {
  std::filesystem::path dir;
  std::vector<std::string> hosts; ///< names and addresses under which the master is dialled
  int days = 3650;
  bool replace = false;
};

struct shell_options {
  std::string attach;                ///< HOST:PORT or URL; empty: the cluster that is found
  std::vector<std::string> commands; ///< `-e`, in order
  std::filesystem::path file;        ///< `-f`; "-" is standard input
  std::string format = "table";      ///< or "json", "csv", "yaml"
  bool keep_going = false;           ///< whether it goes on after a command that failed
  std::string color = "auto";
};

using words = std::vector<std::string>;

/// A node without slots on a data directory that no other node holds, so that its results can be read. It
/// ends with this object.
struct opened_here {
  std::string url;
  std::shared_ptr<void> node;
};

/// One finding of `check --connect`.
struct host_finding {
  std::string path; ///< key that is checked: "cluster.listen", "nodes.gpu01"
  std::string what; ///< what was found: "127.0.0.1:8080 is free"
  std::string mend; ///< what to do; empty: nothing
  bool good = true;
};

/// An empty hook means that this program lacks the verb, and says so.
struct hooks {
  std::function<int(const up_options&)> up;
  std::function<int(const master_options&)> master;
  std::function<int(const agent_options&)> agent;
  /// Called only where no live node holds the data directory and no --master is given: the command line
  /// submits to those itself.
  std::function<int(const run_options&)> run;
  std::function<int(const tls_init_options&)> tls_init;
  std::function<int(const shell_options&)> shell;
  std::function<result<opened_here>(const std::filesystem::path& data_dir)> open_here;
  std::function<std::vector<host_finding>(const value& cluster_file)> check_hosts;
  /// Gets all words after the verb, unread.
  std::function<int(const words&, std::istream&, std::ostream&, std::ostream&)> config, search;
  std::function<int(std::istream&, std::ostream&)> pool_replay;
  std::string version = "0.1.0";
};

} // namespace troupe::cli
