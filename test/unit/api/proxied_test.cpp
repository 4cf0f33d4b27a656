// Tests requests that pass through to a service, and for how long they may be silent.

#include "fakes.hpp"

#include "model/names.hpp"
#include "runtime/proxy/junctions.hpp"

#include <future>
#include <sys/socket.h>

namespace troupe::api {
namespace {

/// Trial 12 has a service on port 8080. The test plays the service.
struct with_a_service {
  with_a_service() : x(options()) {
    auto& row = x.reader->experiment_rows[7];
    auto config = row.config.get();
    config["environment"]["proxy_ports"] =
      value::array({value{{"proxy_port", 8080}, {"default_service_id", true}}});
    row.config = std::move(config);
    x.cluster.answers["allocation.connect"] = [this](const fake_gate::heard& asked) {
      int ends[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      service.set_value(ends[0]);
      table->bring(asked.fields.at("connection"), asked.fields.at("secret"),
                   proxy::service_end(workers::owned_fd{ends[1]}));
      return value::object();
    };
  }
  server_options options() {
    server_options how;
    how.junctions = table;
    return how;
  }
  /// Returns the head of a request as a client that is not a browser sends it.
  std::string head(const std::string& method, const std::string& more = {}) {
    return method + " /proxy/" + task_name({7}, trial_id{12}) +
           "/there HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + login + "\r\n" + more + "\r\n";
  }
  /// Returns the end of the connection that the service holds.
  workers::owned_fd connection() {
    auto coming = service.get_future();
    if (coming.wait_for(std::chrono::seconds{10}) == std::future_status::ready)
      return workers::owned_fd{coming.get()};
    ADD_FAILURE() << "no connection to the service was asked for";
    return {};
  }
  void let_pass(std::chrono::minutes time) { table->sweep(std::chrono::steady_clock::now() + time); }

  std::promise<int> service;
  std::shared_ptr<proxy::junctions> table = std::make_shared<proxy::junctions>();
  live x;
  const std::string login = x.token();
};

/// Returns what the service reads until it contains `enough`.
std::string read_until(int fd, std::string_view enough) {
  std::string all;
  char piece[4096];
  while (all.find(enough) == all.npos) {
    pollfd one{fd, POLLIN, 0};
    const auto got = ::poll(&one, 1, 10'000) > 0 ? ::read(fd, piece, sizeof piece) : 0;
    if (got <= 0) {
      ADD_FAILURE() << "the service waited in vain for " << enough << " after " << all;
      break;
    }
    all.append(piece, static_cast<std::size_t>(got));
  }
  return all;
}
/// Returns whether the other side ends the connection.
bool ends(int fd) {
  char one = 0;
  pollfd look{fd, POLLIN, 0};
  return ::poll(&look, 1, 10'000) > 0 && ::read(fd, &one, 1) <= 0;
}

TEST(Proxied, AnUploadMayPauseForLessThanAnHour) {
  with_a_service t;
  raw_client client(t.x.http->port());
  client.send(t.head("PUT", "Content-Length: 8\r\n") + "half");
  const auto service = t.connection();
  read_until(service.get(), "half");
  t.let_pass(std::chrono::minutes{59});
  client.send("rest");
  read_until(service.get(), "rest");
  ASSERT_EQ(::send(service.get(), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone", 42, MSG_NOSIGNAL), 42);
  EXPECT_EQ(client.answer().body, "done");
}

TEST(Proxied, WhereNothingPassesForAnHourBothSidesAreEnded) {
  for (const bool upload : {true, false}) {
    with_a_service t;
    raw_client client(t.x.http->port());
    client.send(upload ? t.head("PUT", "Content-Length: 8\r\n") + "half" : t.head("GET"));
    const auto service = t.connection();
    read_until(service.get(), upload ? "half" : "\r\n\r\n");
    t.let_pass(std::chrono::minutes{61});
    EXPECT_TRUE(ends(service.get())) << upload;
    bool closed = false;
    client.read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed) << upload;
  }
}

TEST(Proxied, AClientThatSendsNoMoreAfterItsRequestHearsTheAnswer) {
  for (const bool upload : {true, false}) {
    with_a_service t;
    raw_client client(t.x.http->port());
    client.send(upload ? t.head("PUT", "Content-Length: 4\r\n") + "body" : t.head("GET"));
    client.end_writing();
    const auto service = t.connection();
    read_until(service.get(), upload ? "body" : "\r\n\r\n");
    const std::string begin = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nd", rest = "one";
    ASSERT_EQ(::send(service.get(), begin.data(), begin.size(), MSG_NOSIGNAL), ssize_t(begin.size()));
    client.read_until([](const std::string& got) { return got.ends_with("\r\n\r\nd"); });
    ASSERT_EQ(::send(service.get(), rest.data(), rest.size(), MSG_NOSIGNAL), ssize_t(rest.size()));
    EXPECT_EQ(client.answer().body, "done") << upload;
  }
}

TEST(Proxied, NoServiceAnswersAClientThatHasGone) {
  for (const bool half_closed : {true, false}) {
    with_a_service t;
    raw_client client(t.x.http->port());
    client.send(t.head("GET"));
    if (half_closed)
      client.end_writing();
    const auto service = t.connection();
    read_until(service.get(), "\r\n\r\n");
    client.reset();
    EXPECT_TRUE(ends(service.get())) << half_closed;
  }
}

TEST(Proxied, NoWebSocketLeadsToAServiceThatServesNone) {
  live x;
  const auto board = task_id::of(task_kind::tensorboard, 1, 2);
  auto& task = x.reader->uuid_tasks[board];
  task.row = {.id = board, .owner = "determined", .created = t0, .run = {1}, .open = true};
  task.detail.made.id = board;
  task.detail.made.owner = "determined";
  task.detail.made.config = value::object();
  const auto answer = raw_client(x.http->port())
                        .ask("GET", "/proxy/" + to_string(board) + "/data", x.token(), {},
                             "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("serves no WebSocket"), std::string::npos) << answer.body;
  for (const auto& asked : x.cluster.all())
    EXPECT_NE(asked.command, "allocation.connect") << "nothing is dialled";
}

TEST(Proxied, AFirstChunkThatIsNoneIsRefusedBeforeTheServiceIsCalled) {
  for (const std::string begin : {"zz\r\nabc\r\n", "-1\r\n", "FFFFFFFFFFFFFFFFF\r\n", "\r\n", "3 abc\r\n"}) {
    with_a_service t;
    raw_client client(t.x.http->port());
    client.send(t.head("POST", "Transfer-Encoding: chunked\r\n") + begin);
    const auto answer = client.answer();
    EXPECT_EQ(answer.status, 400) << begin;
    EXPECT_NE(answer.body.find("the body of the request is no HTTP"), std::string::npos) << answer.body;
    for (const auto& asked : t.x.cluster.all())
      EXPECT_NE(asked.command, "allocation.connect") << begin;
  }
  // these are chunks, or may become chunks
  for (const std::string begin : {"3\r\nabc\r\n", "3;a=b\r\na", "3", "0\r\n\r\n", ""}) {
    with_a_service t;
    raw_client client(t.x.http->port());
    client.send(t.head("POST", "Transfer-Encoding: chunked\r\n") + begin);
    const auto service = t.connection();
    read_until(service.get(), "\r\n\r\n");
  }
}

TEST(Proxied, AnAnswerThatLastsEndsWithTheLogin) {
  with_a_service t;
  raw_client client(t.x.http->port());
  client.send(t.head("GET"));
  const auto service = t.connection();
  read_until(service.get(), "\r\n\r\n");
  const std::string begin = "HTTP/1.1 200 OK\r\n\r\n";
  ::send(service.get(), begin.data(), begin.size(), MSG_NOSIGNAL);
  t.let_pass(std::chrono::minutes{0});
  ::send(service.get(), "event", 5, MSG_NOSIGNAL);
  client.read_until([](const std::string& got) { return got.find("event") != got.npos; });
  raw_client other(t.x.http->port());
  EXPECT_EQ(other.ask("POST", "/api/v1/auth/logout", t.login).status, 200);
  // the fact that the real cluster writes at a logout
  t.x.reader->add(std::string(cluster_entity), token_changed{});
  t.let_pass(std::chrono::minutes{0});
  EXPECT_TRUE(ends(service.get()));
}

} // namespace
} // namespace troupe::api
