#pragma once
// A gate that records commands and answers as it is told, a reader over plain maps, and a raw HTTP client.

#include "runtime/api/gate.hpp"
#include "runtime/api/server.hpp"
#include "storage/journal.hpp"
#include "storage/keys.hpp"

#include <arpa/inet.h>
#include <condition_variable>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace troupe::api {

inline const time_point t0{std::chrono::seconds{1'700'000'000}};

struct fake_gate : gate {
  struct heard {
    principal who;
    std::string command;
    value fields;
  };
  void call(const principal& who, const std::string& command, value fields, answer done) override {
    std::function<result<value>(const heard&)> how;
    {
      std::lock_guard lock{mutex};
      calls.push_back({who, command, fields});
      how = answers.contains(command) ? answers[command] : [](const heard&) { return value::object(); };
      if (hold.contains(command)) {
        held.push_back(std::move(done));
        return;
      }
    }
    done(how({who, command, fields}));
  }
  std::vector<heard> all() {
    std::lock_guard lock{mutex};
    return calls;
  }
  std::mutex mutex;
  std::vector<heard> calls;
  std::map<std::string, std::function<result<value>(const heard&)>> answers;
  std::set<std::string> hold;
  std::vector<answer> held;
};

/// Does what the cluster does for changes of users and tokens: every change is made as it is asked for.
inline void obey_for(fake_gate& cluster, const std::shared_ptr<accounts>& users) {
  const auto change = [users](const fake_gate::heard& x) -> result<value> {
    const auto id = x.fields.value("id", std::uint64_t{0});
    user_changed f;
    f.at = t0;
    f.by = x.who.user;
    f.id = {id ? id : users->users().back().id + 1};
    if (auto known = users->find(id)) {
      f.name = known->name;
      f.display_name = known->display_name;
      f.admin = known->admin;
      f.active = known->active;
      f.password = known->password;
      f.generation =
        known->generation + (x.fields.contains("password") || x.fields.contains("active") ? 1 : 0);
    } else if (auto taken = users->find(x.fields.value("name", std::string())); taken)
      return error{errc::invalid, "user already exists"};
    f.name = x.fields.value("name", f.name);
    f.display_name = x.fields.value("display_name", f.display_name);
    f.admin = x.fields.value("admin", f.admin);
    f.active = x.fields.value("active", f.active);
    f.password = x.fields.value("password", f.password);
    users->take(f);
    return value{{"id", f.id.value}};
  };
  cluster.answers["user.create"] = cluster.answers["user.change"] = change;
  cluster.answers["token.revoke"] = [users](const fake_gate::heard& x) -> result<value> {
    token_changed f;
    f.at = t0;
    f.id = x.fields.at("id");
    f.until = time_point{duration{x.fields.at("until").get<std::int64_t>()}};
    f.revoked = true;
    users->take(f);
    return value::object();
  };
}

struct fake_reader : storage::reader {
  template <class T>
  static result<T> found(const std::map<std::uint64_t, T>& in, std::uint64_t id, const char* what) {
    auto one = in.find(id);
    return one == in.end() ? result<T>(error{errc::not_found, std::string(what) + " " + std::to_string(id)})
                           : result<T>(one->second);
  }
  std::uint64_t sequence() const override {
    std::lock_guard lock{mutex};
    return facts.empty() ? 0 : facts.back().sequence;
  }
  result<std::vector<experiment_row>> experiments() const override {
    std::lock_guard lock{mutex};
    std::vector<experiment_row> all;
    for (const auto& [id, row] : experiment_rows)
      all.push_back(row);
    return all;
  }
  result<std::vector<experiment_standing>> experiment_standings() const override {
    std::lock_guard lock{mutex};
    std::vector<experiment_standing> all;
    for (const auto& [id, row] : experiment_rows)
      all.push_back(standing_of(row));
    return all;
  }
  trial_id newest_trial() const override {
    std::lock_guard lock{mutex};
    return trial_rows.empty() ? trial_id{} : trial_id{trial_rows.rbegin()->first};
  }
  result<std::vector<experiment_id>> experiments_with_key(std::string_view) const override {
    return std::vector<experiment_id>{};
  }
  result<experiment_row> experiment(experiment_id id) const override {
    std::lock_guard lock{mutex};
    return found(experiment_rows, id.value, "experiment");
  }
  result<std::vector<trial_row>> trials(experiment_id id) const override {
    std::lock_guard lock{mutex};
    std::vector<trial_row> all;
    for (const auto& [key, row] : trial_rows)
      if (row.experiment == id)
        all.push_back(row);
    return all;
  }
  result<std::vector<trial_id>> trial_ids(experiment_id id) const override {
    std::lock_guard lock{mutex};
    std::vector<trial_id> all;
    for (const auto& [key, row] : trial_rows)
      if (row.experiment == id)
        all.push_back({key});
    return all;
  }
  result<trial_row> trial(trial_id id) const override {
    std::lock_guard lock{mutex};
    return found(trial_rows, id.value, "trial");
  }
  result<trial_id> trial_with_name(const local_name& name) const override {
    std::lock_guard lock{mutex};
    for (const auto& [id, row] : trial_rows)
      if (name.key == uncategorized_project().key && row.number == name.number)
        return trial_id{id};
    return error{errc::not_found, "run " + to_string(name)};
  }
  result<task_row> task(task_id id) const override {
    if (!id.is_trial()) {
      std::lock_guard lock{mutex};
      auto other = uuid_tasks.find(id);
      return other == uuid_tasks.end() ? result<task_row>(error{errc::not_found, "task"}) : other->second.row;
    }
    auto row = trial(id.trial());
    if (!row)
      return row.error();
    auto experiment = this->experiment(row->experiment);
    task_row of{id, row->experiment, experiment ? experiment->owner : "", "", row->created, row->ended};
    of.continued = row->continued;
    if (!row->runs.empty()) {
      of.run = row->runs.back().run;
      of.open = row->runs.back().ended == time_point{};
    }
    return of;
  }
  result<task_detail> other_task(task_id id) const override {
    auto known = uuid_tasks.find(id);
    return known == uuid_tasks.end() || !known->second.detail.made.id
             ? result<task_detail>(error{errc::not_found, "task"})
             : known->second.detail;
  }
  result<std::vector<task_detail>> other_tasks(task_kind kind, time_point) const override {
    std::vector<task_detail> all;
    for (const auto& [id, one] : uuid_tasks)
      if (id.kind() == kind && one.detail.made.id)
        all.push_back(one.detail);
    return all;
  }
  result<std::vector<run_row>> runs(task_id id) const override {
    if (!id.is_trial()) {
      std::lock_guard lock{mutex};
      auto other = uuid_tasks.find(id);
      return other == uuid_tasks.end() ? result<std::vector<run_row>>(error{errc::not_found, "task"})
                                       : other->second.runs;
    }
    auto row = trial(id.trial());
    return row ? result<std::vector<run_row>>(row->runs) : row.error();
  }
  result<std::vector<task_row>> open_tasks() const override {
    std::vector<task_id> ids;
    {
      std::lock_guard lock{mutex};
      for (const auto& [id, row] : trial_rows)
        ids.push_back(trial_id{id});
      for (const auto& [id, row] : uuid_tasks)
        ids.push_back(id);
    }
    std::vector<task_row> open;
    for (auto id : ids)
      if (auto row = task(id); row && row->open)
        open.push_back(*row);
    return open;
  }
  result<std::vector<metric_row>> metrics(trial_id id, std::uint64_t after, std::size_t limit,
                                          std::string_view group) const override {
    std::lock_guard lock{mutex};
    std::vector<metric_row> all;
    if (auto of = metric_rows.find(id.value); of != metric_rows.end())
      for (const auto& row : of->second)
        if (row.row > after && all.size() < limit &&
            (group.empty() ? row.group != "system" : row.group == group))
          all.push_back(row);
    return all;
  }
  result<metric_row> metric(trial_id id, std::uint64_t row) const override {
    auto all = metrics(id, row - 1, 1, {});
    return all->empty() ? result<metric_row>(error{errc::not_found, "metric"})
                        : result<metric_row>(all->front());
  }
  result<std::vector<checkpoint_row>> checkpoints(trial_id id) const override {
    std::lock_guard lock{mutex};
    std::vector<checkpoint_row> all;
    for (const auto& row : checkpoint_rows)
      if (row.trial == id)
        all.push_back(row);
    return all;
  }
  result<checkpoint_row> checkpoint(std::string_view uuid) const override {
    std::lock_guard lock{mutex};
    for (const auto& row : checkpoint_rows)
      if (row.saved.uuid == uuid)
        return row;
    return error{errc::not_found, "checkpoint"};
  }
  result<std::vector<log_line>> logs(task_id id, std::uint64_t after, std::size_t limit) const override {
    std::lock_guard lock{mutex};
    std::vector<log_line> all;
    for (const auto& line : log_lines)
      if (line.allocation.task == id && line.number > after && all.size() < limit)
        all.push_back(line);
    return all;
  }
  result<std::vector<log_line>> logs_before(task_id id, std::uint64_t before,
                                            std::size_t limit) const override {
    std::lock_guard lock{mutex};
    std::vector<log_line> all;
    for (auto line = log_lines.rbegin(); line != log_lines.rend(); ++line)
      if (line->allocation.task == id && line->number < before && all.size() < limit)
        all.push_back(*line);
    return all;
  }
  result<std::vector<storage::committed_fact>> facts_after(std::uint64_t after,
                                                           std::size_t limit) const override {
    std::lock_guard lock{mutex};
    std::vector<storage::committed_fact> all;
    for (const auto& one : facts)
      if (one.sequence > after && all.size() < limit)
        all.push_back(one);
    return all;
  }
  result<std::vector<std::string>> facts_of(std::string_view, std::uint64_t) const override {
    return std::vector<std::string>{};
  }
  result<std::uint64_t> next_of(std::string_view entity) const override {
    std::lock_guard lock{mutex};
    auto stream = numbers.find(std::string(entity));
    return stream == numbers.end() ? 0 : stream->second;
  }
  result<std::vector<user_changed>> users() const override { return std::vector<user_changed>{}; }
  result<std::vector<token_changed>> tokens() const override { return std::vector<token_changed>{}; }
  result<std::vector<setting_changed>> settings() const override { return std::vector<setting_changed>{}; }
  result<std::optional<configuration_changed>> configuration() const override { return in_force; }
  result<std::vector<std::string>> records(std::string_view tag, std::string_view prefix) const override {
    std::lock_guard lock{mutex};
    std::vector<std::string> all;
    const auto from = storage::keys::record(tag, prefix);
    for (const auto& [key, bytes] : record_rows)
      if (key.starts_with(from))
        all.push_back(bytes);
    return all;
  }
  std::map<std::string, std::string> record_rows; ///< the key is that of storage::keys::record
  result<std::vector<workspace_changed>> workspaces() const override {
    auto all = more_workspaces;
    all.push_back(uncategorized_workspace());
    return all;
  }
  std::vector<workspace_changed> more_workspaces;
  result<std::vector<project_changed>> projects() const override {
    return std::vector{uncategorized_project()};
  }
  result<std::vector<template_changed>> templates() const override { return std::vector<template_changed>{}; }
  result<std::vector<model_changed>> models() const override {
    model_changed one;
    one.id = {1};
    one.name = "m";
    return std::vector{one};
  }
  result<std::vector<model_version_changed>> model_versions() const override {
    model_version_changed one;
    one.model = {1};
    one.version = 1;
    return std::vector{one};
  }
  result<std::optional<storage::kept_snapshot>> snapshot_of(std::string_view) const override {
    return std::optional<storage::kept_snapshot>{};
  }
  result<std::vector<std::string>> entities(std::string_view) const override {
    return std::vector<std::string>{};
  }
  result<std::string> blob(std::string_view name) const override {
    std::lock_guard lock{mutex};
    auto one = blobs.find(std::string(name));
    return one == blobs.end() ? result<std::string>(error{errc::not_found, "blob"})
                              : result<std::string>(one->second);
  }

  void add(const std::string& entity, const fact& x) {
    std::lock_guard lock{mutex};
    facts.push_back({facts.empty() ? 1 : facts.back().sequence + 1, entity, numbers[entity]++, encode(x)});
  }

  mutable std::mutex mutex;
  std::map<std::uint64_t, experiment_row> experiment_rows;
  std::map<std::uint64_t, trial_row> trial_rows;
  struct uuid_task {
    task_row row;
    std::vector<run_row> runs;
    task_detail detail; ///< without an id: no test asks for the detail
  };
  std::map<task_id, uuid_task> uuid_tasks; ///< the tasks that are not trials
  std::map<std::uint64_t, std::vector<metric_row>> metric_rows;
  std::vector<checkpoint_row> checkpoint_rows;
  std::vector<log_line> log_lines;
  std::optional<configuration_changed> in_force;
  std::vector<storage::committed_fact> facts;
  std::map<std::string, std::uint64_t> numbers;
  std::map<std::string, std::string> blobs;
};

/// A reader with experiment 7 of `determined`, which has trial 12: run 1 failed, and run 2 is open on agent
/// a1. Experiment 8 of `admin` has trial 13, whose run 1 is open.
inline std::shared_ptr<fake_reader> filled_reader() {
  auto r = std::make_shared<fake_reader>();
  experiment_row e;
  e.id = {7};
  e.name = "digits";
  e.owner = "determined";
  e.context = "blob1";
  e.source = "name: digits # as submitted\n";
  e.config = value{{"name", "digits"},
                   {"labels", {"a"}},
                   {"searcher", {{"name", "adaptive_asha"}, {"metric", "accuracy"}}},
                   {"resources", {{"slots_per_trial", 1}}}};
  e.created = t0;
  e.num_trials = 1;
  e.metric = "accuracy";
  e.smaller_is_better = false;
  e.best_trial = {12};
  e.best_metric = 0.9;
  r->experiment_rows[7] = e;
  experiment_row other = e;
  other.id = {8};
  other.owner = "admin";
  other.state = experiment_state::paused;
  other.best_trial = {};
  r->experiment_rows[8] = other;
  trial_row t;
  t.id = {12};
  t.experiment = {7};
  t.state = trial_state::running;
  t.hparams = {{"lr", 0.1}};
  t.created = t0;
  t.runs = {
    {.run = {1},
     .started = t0,
     .ended = t0 + 10s,
     .why = end::failed,
     .detail = "exit code 1",
     .on = {{"a1", {0}}}},
    {.run = {2}, .started = t0 + 20s, .from_checkpoint = "c1", .from_steps = 100, .on = {{"a1", {0}}}}};
  t.best = t.latest = {.row = 2, .steps = 100, .metric = 0.9, .at = t0 + 5s, .run = {1}};
  t.checkpoint_count = 1;
  t.checkpoint_bytes = 5;
  t.latest_checkpoint = "c1";
  r->trial_rows[12] = t;
  trial_row u;
  u.id = {13};
  u.experiment = {8};
  u.state = trial_state::running;
  u.runs = {{.run = {1}, .started = t0, .on = {{"a1", {1}}}}};
  r->trial_rows[13] = u;
  r->metric_rows[12] = {
    {1, "training", 50, {1}, t0 + 4s, to_msgpack({{"loss", 0.5}})},
    {2,
     "validation",
     100,
     {1},
     t0 + 5s,
     to_msgpack({{"accuracy", 0.9}, {"odd", std::numeric_limits<double>::quiet_NaN()}})},
    {3, "training", 150, {1}, t0 + 6s, to_msgpack({{"loss", 0.4}})},
  };
  r->checkpoint_rows = {
    {{"c1", 100, {{"model.pt", 5}, {"code/", 0}}, {{"steps_completed", 100}}, "/nonexistent/c1"},
     {12},
     {7},
     {1},
     t0 + 5s}};
  for (int i = 1; i <= 3; ++i)
    r->log_lines.push_back({static_cast<std::uint64_t>(i),
                            t0,
                            {{12}, {2}},
                            "a1",
                            0,
                            "stdout",
                            i == 2 ? "INFO" : "",
                            "line " + std::to_string(i)});
  r->blobs["blob1"] = "\x1f\x8b tar";
  r->add("experiment/7", experiment_changed{t0, experiment_state::active, ""});
  r->add("trial/12", run_started{t0, {2}, "c1", 100});
  return r;
}

struct http_answer {
  int status = 0;
  std::string head, body;
  bool closed = false; ///< whether the server closed the connection
  value json() const {
    auto x = parse_json(body);
    return x ? *x : value("not JSON: " + body.substr(0, 300));
  }
};

/// A socket on loopback. It reads with a deadline, so that no test hangs.
class raw_client {
public:
  explicit raw_client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  }
  raw_client(const raw_client&) = delete;
  ~raw_client() {
    if (fd_ >= 0)
      ::close(fd_);
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      auto put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0)
        return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  /// Reads until `enough` accepts what has come, the server closes (then `closed` is true), or 10 s have
  /// passed.
  std::string read_until(const std::function<bool(const std::string&)>& enough, bool* closed = nullptr) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!enough(kept_)) {
      auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
          .count();
      pollfd one{fd_, POLLIN, 0};
      if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) {
        ADD_FAILURE() << "no answer in 10 s; so far: " << kept_.substr(0, 300);
        break;
      }
      char part[65536];
      auto got = ::recv(fd_, part, sizeof part, 0);
      if (got <= 0) {
        if (closed)
          *closed = true;
        break;
      }
      kept_.append(part, static_cast<std::size_t>(got));
    }
    return kept_;
  }
  void forget() { kept_.clear(); }
  void end_writing() { ::shutdown(fd_, SHUT_WR); }
  /// Closes at once with a reset, as a process that is killed with unread bytes does.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(std::exchange(fd_, -1));
  }

  /// Reads one whole answer that has a Content-Length or is chunked.
  http_answer answer() {
    http_answer out;
    read_until([](const std::string& s) { return s.find("\r\n\r\n") != s.npos; }, &out.closed);
    auto end = kept_.find("\r\n\r\n");
    if (end == kept_.npos)
      return out;
    out.head = kept_.substr(0, end + 2);
    kept_.erase(0, end + 4);
    out.status = std::stoi(out.head.substr(9, 3));
    auto length = out.head.find("Content-Length: ");
    if (length != out.head.npos) {
      const auto bytes = std::stoul(out.head.substr(length + 16));
      read_until([&](const std::string& s) { return s.size() >= bytes; }, &out.closed);
      out.body = kept_.substr(0, bytes);
      kept_.erase(0, bytes);
    } else
      out.body = chunks(&out.closed);
    return out;
  }
  http_answer ask(const std::string& method, const std::string& path, const std::string& token = {},
                  const std::string& body = {}, const std::string& more_headers = {}) {
    send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" +
         (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + more_headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return answer();
  }

private:
  std::string chunks(bool* closed) {
    std::string whole;
    for (;;) {
      read_until([](const std::string& s) { return s.find("\r\n") != s.npos; }, closed);
      auto end = kept_.find("\r\n");
      if (end == kept_.npos)
        return whole;
      const auto bytes = std::stoul(kept_.substr(0, end), nullptr, 16);
      read_until([&](const std::string& s) { return s.size() >= end + 2 + bytes + 2; }, closed);
      whole += kept_.substr(end + 2, bytes);
      kept_.erase(0, std::min(kept_.size(), end + 2 + bytes + 2));
      if (bytes == 0)
        return whole;
    }
  }

  int fd_;
  std::string kept_;
};

/// A server on loopback with fakes behind it. Its clock always shows `now`.
struct live {
  explicit live(server_options how = {}) : reader(filled_reader()) {
    users = std::move(*accounts::open({}, t0));
    obey_for(cluster, users);
    how.about = {"cluster-id", "master-id", "", "0.1.0"};
    how.now = [this] { return now.load(); };
    auto started = server::start(how, cluster, reader, users);
    EXPECT_TRUE(started) << (started ? "" : started.error().what);
    http = std::move(*started);
  }
  std::string token(const std::string& name = "determined") {
    return users->log_in(name, "", true, now)->token;
  }

  fake_gate cluster;
  std::shared_ptr<fake_reader> reader;
  std::shared_ptr<accounts> users;
  std::atomic<time_point> now = t0 + 60s;
  std::unique_ptr<server> http;
};

} // namespace troupe::api
