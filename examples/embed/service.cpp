// A web service that trains when asked and serves the predictions of the best model. Its cluster lives in
// this process.
//
//   POST /train?lr=0.1     starts a run: {"run": 1}
//   GET  /runs/1           {"run": 1, "state": "running", "step": 4, "loss": 0.02}
//   GET  /predict?x=0.5    {"x": 0.5, "y": 0.5, "loss": 0.0001}, by the best model of all runs; 503 before
//   there is one anything below /troupe/api/ and /troupe/troupe/ is the cluster's own REST API, with its
//   tokens POST /quit             ends it
//
// service DATA_DIR JOB_DIR [PORT]

#include <utility> // before Asio of Boost 1.74, which forgets it

#include <troupe/embed.hpp>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

namespace net = boost::asio;
namespace http = boost::beast::http;
using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

namespace {

struct model {
  double w = 0, b = 0, loss = 0;
};

/// A number after `"key":` in a small JSON text.
double number_in(const std::string& text, const std::string& key) {
  const auto at = text.find("\"" + key + "\"");
  return at == text.npos ? 0 : std::strtod(text.c_str() + text.find(':', at) + 1, nullptr);
}

std::string parameter_of(const std::string& target, const std::string& name) {
  const auto at = target.find(name + "=");
  return at == target.npos ? std::string()
                           : target.substr(at + name.size() + 1, target.find('&', at) - at - name.size() - 1);
}

class service {
public:
  service(troupe::node node, std::string job) : node_(std::move(node)), job_(std::move(job)) {}

  response answer(const request& ask, bool& quit) {
    const std::string target(ask.target());
    if (ask.method() == http::verb::post && target == "/quit")
      return quit = true, text(http::status::ok, "{}");
    if (ask.method() == http::verb::post && target.starts_with("/train"))
      return train(parameter_of(target, "lr"));
    if (target.starts_with("/runs/"))
      return progress(std::strtoull(target.c_str() + 6, nullptr, 10));
    if (target.starts_with("/predict"))
      return predict(parameter_of(target, "x"));
    if (target.starts_with("/troupe/"))
      return pass_on(ask);
    return text(http::status::not_found, R"({"error": "POST /train, GET /runs/N, GET /predict?x=NUMBER"})");
  }

private:
  struct progress_of {
    troupe::run run;
    long long step = 0;
    double loss = 0;
  };

  response train(const std::string& lr) {
    auto run =
      node_.client().submit({.entrypoint = "python3 train.py",
                             .context = job_,
                             .hparams = {{"lr", lr.empty() ? 0.1 : std::strtod(lr.c_str(), nullptr)}}});
    if (!run)
      return text(http::status::bad_request, "{\"error\": \"" + run.error().message + "\"}");
    {
      std::lock_guard lock(mutex_);
      runs_.insert_or_assign(run->id(), progress_of{*run});
    }
    run->on_metric([this, id = run->id()](const troupe::metric& m) { // on the node's event thread
      if (m.name != "loss")
        return;
      std::lock_guard lock(mutex_);
      auto& now = runs_.at(id);
      now.step = m.step;
      now.loss = m.value;
    });
    return text(http::status::accepted, "{\"run\": " + std::to_string(run->id()) + "}");
  }

  response progress(std::uint64_t id) {
    std::unique_lock lock(mutex_);
    auto at = runs_.find(id);
    if (at == runs_.end())
      return text(http::status::not_found, R"({"error": "no such run"})");
    const auto now = at->second;
    lock.unlock();
    const auto over = now.run.wait(std::chrono::milliseconds(0));
    const char* state = !over                                 ? "running"
                        : *over == troupe::outcome::completed ? "completed"
                        : *over == troupe::outcome::canceled  ? "canceled"
                                                              : "failed";
    if (over == troupe::outcome::completed)
      take(now.run);
    std::ostringstream out;
    out << "{\"run\": " << id << ", \"state\": \"" << state << "\", \"step\": " << now.step
        << ", \"loss\": " << now.loss << "}";
    return text(http::status::ok, out.str());
  }

  /// Serves its model from now on, if it is better than the present one.
  void take(const troupe::run& run) {
    auto best = run.best();
    if (!best || best->checkpoint.empty())
      return;
    std::ifstream file(best->checkpoint + "/weights.json");
    const std::string weights((std::istreambuf_iterator<char>(file)), {});
    if (weights.empty())
      return;
    std::lock_guard lock(mutex_);
    if (!serving_ || best->metric < serving_->loss)
      serving_ = model{number_in(weights, "w"), number_in(weights, "b"), best->metric};
  }

  response predict(const std::string& x) {
    std::lock_guard lock(mutex_);
    if (!serving_)
      return text(http::status::service_unavailable, R"({"error": "no model yet; POST /train"})");
    const double at = std::strtod(x.c_str(), nullptr);
    std::ostringstream out;
    out << "{\"x\": " << at << ", \"y\": " << serving_->w * at + serving_->b
        << ", \"loss\": " << serving_->loss << "}";
    return text(http::status::ok, out.str());
  }

  response pass_on(const request& ask) {
    troupe::http_request inner{
      std::string(ask.method_string()), std::string(ask.target().substr(7)), ask.body(), {}};
    for (const auto& field : ask)
      inner.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    auto got = node_.http(inner);
    response out{static_cast<http::status>(got.status), 11};
    out.set(http::field::content_type, got.content_type);
    out.body() = std::move(got.body);
    return out;
  }

  static response text(http::status status, std::string body) {
    response out{status, 11};
    out.set(http::field::content_type, "application/json");
    out.body() = std::move(body);
    return out;
  }

  troupe::node node_;
  const std::string job_;
  std::mutex mutex_;
  std::map<std::uint64_t, progress_of> runs_;
  std::optional<model> serving_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "service DATA_DIR JOB_DIR [PORT]\n");
    return 2;
  }
  auto node = troupe::node::open({.data_dir = argv[1], .http = troupe::http_off, .cpu_slots = 2});
  if (!node)
    return node.error().print(stderr);
  if (auto up = node->ready(std::chrono::seconds(60)); !up)
    return up.error().print(stderr);
  service mine(std::move(*node), argv[2]);
  net::io_context io;
  net::ip::tcp::acceptor listening(
    io, {net::ip::make_address("127.0.0.1"), static_cast<unsigned short>(argc > 3 ? std::atoi(argv[3]) : 0)});
  std::printf("listening on 127.0.0.1:%u\n", listening.local_endpoint().port());
  std::fflush(stdout);
  for (bool quit = false; !quit;) { // one client at a time is enough to show it
    boost::system::error_code fault;
    net::ip::tcp::socket client(io);
    listening.accept(client, fault);
    boost::beast::flat_buffer buffer;
    request ask;
    if (!fault)
      http::read(client, buffer, ask, fault);
    if (fault)
      continue;
    auto out = mine.answer(ask, quit);
    out.keep_alive(false);
    out.prepare_payload();
    http::write(client, out, fault);
  }
  return 0;
}
