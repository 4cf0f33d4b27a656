#include "runtime/embed/troupe/embed.hpp"

#include "runtime/embed/caf_door.hpp"
#include "runtime/embed/convert.hpp"
#include "runtime/embed/engine.hpp"
#include "runtime/embed/json_text.hpp"

#include <cmath>
#include <new>

namespace troupe {
inline namespace v0 {

using embedding::engine;
using embedding::fault;

namespace detail {
struct node_inside {
  std::shared_ptr<engine> held;
};
struct run_inside {
  std::shared_ptr<engine> held;
  std::uint64_t id = 0;
};
} // namespace detail

namespace {

log_sink standard_error() {
  return [](log_level, std::string_view line) {
    std::fprintf(stderr, "troupe: %.*s\n", static_cast<int>(line.size()), line.data());
  };
}

/// Calls a host's callback. What it throws goes to the host's log, and no further.
template <class F>
void guarded(const log_sink& log, const char* what, F call) noexcept {
  try {
    call();
  } catch (const std::exception& thrown) {
    try {
      log(log_level::error, std::string("a callback of the host (") + what + ") threw: " + thrown.what());
    } catch (...) { // a log sink that throws cannot be reported anywhere
    }
  } catch (...) {
    try {
      log(log_level::error, std::string("a callback of the host (") + what + ") threw");
    } catch (...) {
    }
  }
}

template <class F>
auto no_throw(F call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return error{errc::internal, "out of memory", ""};
  } catch (const std::exception& thrown) {
    return error{errc::internal, thrown.what(), ""};
  }
}

result<void> done(const fault& why) { return why ? result<void>{to_error(why)} : result<void>{}; }

std::string json_of(const parameters& all) {
  std::string out;
  for (const auto& [name, x] : all)
    out += (out.empty() ? "{" : ",") + embedding::quoted(name) + ":" + text_of(x);
  return out.empty() ? out : out + "}";
}

log_sink log_of(const node_options& o) { return o.log ? o.log : standard_error(); }

} // namespace

std::string text_of(const parameter& x) {
  return std::visit(
    [](const auto& held) -> std::string {
      using type = std::decay_t<decltype(held)>;
      if constexpr (std::is_same_v<type, parameter::json>)
        return held.text;
      else if constexpr (std::is_same_v<type, std::string>)
        return embedding::quoted(held);
      else if constexpr (std::is_same_v<type, bool>)
        return held ? "true" : "false";
      else if constexpr (std::is_same_v<type, double>)
        return embedding::number_text(held);
      else
        return std::to_string(held);
    },
    x.held());
}

const char* name(errc code) {
  static constexpr const char* names[] = {"invalid", "not_found", "conflict",    "denied",
                                          "busy",    "no_space",  "io",          "unreachable",
                                          "timeout", "corrupt",   "unsupported", "internal"};
  const auto at = static_cast<std::size_t>(code);
  return at < std::size(names) ? names[at] : "internal";
}

error to_error(const fault& why) {
  error out{errc::internal, why.message, why.hint};
  for (int i = 0; i <= static_cast<int>(errc::internal); ++i)
    if (why.code == name(static_cast<errc>(i)))
      out.code = static_cast<errc>(i);
  if (why.code == "gap")
    out.code = errc::conflict;
  if (why.code == "unauthorized")
    out.code = errc::denied;
  return out;
}

int error::print(std::FILE* to) const {
  std::fprintf(to, "error: %s\n", message.c_str());
  if (!hint.empty())
    std::fprintf(to, "hint: %s\n", hint.c_str());
  return 1;
}

// ---- node

node::node(node&&) noexcept = default;
node& node::operator=(node&& other) noexcept {
  if (this != &other) {
    if (inside_)
      (void)stop(stop_mode::now);
    inside_ = std::move(other.inside_);
  }
  return *this;
}
node::~node() {
  if (inside_)
    (void)stop(stop_mode::now);
}

result<node> node::open(const node_options& options) { return open_in(nullptr, options); }

result<node> node::open_in(void* actors, const node_options& o) {
  return no_throw([&]() -> result<node> {
    if (o.data_dir.empty())
      return error{errc::invalid, "no data_dir is given", "name a folder; it is made if it is missing"};
    if (o.cpu_slots < 0)
      return error{errc::invalid, "cpu_slots is " + std::to_string(o.cpu_slots),
                   "give 1 or more, or 0 for all processors"};
    embedding::settings how;
    how.data_dir = o.data_dir;
    how.listen = o.http.listen;
    how.name = o.name;
    how.python = o.python;
    how.cpu_slots = o.cpu_slots;
    how.web = o.web;
    how.in_memory = o.store == store_kind::memory;
    how.shared_rocksdb = o.shared_rocksdb;
    how.actors = static_cast<caf::actor_system*>(actors);
    const auto log = log_of(o);
    how.log = [log](int level, std::string_view line) {
      guarded(log, "log", [&] { log(static_cast<log_level>(level), line); });
    };
    if (o.clock)
      how.clock = [log, clock = o.clock] {
        auto now = std::chrono::system_clock::now();
        guarded(log, "clock", [&] { now = clock(); });
        return now;
      };
    if (o.metrics)
      how.metrics = [log, sink = o.metrics](const embedding::named_numbers& all) {
        guarded(log, "metrics", [&] {
          std::vector<measure> out;
          for (const auto& [name, x] : all)
            out.push_back({name, x});
          sink(out);
        });
      };
    how.metrics_period = o.metrics_period;
    auto inside = std::make_shared<detail::node_inside>();
    fault why;
    inside->held = engine::open(std::move(how), why);
    if (!inside->held)
      return to_error(why);
    return node{std::move(inside)};
  });
}

result<void> node::ready(std::chrono::milliseconds limit) {
  return no_throw([&] { return done(inside_->held->ready(limit)); });
}
result<void> node::stop(stop_mode how, std::chrono::milliseconds limit) {
  return no_throw([&] { return done(inside_->held->stop(how == stop_mode::drain, limit)); });
}
node_client node::client() const { return node_client{inside_}; }
std::string node::url() const { return inside_->held->url(); }
std::vector<measure> node::measures() const {
  std::vector<measure> out;
  for (const auto& [name, x] : inside_->held->measures())
    out.push_back({name, x});
  return out;
}

namespace {

http_response answer_to(engine& of, const http_request& request, bool as_host,
                        const std::function<bool(std::string_view)>& piece) {
  try {
    auto got = of.http(request.method, request.target, request.headers, request.body, as_host, piece);
    return {got.status, std::move(got.type), std::move(got.body), std::move(got.headers)};
  } catch (const std::exception& thrown) {
    return {
      500, "application/json", "{\"error\":{\"message\":" + embedding::quoted(thrown.what()) + "}}", {}};
  }
}

} // namespace

http_response node::http(const http_request& request,
                         const std::function<bool(std::string_view)>& piece) const {
  return answer_to(*inside_->held, request, false, piece);
}
http_response node::call(const http_request& request) const {
  return answer_to(*inside_->held, request, true, {});
}

// ---- runs

result<run> node_client::submit(const run_spec& spec) const {
  return no_throw([&]() -> result<run> {
    embedding::parts parts{spec.entrypoint,        spec.metric, spec.name,         json_of(spec.hparams),
                           spec.smaller_is_better, spec.slots,  spec.max_restarts, spec.config};
    if (spec.entrypoint.empty() && spec.config.empty())
      return error{errc::invalid, "no entrypoint is given",
                   "name the command of a trial: \"python3 train.py\""};
    fault why;
    auto config = embedding::config_of(parts, why);
    if (why)
      return to_error(why);
    const auto id = inside_->held->submit({std::move(config), "config", spec.context, ""}, why);
    if (why)
      return to_error(why);
    return run{std::make_shared<detail::run_inside>(detail::run_inside{inside_->held, id})};
  });
}

result<run> node_client::find(std::uint64_t id) const {
  return no_throw([&]() -> result<run> {
    if (auto why = inside_->held->known(id))
      return to_error(why);
    return run{std::make_shared<detail::run_inside>(detail::run_inside{inside_->held, id})};
  });
}

std::uint64_t run::id() const { return inside_->id; }

void run::on_metric(std::function<void(const metric&)> fn) const {
  const log_sink log = [of = inside_->held.get()](log_level level, std::string_view line) {
    of->log(static_cast<int>(level), line);
  };
  inside_->held->on_metric(inside_->id, [log, fn = std::move(fn)](const embedding::reported& r) {
    guarded(log, "on_metric", [&] { fn({r.step, r.name, r.value, r.trial, r.validation}); });
  });
}

std::optional<outcome> run::wait(std::chrono::milliseconds limit) const {
  std::string why;
  switch (inside_->held->wait(inside_->id, limit, why)) {
  case embedding::ending::open:
    return {};
  case embedding::ending::completed:
    return outcome::completed;
  case embedding::ending::canceled:
    return outcome::canceled;
  case embedding::ending::failed:
    break;
  }
  return outcome::failed;
}
outcome run::wait() const {
  for (;;)
    if (auto over = wait(std::chrono::hours(1)))
      return *over;
}

std::string run::why() const {
  std::string why;
  inside_->held->wait(inside_->id, std::chrono::milliseconds(0), why);
  return why;
}

result<void> run::cancel(bool gently) const {
  return no_throw(
    [&] { return done(gently ? inside_->held->cancel(inside_->id) : inside_->held->kill(inside_->id)); });
}
result<void> run::pause() const {
  return no_throw([&] { return done(inside_->held->pause(inside_->id)); });
}
result<void> run::activate() const {
  return no_throw([&] { return done(inside_->held->activate(inside_->id)); });
}
result<best_trial> run::best() const {
  return no_throw([&]() -> result<best_trial> {
    embedding::best found;
    if (auto why = inside_->held->best_of(inside_->id, found))
      return to_error(why);
    return best_trial{found.trial, found.metric, std::move(found.hparams), std::move(found.checkpoint)};
  });
}

// ---- for embed_caf.cpp

result<node> caf_door::open(caf::actor_system& sys, const node_options& options) {
  return node::open_in(&sys, options);
}
engine& caf_door::engine_of(const node& of) { return *of.inside()->held; }

} // namespace v0
} // namespace troupe
