#include "runtime/cli/task_verbs.hpp"

#include "runtime/cli/experiments.hpp"
#include "runtime/cli/interrupt.hpp"
#include "runtime/cli/output.hpp"
#include "runtime/cli/session.hpp"
#include "runtime/cli/things.hpp"
#include "runtime/client/submission.hpp"
#include "system/sh_word.hpp"
#include "workers/context_files.hpp"

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <ostream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace troupe::cli::verbs {
namespace {

const std::vector<column> task_columns = {{"ID", "id"},
                                          {"KIND", "kind"},
                                          {"NAME", "name"},
                                          {"STATE", "state", show_as::state},
                                          {"OWNER", "owner"},
                                          {"WORKSPACE", "workspaceName"},
                                          {"POOL", "pool"},
                                          {"SLOTS", "slots", show_as::number},
                                          {"AGENT", "agent"},
                                          {"STARTED", "started", show_as::age},
                                          {"READY", "ready"},
                                          {"IDLE", "idle", show_as::span},
                                          {"EXIT", "exit", show_as::number},
                                          {"ADDRESS", "address"}};

constexpr const char* own = "/troupe/v1/tasks";

std::string text_of(const value& x, const char* path) {
  const auto& at = part(x, path);
  return at.is_string() ? at.get<std::string>() : std::string();
}

error no_such_task(const std::string& text, const std::string& kind) {
  const auto what = kind.empty() ? "task" : kind == "generic" ? "generic task" : kind;
  return {errc::not_found, what + " '" + text + "' not found"};
}

} // namespace

result<value> named_task_row(client::server& cluster, const std::string& text, const std::string& kind) {
  if (text.size() == 36) {
    auto got = cluster.get(std::string(own) + "/" + text);
    if (got && !kind.empty() && got->body.value("kind", "") != kind)
      return no_such_task(text, kind);
    return got ? result<value>(std::move(got->body)) : got.error();
  }
  auto got = cluster.get(own, kind.empty() ? client::query{} : client::query{{"kind", kind}});
  if (!got)
    return got.error();
  std::vector<value> found;
  for (const auto& one : part(got->body, "tasks"))
    if (!text.empty() && text_of(one, "id").starts_with(text))
      found.push_back(one);
  if (found.size() == 1)
    return found.front();
  if (found.empty())
    return no_such_task(text, kind);
  return error{errc::invalid, "'" + text + "' is the beginning of " + std::to_string(found.size()) +
                                " ids\nhint: give more of it"};
}

namespace {

int list(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  client::query with;
  if (!kind.empty())
    with.emplace_back("kind", kind);
  if (s.given.has("--state"))
    with.emplace_back("state", s.given.text("--state"));
  else if (!s.given.has("--all"))
    with.emplace_back("state", "live");
  if (s.given.has("--user"))
    with.emplace_back("user", s.given.text("--user"));
  if (s.given.has("--workspace"))
    with.emplace_back("workspace", s.given.text("--workspace"));
  auto got = (*cluster)->get(own, with);
  return got ? s.print(show_rows(part(got->body, "tasks"), task_columns, s.output())) : s.fail(got.error());
}

int describe(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto row = named_task_row(**cluster, s.given.text("TASK"), kind);
  auto got = row ? (*cluster)->get(std::string(own) + "/" + text_of(*row, "id"))
                 : result<client::snapshot>(row.error());
  if (!got)
    return s.fail(got.error());
  auto columns = task_columns;
  if (!text_of(got->body, "why").empty())
    columns.push_back({"WHY", "why"});
  return s.print(show_one(got->body, columns, s.output()));
}

/// Where `troupe ssh` keeps the keys of shells: a file with the shell's id as its name, and one with ".hosts"
/// behind it.
std::filesystem::path key_folder(const session& s) {
  const auto home = s.io.env("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / ".troupe" / "ssh";
}

int kill(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int worst = exit_done;
  for (const auto& text : s.given.all("TASK")) {
    auto row = named_task_row(**cluster, text, kind);
    const bool root = s.given.has("--root");
    const auto id = row ? text_of(*row, "id") : std::string();
    auto done = !row   ? result<value>(row.error())
                : root ? (*cluster)->post("/api/v1/tasks/" + id + "/kill", {{"killFromRoot", true}})
                       : (*cluster)->post(std::string(own) + "/" + id + "/kill");
    if (!done) {
      worst = s.fail(done.error());
      continue;
    }
    s.io.out << "killing " << id << "\n";
    if (const auto keys = key_folder(s); !keys.empty()) { // they open nothing any more
      std::error_code ignored;
      std::filesystem::remove(keys / id, ignored);
      std::filesystem::remove(keys / (id + ".hosts"), ignored);
    }
  }
  return worst;
}

int set(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  if (!s.given.has("--priority"))
    return s.fail({errc::invalid, "nothing is set: name --priority"});
  auto row = named_task_row(**cluster, s.given.text("TASK"), kind);
  auto done = row ? (*cluster)->post(std::string(own) + "/" + text_of(*row, "id") + "/set",
                                     {{"priority", s.given.number("--priority", 42)}})
                  : result<value>(row.error());
  return done ? static_cast<int>(exit_done) : s.fail(done.error());
}

/// Prints the lines of a task as they come, until it ends or the user interrupts. With `apart`, lines that
/// its program does not write to its standard output go to our standard error.
result<void> print_log(session& s, client::server& cluster, const std::string& id, bool follow,
                       const interrupt_watch& watch, bool apart = false) {
  const auto format = s.given.has("--output") ? s.output().format : output_format::table;
  client::query with;
  std::vector<value> last;
  const bool tail = s.given.has("--tail") && !follow;
  if (follow)
    with.emplace_back("follow", "true");
  if (tail)
    with = {{"limit", std::to_string(s.given.number("--tail", 0))}, {"orderBy", "ORDER_BY_DESC"}};
  const auto print = [&](const value& line) {
    const auto& log = part(line, "result");
    if (format != output_format::table) {
      s.io.out << to_json(log) << "\n";
      return;
    }
    auto text = s.given.has("--timestamps") ? text_of(log, "message") : log_text(log);
    if (!text.ends_with('\n'))
      text += '\n';
    (apart && text_of(log, "stdtype") != "stdout" ? s.io.err : s.io.out) << text;
  };
  std::size_t printed = 0;
  const auto read = [&] {
    std::size_t line_number = 0;
    return cluster.lines(
      "/api/v1/tasks/" + id + "/logs", with, follow,
      [&](value line) {
        if (line_number++ < printed)
          return true; // the connection was lost since
        ++printed;
        if (tail)
          last.push_back(std::move(line));
        else
          print(line);
        if (follow)
          s.io.out.flush();
        return true;
      },
      [&] { return watch.seen(); });
  };
  auto ok = read();
  const auto lost = [&] {
    return follow && !ok && !watch.seen() &&
           (ok.error().code == errc::unreachable || ok.error().code == errc::timeout);
  };
  if (lost())
    s.io.err << "lost the cluster (" << ok.error().what << "); dialling it again\n";
  while (lost()) { // for as long as it takes: the task goes on
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ok = read();
  }
  for (auto line = last.rbegin(); line != last.rend(); ++line)
    print(*line);
  return ok;
}

int logs(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto row = named_task_row(**cluster, s.given.text("TASK"), kind);
  if (!row)
    return s.fail(row.error());
  interrupt_watch watch;
  if (auto ok = print_log(s, **cluster, text_of(*row, "id"), s.given.has("--follow"), watch); !ok)
    return s.fail(ok.error());
  return watch.seen() ? exit_interrupted : exit_done;
}

/// The exit code of the task, once it has ended.
int exit_of_task(session& s, client::server& cluster, const std::string& id) {
  auto got = cluster.get(std::string(own) + "/" + id);
  if (!got)
    return s.fail(got.error());
  const auto state = text_of(got->body, "state");
  if (state == "CANCELED") {
    s.io.err << "task " << id << " was ended: " << text_of(got->body, "why") << "\n";
    return exit_canceled;
  }
  const auto code = number_in(part(got->body, "exit"));
  if (state != "COMPLETED" && (!code || *code == 0)) {
    s.io.err << "task " << id << ": " << text_of(got->body, "why") << "\n";
    return exit_failed;
  }
  return static_cast<int>(code.value_or(0));
}

/// Ends when the task ends. After an interrupt the task goes on, without a question.
int follow(session& s, client::server& cluster, const std::string& id) {
  interrupt_watch watch;
  if (auto ok = print_log(s, cluster, id, true, watch, true); !ok)
    return s.fail(ok.error());
  if (watch.seen()) {
    s.io.err << "interrupted; task " << id << " continues (to end it: troupe task kill " << id << ")\n";
    return exit_interrupted;
  }
  return exit_of_task(s, cluster, id);
}

/// Body and files of POST /troupe/v1/tasks.
struct new_task {
  value body;
  std::string context;
};

result<new_task> prepared(session& s, client::server& cluster, const std::string& kind,
                          const std::string& file) {
  new_task out;
  auto text = std::string("{}");
  auto name = std::string("<config>");
  if (!file.empty()) {
    auto read = client::read_config(file, s.io.in);
    if (!read)
      return read.error();
    text = std::move(*read);
    name = file == "-" ? "<stdin>" : file;
  }
  auto overrides = s.given.all("--config");
  if (s.given.has("--slots"))
    overrides.push_back("resources.slots=" + std::to_string(s.given.number("--slots", 1)));
  if (s.given.has("--pool"))
    overrides.push_back("resources.resource_pool=" + s.given.text("--pool"));
  if (s.given.has("--idle"))
    overrides.push_back("idle_timeout=" + s.given.text("--idle"));
  for (const auto& one : overrides)
    if (one.find('=') == one.npos || one.front() == '=')
      return error{errc::invalid, "--config " + one + ": expected KEY=VALUE"};
  auto whole = overrides.empty() ? result<std::string>(text) : client::with_overrides(text, name, overrides);
  if (!whole)
    return whole.error();
  out.body = {{"kind", kind}, {"config", *whole}, {"configName", name}};
  if (s.given.has("--template"))
    out.body["template"] = s.given.text("--template");
  if (s.given.has("--workspace")) {
    auto workspace = workspace_named(cluster, s.given.text("--workspace"));
    if (!workspace)
      return workspace.error();
    out.body["workspace"] = part(*workspace, "id");
  }
  if (s.given.has("--context")) {
    auto packed = workers::pack_context(s.given.text("--context"));
    if (!packed)
      return error{packed.error().code,
                   packed.error().what + "\nhint: leave files out by naming them in .detignore"};
    out.context = std::move(packed->tar);
  }
  return out;
}

void say_warnings(session& s, const value& made) {
  for (const auto& one : part(made, "warnings").is_array() ? part(made, "warnings") : value::array())
    if (one.is_string())
      say_warning(s, one.get<std::string>());
}

/// Waits until the task is ready; false where it ended before.
result<bool> wait_ready(client::server& cluster, const std::string& id, const interrupt_watch& watch) {
  while (!watch.seen()) {
    auto got = cluster.get(std::string(own) + "/" + id);
    if (!got)
      return got.error();
    if (part(got->body, "ready") == value(true))
      return true;
    if (!part(got->body, "ended").is_null())
      return error{errc::conflict, "task " + id + " has ended: " + text_of(got->body, "why") +
                                     "\nhint: troupe task logs " + id};
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

int open_in_browser(session& s, client::server& cluster, const std::string& id, bool only_print) {
  auto access = cluster.get(std::string(own) + "/" + id + "/access");
  if (!access)
    return s.fail(access.error());
  const auto page = cluster.page_of(id);
  auto path = text_of(access->body, "address");
  if (path.empty() && !page) // tasks of its kind have no page
    return s.fail(page.error());
  if (path.empty())
    path = "/proxy/" + id + "/";
  s.io.out << cluster.where().url << path << "\n";
  s.io.out.flush();
  if (only_print)
    return exit_done;
  // The list of processes shows a program's arguments, so the browser gets no token.
  const auto address = page ? *page : cluster.where().url + "/proxy/" + id + "/";
  if (::fork() == 0) { // the child has no parent: where the browser outlives this program, so does the child
    ::setsid();
    if (const int none = ::open("/dev/null", O_RDWR); none >= 0)
      ::dup2(none, 0), ::dup2(none, 1), ::dup2(none, 2);
    ::execlp("xdg-open", "xdg-open", address.c_str(), nullptr);
    ::_exit(127);
  }
  return exit_done;
}

int start_and_open(session& s, client::server& cluster, const new_task& what) {
  auto made = cluster.create_task(what.body, what.context);
  if (!made)
    return s.fail(made.error());
  say_warnings(s, *made);
  const auto id = text_of(*made, "id");
  if (s.given.has("--detach")) {
    s.io.out << id << "\n";
    return exit_done;
  }
  s.io.err << "started " << id << "; waiting until it is ready\n";
  interrupt_watch watch;
  auto ready = wait_ready(cluster, id, watch);
  if (!ready)
    return s.fail(ready.error());
  return *ready ? open_in_browser(s, cluster, id, s.given.has("--no-open")) : exit_interrupted;
}

int open_task(session& s, const std::string& kind) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto row = named_task_row(**cluster, s.given.text("TASK"), kind);
  return row ? open_in_browser(s, **cluster, text_of(*row, "id"), s.given.has("--no-open"))
             : s.fail(row.error());
}

int each_task(session& s, const char* order) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  int worst = exit_done;
  for (const auto& text : s.given.all("TASK")) {
    auto row = named_task_row(**cluster, text, "generic");
    auto done = row ? (*cluster)->post("/api/v1/tasks/" + text_of(*row, "id") + "/" + order)
                    : result<value>(row.error());
    if (!done)
      worst = s.fail(done.error());
  }
  return worst;
}

int create_generic(session& s, client::server& cluster, new_task what) {
  if (s.given.has("--parent")) {
    auto parent = named_task_row(cluster, s.given.text("--parent"), "generic");
    if (!parent)
      return s.fail(parent.error());
    what.body["parent"] = part(*parent, "id");
  }
  if (s.given.has("--inherit-context"))
    what.body["inheritContext"] = true;
  if (s.given.has("--no-pause") || s.given.has("--parent")) // only who says so is paused with the parent
    what.body["noPause"] = s.given.has("--no-pause");
  auto made = cluster.create_task(what.body, what.context);
  if (!made)
    return s.fail(made.error());
  say_warnings(s, *made);
  const auto id = text_of(*made, "id");
  if (!s.given.has("--follow")) {
    s.io.out << id << "\n";
    return exit_done;
  }
  s.io.err << "started " << id << "\n";
  return follow(s, cluster, id);
}

/// Files for ssh to one shell, in a folder that only this user can read.
struct login {
  std::string id, user;
  std::filesystem::path key, hosts;
};

result<login> login_of(session& s, client::server& cluster) {
  auto row = named_task_row(cluster, s.given.text("TASK"), "shell");
  if (!row)
    return row.error();
  login out;
  out.id = text_of(*row, "id");
  if (!part(*row, "ended").is_null())
    return error{errc::conflict, "shell " + out.id + " has ended\nhint: troupe ssh start begins another one"};
  auto access = cluster.get(std::string(own) + "/" + out.id + "/access");
  if (!access)
    return access.error();
  out.user = text_of(access->body, "agentUserGroup.user");
  const auto folder = key_folder(s);
  if (folder.empty())
    return error{errc::invalid, "$HOME is not set: the key of the shell has no place"};
  std::error_code wrong;
  std::filesystem::create_directories(folder, wrong);
  ::chmod(folder.c_str(), 0700);
  out.key = folder / out.id;
  out.hosts = folder / (out.id + ".hosts");
  const auto write = [](const std::filesystem::path& path, const std::string& text) -> result<void> {
    ::unlink(path.c_str());
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool done = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0)
      ::close(fd);
    return done ? result<void>() : error{errc::io, "cannot write '" + path.string() + "'"};
  };
  if (auto ok = write(out.key, text_of(access->body, "privateKey")); !ok)
    return ok.error();
  if (auto ok = write(out.hosts, "troupe-" + out.id + " " + text_of(access->body, "hostPublicKey") + "\n");
      !ok)
    return ok.error();
  return out;
}

std::string own_program() {
  std::error_code wrong;
  auto path = std::filesystem::read_symlink("/proc/self/exe", wrong);
  return wrong ? "troupe" : path.string();
}

/// The path in quotes, where ssh's file and `-o` need them.
std::string in_ssh_config(const std::filesystem::path& path) {
  const auto text = path.string();
  return text.find(' ') == text.npos ? text : "\"" + text + "\"";
}
/// The text as a word of sh, in quotes where it needs them.
std::string in_command(const std::string& text) {
  return text.find_first_of(" \t'\"\\$`&|;<>()*?[#") == text.npos ? text : sh_word(text);
}

std::vector<std::string> ssh_options(const session& s, client::server& cluster, const login& with) {
  std::error_code ignored;
  const auto ca = s.io.env("TROUPE_CA_FILE"); // an editor that runs ssh may lack the variable
  const auto trust =
    ca.empty() ? std::string()
               : "env TROUPE_CA_FILE=" + in_command(std::filesystem::absolute(ca, ignored).string()) + " ";
  return {"HostName troupe-" + with.id,
          "User " + with.user,
          "IdentityFile " + in_ssh_config(with.key),
          "IdentitiesOnly yes",
          "UserKnownHostsFile " + in_ssh_config(with.hosts),
          "StrictHostKeyChecking yes",
          "ProxyCommand " + trust + in_command(own_program()) + " tunnel --master " + cluster.where().url +
            " " + with.id};
}

/// Shows output and exit code of the command, unless `apart`.
int start_command(session& s, const arguments& given, bool apart) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto what = prepared(s, **cluster, "command", given.text("--config-file"));
  if (!what)
    return s.fail(what.error());
  if (auto words = given.all("WORDS"); !words.empty()) {
    auto text = client::with_overrides(what->body["config"].get<std::string>(), "<config>",
                                       {"entrypoint=" + to_json(words)});
    if (!text)
      return s.fail(text.error());
    what->body["config"] = *text;
  }
  auto made = (*cluster)->create_task(what->body, what->context);
  if (!made)
    return s.fail(made.error());
  say_warnings(s, *made);
  const auto id = text_of(*made, "id");
  if (apart) {
    s.io.out << id << "\n";
    return exit_done;
  }
  s.io.err << "started " << id << "\n";
  return follow(s, **cluster, id);
}

} // namespace

int command_list(session& s, const arguments&) { return list(s, "command"); }
int command_describe(session& s, const arguments&) { return describe(s, "command"); }
int command_logs(session& s, const arguments&) { return logs(s, "command"); }
int command_kill(session& s, const arguments&) { return kill(s, "command"); }
int command_set(session& s, const arguments&) { return set(s, "command"); }
int notebook_list(session& s, const arguments&) { return list(s, "notebook"); }
int notebook_describe(session& s, const arguments&) { return describe(s, "notebook"); }
int notebook_logs(session& s, const arguments&) { return logs(s, "notebook"); }
int notebook_kill(session& s, const arguments&) { return kill(s, "notebook"); }
int notebook_set(session& s, const arguments&) { return set(s, "notebook"); }
int tensorboard_list(session& s, const arguments&) { return list(s, "tensorboard"); }
int tensorboard_describe(session& s, const arguments&) { return describe(s, "tensorboard"); }
int tensorboard_logs(session& s, const arguments&) { return logs(s, "tensorboard"); }
int tensorboard_kill(session& s, const arguments&) { return kill(s, "tensorboard"); }
int tensorboard_set(session& s, const arguments&) { return set(s, "tensorboard"); }
int ssh_list(session& s, const arguments&) { return list(s, "shell"); }
int ssh_describe(session& s, const arguments&) { return describe(s, "shell"); }
int ssh_logs(session& s, const arguments&) { return logs(s, "shell"); }
int ssh_kill(session& s, const arguments&) { return kill(s, "shell"); }
int ssh_set(session& s, const arguments&) { return set(s, "shell"); }
int task_list(session& s, const arguments&) { return list(s, ""); }
int task_describe(session& s, const arguments&) { return describe(s, ""); }
int task_logs(session& s, const arguments&) { return logs(s, ""); }
int task_kill(session& s, const arguments&) { return kill(s, ""); }
int task_set(session& s, const arguments&) { return set(s, ""); }
int task_pause(session& s, const arguments&) { return each_task(s, "pause"); }
int task_unpause(session& s, const arguments&) { return each_task(s, "unpause"); }
int command_open(session& s, const arguments&) { return open_task(s, "command"); }
int notebook_open(session& s, const arguments&) { return open_task(s, "notebook"); }
int task_open(session& s, const arguments&) { return open_task(s, ""); }
int tensorboard_open(session& s, const arguments&) { return open_task(s, "tensorboard"); }

int command_run(session& s, const arguments& given) { return start_command(s, given, given.has("--detach")); }
int command_start(session& s, const arguments& given) { return start_command(s, given, true); }

int notebook_start(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto what = prepared(s, **cluster, "notebook", given.text("CONFIG"));
  return what ? start_and_open(s, **cluster, *what) : s.fail(what.error());
}

int tensorboard_start(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto what = prepared(s, **cluster, "tensorboard", "");
  if (!what)
    return s.fail(what.error());
  for (const auto& [key, name] : {std::pair{"EXPERIMENT", "experimentIds"}, {"--trial", "trialIds"}}) {
    auto ids = value::array();
    for (const auto& one : given.all(key)) {
      const auto number = parse_id<experiment_id>(one);
      if (!number)
        return s.fail({errc::invalid, "'" + one + "' is not a number of an experiment or trial"});
      ids.push_back(number.value);
    }
    what->body[name] = std::move(ids);
  }
  return start_and_open(s, **cluster, *what);
}

int ssh_start(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto what = prepared(s, **cluster, "shell", given.text("CONFIG"));
  if (!what)
    return s.fail(what.error());
  auto made = (*cluster)->create_task(what->body, what->context);
  if (!made)
    return s.fail(made.error());
  say_warnings(s, *made);
  const auto id = text_of(*made, "id");
  s.io.out << id << "\n";
  s.io.out.flush();
  if (given.has("--detach"))
    return exit_done;
  interrupt_watch watch;
  auto ready = wait_ready(**cluster, id, watch);
  if (!ready)
    return s.fail(ready.error());
  if (*ready)
    s.io.err << "ready; log in with: troupe ssh open " << id << "\n";
  return *ready ? exit_done : exit_interrupted;
}

int ssh_open(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto with = login_of(s, **cluster);
  if (!with)
    return s.fail(with.error());
  std::vector<std::string> words{"ssh", "-F", "none"};
  for (const auto& option : ssh_options(s, **cluster, *with)) {
    const auto blank = option.find(' ');
    words.push_back("-o");
    words.push_back(option.substr(0, blank) + "=" + option.substr(blank + 1));
  }
  words.push_back("troupe-" + with->id);
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  s.io.out.flush();
  ::execvp("ssh", argv.data());
  return s.fail({errc::not_found, "cannot run ssh\nhint: install OpenSSH's client"});
}

int ssh_config(session& s, const arguments&) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto with = login_of(s, **cluster);
  if (!with)
    return s.fail(with.error());
  s.io.out << "Host troupe-" << with->id << "\n";
  for (const auto& option : ssh_options(s, **cluster, *with))
    s.io.out << "  " << option << "\n";
  return exit_done;
}

int task_create(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto what = prepared(s, **cluster, "generic", given.text("CONFIG"));
  return what ? create_generic(s, **cluster, std::move(*what)) : s.fail(what.error());
}

int task_fork(session& s, const arguments& given) {
  auto cluster = s.server();
  if (!cluster)
    return s.fail(cluster.error());
  auto from = named_task_row(**cluster, given.text("TASK"), "generic");
  if (!from)
    return s.fail(from.error());
  auto what = prepared(s, **cluster, "generic", given.text("CONFIG"));
  if (!what)
    return s.fail(what.error());
  what->body["forkedFrom"] = part(*from, "id");
  return create_generic(s, **cluster, std::move(*what));
}

} // namespace troupe::cli::verbs
