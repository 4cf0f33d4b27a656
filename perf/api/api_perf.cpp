// GET of one experiment and of a list of 100, against a bare Beast server that answers the same bytes in the
// same run. Claim: at least 55 % of the bare server's requests per second for one experiment; a list under 1
// ms at the server.
//   build/release/perf/api/perf_api [seconds a round]

#include <utility> // before Asio: its coroutine header forgets it

#include "test/unit/api/table.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <filesystem>
#include <iostream>
#include <thread>
#include <unistd.h>

namespace {

using namespace troupe;
using namespace troupe::api;
namespace net = boost::asio;
namespace http = boost::beast::http;
using tcp = net::ip::tcp;
using clock_type = std::chrono::steady_clock;

/// Reads a request, and answers fixed bytes.
class bare_server {
public:
  explicit bare_server(std::string body)
      : body_(std::move(body)), acceptor_(io_, tcp::endpoint{net::ip::address_v4::loopback(), 0}) {
    net::co_spawn(io_, accept(), net::detached);
    for (int i = 0; i < 2; ++i)
      threads_.emplace_back([this] { io_.run(); });
  }
  ~bare_server() {
    io_.stop();
    for (auto& one : threads_)
      one.join();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
  net::awaitable<void> accept() {
    for (;;) {
      tcp::socket socket{net::make_strand(io_)};
      co_await acceptor_.async_accept(socket, net::use_awaitable);
      auto on = socket.get_executor();
      net::co_spawn(on, serve(boost::beast::tcp_stream{std::move(socket)}), net::detached);
    }
  }
  net::awaitable<void> serve(boost::beast::tcp_stream stream) {
    boost::system::error_code bad;
    stream.socket().set_option(tcp::no_delay(true), bad);
    boost::beast::flat_buffer buffer;
    while (!bad) {
      http::request<http::string_body> request;
      co_await http::async_read(stream, buffer, request, net::redirect_error(net::use_awaitable, bad));
      if (bad)
        break;
      http::response<http::string_body> answer{http::status::ok, request.version()};
      answer.set(http::field::content_type, "application/json");
      answer.set(http::field::server, "troupe");
      answer.keep_alive(request.keep_alive());
      answer.body() = body_;
      answer.prepare_payload();
      co_await http::async_write(stream, answer, net::redirect_error(net::use_awaitable, bad));
    }
  }

  std::string body_;
  net::io_context io_;
  tcp::acceptor acceptor_;
  std::vector<std::thread> threads_;
};

/// Requests per second of `clients` kept connections, each with one request at a time.
double rate(std::uint16_t port, const std::string& path, const std::string& token, int clients,
            double seconds) {
  std::atomic<long> done = 0;
  std::vector<std::thread> threads;
  const auto end = clock_type::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&] {
      raw_client c{port};
      for (; clock_type::now() < end; ++done)
        if (c.ask("GET", path, token).status != 200)
          std::abort();
    });
  for (auto& one : threads)
    one.join();
  return static_cast<double>(done) / seconds;
}

template <class Work>
double microseconds(int times, Work work) {
  const auto began = clock_type::now();
  for (int i = 0; i < times; ++i)
    work();
  return std::chrono::duration<double, std::micro>(clock_type::now() - began).count() / times;
}

/// As large as a completed configuration: about 5 KB.
value large_config() {
  value config = {{"name", "digits"},
                  {"searcher", {{"name", "adaptive_asha"}, {"metric", "accuracy"}}},
                  {"hyperparameters", value::object()}};
  for (int i = 0; i < 60; ++i)
    config["hyperparameters"]["parameter_" + std::to_string(i)] = {
      {"type", "double"}, {"minval", 0.5 * i}, {"maxval", 1.5 * i}, {"count", nullptr}};
  return config;
}

/// Microseconds for a list of 100 experiments from a journal on disk, right after a new fact about one of
/// them.
double list_of_a_hundred(const std::string& target) {
  const auto folder = std::filesystem::temp_directory_path() / ("perf_api." + std::to_string(::getpid()));
  double after_fact = 0;
  {
    auto journal = std::move(*storage::open_journal({.directory = folder}));
    const auto commit = [&](experiment_id id, std::uint64_t number, const fact& x) {
      if (!journal->append({entity(id), number, {encode(x)}}) || !journal->commit())
        std::abort();
    };
    for (std::uint64_t id = 1; id <= 100; ++id)
      commit(
        {id}, 0,
        experiment_created{t0, {id}, large_config(), "digits", "determined", "", "name: digits\n", "", {}});
    auto users = std::shared_ptr<accounts>(std::move(*accounts::open({}, t0)));
    fake_gate cluster;
    service api{{cluster, journal->reads(), users, {"c", "m", "", "0"}, [] { return t0; }}};
    request_headers who;
    who.authorization = "Bearer " + users->log_in("determined", "", true, t0)->token;
    std::size_t bytes = 0;
    const auto ask = [&] {
      auto let_in = api.admit({"GET", target, who});
      api.run(std::move(std::get<admission>(let_in)), {}, reply{[&](response x) { bytes = x.body.size(); }});
    };
    const auto first = microseconds(1, ask);
    const auto kept = microseconds(200, ask);
    for (std::uint64_t n = 0; n < 200; ++n) {
      commit({n % 100 + 1}, 1 + n / 100,
             experiment_changed{t0, n % 2 ? experiment_state::paused : experiment_state::active, ""});
      after_fact += microseconds(1, ask) / 200;
    }
    std::cout << "list of 100 (" << bytes << " bytes): " << first << " us the first time, " << kept
              << " us as kept, " << after_fact << " us after a new fact about one of them\n";
  }
  std::filesystem::remove_all(folder);
  return after_fact;
}

} // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 2;
  live x;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    auto row = x.reader->experiment_rows[7];
    row.id = {id};
    row.config = large_config();
    x.reader->experiment_rows[id] = row;
  }
  const auto token = x.token();
  const std::string one = "/api/v1/experiments/7", list = "/api/v1/experiments?limit=100";
  const auto body = raw_client{x.http->port()}.ask("GET", one, token).body;
  bare_server bare{body};
  std::cout << "one experiment: " << body.size() << " bytes, " << std::thread::hardware_concurrency()
            << " cores, 2 server threads, 8 clients\n";
  double ours = 0, theirs = 0;
  for (int round = 0; round < 3; ++round) { // in turns, so that other work on the machine affects both
    theirs += rate(bare.port(), one, token, 8, seconds) / 3;
    ours += rate(x.http->port(), one, token, 8, seconds) / 3;
  }
  std::cout << "bare Beast " << static_cast<long>(theirs) << "/s, troupe " << static_cast<long>(ours)
            << "/s, ratio " << ours / theirs << "\n";

  const auto slowest = list_of_a_hundred(list);
  return ours / theirs >= 0.55 && slowest < 1000 ? 0 : 1;
}
