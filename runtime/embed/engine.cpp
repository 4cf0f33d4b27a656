#include "runtime/embed/engine.hpp"

#include "actors/inspector/inspector_messages.hpp"
#include "actors/message_types.hpp"
#include "model/checkpoint_place.hpp"
#include "model/config/document.hpp"
#include "model/config/experiment_config.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/fact_shape.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/server.hpp"
#include "runtime/api/service.hpp"
#include "runtime/api/shapes.hpp"
#include "runtime/embed/observer.hpp"
#include "runtime/node/node.hpp"
#include "runtime/web/page.hpp"
#include "workers/context_files.hpp"

#include <pthread.h>

#include <thread>

namespace troupe::embedding {
namespace {

constexpr std::size_t most_gathered = 256u << 20; ///< limit of a body that is collected from a stream

fault fault_of(const error& why) {
  auto text = why.what;
  std::string hint;
  // Only where the hint is the last line: of several faults each keeps its own.
  if (auto at = text.rfind("\nhint: "); at != text.npos && text.find('\n', at + 1) == text.npos) {
    hint = text.substr(at + 7);
    text.resize(at);
  }
  // Advice for the command line becomes advice in words of this API.
  for (const auto& [flag, field] :
       {std::pair{"with --data-dir", "in data_dir"}, {"with --listen 127.0.0.1:PORT", "in http"}})
    if (auto at = hint.find(flag); at != hint.npos)
      hint.replace(at, std::string_view(flag).size(), field);
  return {name(why.code), text, hint};
}

const fault gone{"unreachable", "the node has stopped", "open it again"};

api::principal host_user() { return {.user = "admin", .admin = true, .allocation = {}}; }

/// The result that one thread waits for and another gives.
template <class T>
class mailbox {
public:
  void put(T x) {
    std::lock_guard lock(mutex_);
    if (!content_)
      content_ = std::move(x);
    came_.notify_all();
  }
  std::optional<T> take(milliseconds limit) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, limit, [this] { return content_.has_value(); });
    return std::move(content_);
  }

private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<T> content_;
};

} // namespace

class engine::inside {
public:
  explicit inside(settings how) : how_(std::move(how)) {}

  fault open() {
    if (!how_.listen.empty()) {
      auto where = api::parse_listen(how_.listen);
      if (!where)
        return fault_of(where.error());
      if (!api::is_loopback(where->host))
        return {"invalid",
                "'" + how_.listen + "' can be reached from other hosts, and this port speaks no TLS",
                "listen on 127.0.0.1 and put the host's own server before it, or use node::http"};
    }
    node::node_options o;
    o.data_dir = how_.data_dir;
    o.listen = how_.listen;
    o.agent_name = how_.name;
    if (how_.cpu_slots > 0)
      o.slots = how_.cpu_slots;
    o.version = TROUPE_VERSION;
    o.web = how_.web;
    o.host.http = !how_.listen.empty();
    o.host.link = false;
    o.host.remembered = false;
    o.host.in_memory = how_.in_memory;
    o.host.shared_rocksdb = how_.shared_rocksdb;
    o.host.actors = how_.actors;
    o.host.python_bin = how_.python;
    if (how_.log)
      o.host.say = [this](const std::string& line) { how_.log(1, line); };
    if (how_.clock)
      o.host.now = [clock = how_.clock] { return std::chrono::floor<duration>(clock()); };
    o.host.committed = [this] {
      if (auto* who = watching_.load(std::memory_order_acquire))
        who->committed();
    };
    auto started = node::node::start(std::move(o));
    if (!started)
      return fault_of(started.error());
    node_ = std::move(*started);
    observer_ = std::make_unique<observer>(
      node_->reads(),
      how_.metrics ? std::function<void()>([this] { how_.metrics(measures()); }) : std::function<void()>(),
      how_.metrics_period);
    watching_.store(observer_.get(), std::memory_order_release);
    api::services parts{
      node_->commands(),
      node_->reads(),
      node_->users(),
      {node_->ids().cluster, node_->ids().start, "troupe", TROUPE_VERSION},
      how_.clock
        ? std::function<time_point()>([clock = how_.clock] { return std::chrono::floor<duration>(clock()); })
        : [] { return std::chrono::floor<duration>(std::chrono::system_clock::now()); }};
    parts.empty_journal = storage::make_memory_journal;
    service_ = std::make_shared<api::service>(
      std::move(parts),
      how_.web ? web::page_routes() : std::vector<api::route>{}); // the host's own server serves the page
    admin_.who = host_user();
    if (auto user = node_->users()->find(std::string("admin")))
      admin_.user_id = user->id;
    if (auto ok = node_->start_agent(); !ok)
      return fault_of(ok.error());
    // A part that fails for good ends the node's work; the host is told why.
    guard_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "troupe.guard");
      auto why = node_->wait();
      if (!why.what.empty()) {
        if (how_.log)
          how_.log(2, why.what);
        std::lock_guard lock(mutex_);
        died_ = fault_of(why);
      }
    });
    return {};
  }

  fault stop(bool drain, milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    fault late;
    if (drain && !gone_) {
      while (active() > 0 && !dead()) {
        if (std::chrono::steady_clock::now() >= until) {
          late = {"timeout",
                  std::to_string(active()) + " experiments were still active after " +
                    std::to_string(limit.count()) + " ms",
                  "they go on at the next open of this data directory"};
          break;
        }
        observer_->wait_for_commit(std::min<milliseconds>(
          milliseconds(200), std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now())));
      }
    }
    std::lock_guard one_at_a_time(stopping_);
    if (gone_.exchange(true))
      return late;
    {
      std::unique_lock lock(mutex_);
      calls_over_.wait(lock, [this] { return calls_ == 0; });
    }
    watching_ = nullptr;
    if (observer_)
      observer_->stop();
    if (node_) {
      node_->ask_to_stop({errc::invalid, ""});
      if (guard_.joinable())
        guard_.join();
      service_.reset();
      node_->stop();
    }
    observer_.reset();
    node_.reset();
    return late;
  }

  /// Keeps the node while a call of the host runs.
  class visit {
  public:
    explicit visit(inside& of) : of_(of) {
      std::lock_guard lock(of_.mutex_);
      in_ = !of_.gone_;
      of_.calls_ += in_;
    }
    ~visit() {
      if (!in_)
        return;
      std::lock_guard lock(of_.mutex_);
      if (--of_.calls_ == 0)
        of_.calls_over_.notify_all();
    }
    visit(const visit&) = delete;
    explicit operator bool() const { return in_; }

  private:
    inside& of_;
    bool in_;
  };

  std::optional<fault> dead() {
    std::lock_guard lock(mutex_);
    return died_;
  }

  std::size_t active() {
    std::size_t n = 0;
    if (auto all = node_->reads()->experiment_standings())
      for (const auto& row : *all)
        n += !terminal(row.state) && row.state != experiment_state::paused;
    return n;
  }

  template <commands::command C>
  result<value> command(C what) {
    return command(C::is.name, commands::write(std::move(what)));
  }
  result<value> command(const std::string& name, value fields) {
    auto box = std::make_shared<mailbox<result<value>>>(); // the answer may come after the limit
    node_->commands().call(host_user(), name, std::move(fields),
                           [box](result<value> x) { box->put(std::move(x)); });
    if (auto got = box->take(milliseconds(90'000)))
      return std::move(*got);
    return error{errc::timeout, name + " was not answered in time"};
  }

  named_numbers measures() {
    auto out = node_->measures();
    std::size_t all = 0;
    if (auto rows = node_->reads()->experiment_standings())
      all = rows->size();
    out.emplace_back("experiments", static_cast<double>(all));
    out.emplace_back("experiments_active", static_cast<double>(active()));
    out.emplace_back("facts", static_cast<double>(node_->reads()->sequence()));
    return out;
  }

  answer http(const std::string& method, const std::string& target, const header_list& headers,
              std::string body, bool as_host, const std::function<bool(std::string_view)>& piece);

  settings how_;
  std::unique_ptr<node::node> node_;
  std::unique_ptr<observer> observer_;
  std::atomic<observer*> watching_{nullptr};
  std::shared_ptr<api::service> service_;
  api::identity admin_;
  std::thread guard_;
  std::mutex mutex_, stopping_;
  std::condition_variable calls_over_;
  int calls_ = 0;
  std::atomic<bool> gone_{false};
  std::optional<fault> died_;
};

answer engine::inside::http(const std::string& method, const std::string& target, const header_list& headers,
                            std::string body, bool as_host,
                            const std::function<bool(std::string_view)>& piece) {
  const auto is = [](std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return std::tolower(x) == std::tolower(y); });
  };
  api::request_head head{method, target, {}};
  for (const auto& [name, text] : headers) {
    auto& h = head.headers;
    for (auto [known, field] : {std::pair{"authorization", &h.authorization},
                                {"cookie", &h.cookie},
                                {"grpc-metadata-x-user-token", &h.user_token},
                                {"grpc-metadata-x-allocation-token", &h.allocation_token},
                                {"accept", &h.accept},
                                {"content-type", &h.content_type},
                                {"last-event-id", &h.last_event_id},
                                {"host", &h.host},
                                {"origin", &h.origin},
                                {"sec-fetch-site", &h.fetch_site},
                                {"if-none-match", &h.if_none_match},
                                {"accept-encoding", &h.accept_encoding}})
      if (is(name, known))
        *field = text;
  }
  auto box = std::make_shared<mailbox<std::shared_ptr<api::response>>>();
  const auto put = [box](api::response x) { box->put(std::make_shared<api::response>(std::move(x))); };
  milliseconds patience(60'000);
  auto admitted = service_->admit(std::move(head), as_host ? &admin_ : nullptr);
  if (auto* refused = std::get_if<api::response>(&admitted)) {
    put(std::move(*refused));
  } else {
    auto& in = std::get<api::admission>(admitted);
    patience = in.patience();
    if (body.size() > in.body_bytes())
      return {413, "application/json", R"({"error":{"message":"the body is too large for this route"}})", {}};
    service_->run(std::move(in), std::move(body), api::reply(put));
  }
  auto got = box->take(patience);
  if (!got)
    return {504, "application/json", R"({"error":{"message":"no answer in time"}})", {}};
  auto& x = **got;
  answer out{x.status, x.content_type, std::move(x.body), std::move(x.headers)};
  if (is(method, "HEAD"))
    out.body.clear();
  if (!x.stream || is(method, "HEAD"))
    return out;
  for (;;) {
    const auto seen = observer_->commits();
    auto next = x.stream->next(std::chrono::floor<duration>(std::chrono::system_clock::now()));
    if (!next) {
      if (!piece)
        return {500, "application/json", to_json({{"error", {{"message", next.error().what}}}}), {}};
      return out;
    }
    if (!next->bytes.empty()) {
      if (piece && !piece(next->bytes))
        return out;
      if (!piece && out.body.size() + next->bytes.size() > most_gathered)
        return {507,
                "application/json",
                R"({"error":{"message":"the answer is too large to be gathered; take it in pieces"}})",
                {}};
      if (!piece)
        out.body += next->bytes;
    }
    if (next->last || gone_ || (!piece && next->bytes.empty()))
      return out;
    if (next->bytes.empty())
      observer_->wait_for_commit_after(seen, next->pause ? std::chrono::ceil<milliseconds>(*next->pause)
                                                         : milliseconds(500));
  }
}

engine::engine() = default;
engine::~engine() {
  if (inside_)
    inside_->stop(false, milliseconds(0));
}

std::unique_ptr<engine> engine::open(settings how, fault& why) {
  std::unique_ptr<engine> out(new engine);
  out->inside_ = std::make_unique<inside>(std::move(how));
  if ((why = out->inside_->open())) {
    out->inside_->stop(false, milliseconds(0));
    return nullptr;
  }
  return out;
}

bool engine::stopped() const { return inside_->gone_; }
fault engine::stop(bool drain, milliseconds limit) { return inside_->stop(drain, limit); }

fault engine::ready(milliseconds limit) {
  inside::visit here(*inside_);
  if (!here)
    return gone;
  if (auto why = inside_->dead())
    return *why;
  auto ok = inside_->node_->wait_registered(limit);
  return ok ? fault{} : fault_of(ok.error());
}

std::uint64_t engine::submit(const submission& what, fault& why) {
  inside::visit here(*inside_);
  if (!here)
    return why = gone, 0;
  commands::experiment_create order;
  order.config = what.config;
  order.config_name = what.config_name;
  order.key = what.key;
  if (!what.context.empty()) {
    order.context.held = pack(what.context, why);
    if (why)
      return 0;
  }
  auto made = inside_->command(std::move(order));
  if (!made)
    return why = fault_of(made.error()), 0;
  return made->value("id", std::uint64_t{0});
}

fault engine::known(std::uint64_t experiment) const {
  inside::visit here(*inside_);
  if (!here)
    return gone;
  auto row = inside_->node_->reads()->experiment({experiment});
  if (!row && row.error().code == errc::not_found)
    return {"not_found", "there is no experiment " + std::to_string(experiment), ""};
  return row ? fault{} : fault_of(row.error());
}

template <class Order>
fault engine::order(std::uint64_t experiment) {
  inside::visit here(*inside_);
  if (!here)
    return gone;
  auto done = inside_->command(Order{{experiment}});
  return done ? fault{} : fault_of(done.error());
}
fault engine::cancel(std::uint64_t experiment) { return order<commands::experiment_cancel>(experiment); }
fault engine::kill(std::uint64_t experiment) { return order<commands::experiment_kill>(experiment); }
fault engine::pause(std::uint64_t experiment) { return order<commands::experiment_pause>(experiment); }
fault engine::activate(std::uint64_t experiment) { return order<commands::experiment_activate>(experiment); }

fault engine::best_of(std::uint64_t experiment, best& out) const {
  inside::visit here(*inside_);
  if (!here)
    return gone;
  auto& reads = *inside_->node_->reads();
  auto row = reads.experiment({experiment});
  if (!row)
    return fault_of(row.error());
  if (!row->best_trial)
    return {"not_found", "no trial of experiment " + std::to_string(experiment) + " has validated yet", ""};
  auto trial = reads.trial(row->best_trial);
  if (!trial)
    return fault_of(trial.error());
  out = {row->best_trial.value, row->best_metric, to_json(trial->hparams), ""};
  if (auto saved = api::best_checkpoint(*trial, reads); saved && *saved)
    out.checkpoint = folder_of((*saved)->saved);
  return {};
}

void engine::on_metric(std::uint64_t experiment, std::function<void(const reported&)> fn) {
  inside::visit here(*inside_);
  if (here)
    inside_->observer_->on_metric({experiment}, std::move(fn));
}

void engine::on_every_metric(std::function<void(std::uint64_t, const reported&)> fn) {
  inside::visit here(*inside_);
  if (!here)
    return;
  auto* watching = inside_->observer_.get();
  auto& reads = *inside_->node_->reads();
  const auto tell = [fn](experiment_id id) { return [fn, id](const reported& x) { fn(id.value, x); }; };
  // For experiments that are open now, what is reported from now on; for later ones, everything.
  if (auto rows = reads.experiment_standings())
    for (const auto& row : *rows)
      if (!terminal(row.state))
        watching->on_metric(row.id, tell(row.id), false);
  watching->on_fact([watching, tell](std::uint64_t, const std::string& entity, const std::string& type,
                                     const std::string& json) {
    if (entity != "cluster" || type != "experiment_created")
      return;
    if (auto x = parse_json(json); x && x->value("id", std::uint64_t{0}))
      watching->on_metric({x->value("id", std::uint64_t{0})}, tell({x->value("id", std::uint64_t{0})}));
  });
}

ending engine::wait(std::uint64_t experiment, std::optional<milliseconds> limit, std::string& why) {
  const auto until = limit ? std::optional(std::chrono::steady_clock::now() + *limit) : std::nullopt;
  for (;;) {
    inside::visit here(*inside_);
    if (!here)
      return why = gone.message, ending::failed;
    if (auto died = inside_->dead())
      return why = died->message, ending::failed;
    auto over = inside_->observer_->ended({experiment});
    if (over) {
      why = over->why;
      return over->state == experiment_state::completed  ? ending::completed
             : over->state == experiment_state::canceled ? ending::canceled
                                                         : ending::failed;
    }
    const auto now = std::chrono::steady_clock::now();
    if (until && now >= *until)
      return ending::open;
    // Waits in short steps, because stop() waits for callers.
    auto step = milliseconds(100);
    if (until)
      step = std::min(step, std::chrono::ceil<milliseconds>(*until - now));
    inside_->observer_->wait_for_commit(step);
  }
}

void engine::on_fact(
  std::function<void(std::uint64_t, const std::string&, const std::string&, const std::string&)> fn) {
  inside::visit here(*inside_);
  if (here)
    inside_->observer_->on_fact(std::move(fn));
}

answer engine::http(const std::string& method, const std::string& target, const header_list& headers,
                    std::string body, bool as_host, const std::function<bool(std::string_view)>& piece) {
  inside::visit here(*inside_);
  if (!here)
    return {503, "application/json", R"({"error":{"message":"the node has stopped"}})", {}};
  auto out = inside_->http(method, target, headers, std::move(body), as_host, piece);
  api::for_common_headers(target, [&](const char* key, const char* text) {
    std::erase_if(out.headers, [&](const auto& one) { return one.first == key; });
    out.headers.emplace_back(key, text);
  });
  return out;
}

template <commands::command... Cs>
static bool is_one_of(commands::list<Cs...>, std::string_view name) {
  return ((name == Cs::is.name) || ...);
}

bool engine::takes_command(std::string_view name) {
  const auto* known = commands::find(name);
  if (!known || known->is.right.what == authority::action::report)
    return false;
  if (is_one_of(commands::catalogue_commands{}, name)) // the node makes these itself, from routes and files
    return false;
  switch (known->is.by) {
  case commands::taker::cluster:
  case commands::taker::configuration:
  case commands::taker::desk:
    return name != commands::shell_trace::is.name && name != commands::shell_follow::is.name; // streams
  default:
    return false;
  }
}

answer engine::command(const std::string& name, std::string_view fields) {
  inside::visit here(*inside_);
  if (!here)
    return {503, "application/json", R"({"error":{"message":"the node has stopped"}})", {}};
  auto run = [&]() -> result<value> {
    if (!takes_command(name))
      return error{errc::not_found, "no command '" + name.substr(0, 100) + "'"};
    auto given = fields.empty() ? result<value>(value::object()) : parse_msgpack(fields);
    if (!given)
      return error{errc::invalid, "the fields are not msgpack: " + given.error().what};
    auto checked = commands::find(name)->checked(std::move(*given), {.known_only = true});
    return checked ? inside_->command(name, std::move(*checked)) : checked.error();
  };
  const auto done = run();
  auto shaped = done ? api::json(*done) : api::failure(done.error());
  return {shaped.status, shaped.content_type, std::move(shaped.body), {}};
}

void engine::log(int level, std::string_view line) const {
  if (inside_->how_.log)
    inside_->how_.log(level, line);
}

std::string engine::url() const {
  inside::visit here(*inside_);
  return here ? inside_->node_->url() : std::string();
}
named_numbers engine::measures() const {
  inside::visit here(*inside_);
  return here ? inside_->measures() : named_numbers{};
}
caf::actor_system* engine::actors() const {
  inside::visit here(*inside_);
  return here ? &inside_->node_->actors() : nullptr;
}

bool engine::owns_actors() const { return !inside_->how_.actors; }

std::string config_of(const parts& from, fault& why) {
  value config = value::object();
  if (!from.more.empty()) {
    auto read = config::read_document(from.more, "config");
    if (!read.faults.empty()) {
      why = {"invalid", config::render(read.faults.front(), from.more), ""};
      return {};
    }
    config = config::to_value(read.root);
    if (!config.is_object()) {
      why = {"invalid", "config is not a mapping of keys", "give an experiment's configuration"};
      return {};
    }
  }
  const bool bare = from.more.empty();
  if (!from.entrypoint.empty())
    config["entrypoint"] = from.entrypoint;
  if (!from.name.empty())
    config["name"] = from.name;
  if (!from.hparams_json.empty()) {
    auto given = parse_json(from.hparams_json);
    if (!given) {
      why = {"invalid", "hparams: " + given.error().what,
             "a range is JSON: {\"type\": \"log\", \"base\": 10, \"minval\": -4, \"maxval\": -1}"};
      return {};
    }
    for (auto& [key, x] : given->items())
      config["hyperparameters"][key] = x;
  }
  if (bare || !config.contains("searcher"))
    config["searcher"] = {
      {"name", "single"}, {"metric", from.metric}, {"smaller_is_better", from.smaller_is_better}};
  if (from.slots)
    config["resources"]["slots_per_trial"] = *from.slots;
  if (from.max_restarts)
    config["max_restarts"] = *from.max_restarts;
  return to_json(config, 2) + "\n";
}

std::string pack(const std::string& context, fault& why) {
  auto packed = workers::pack_context(context);
  if (!packed) {
    why = fault_of(packed.error());
    return {};
  }
  return std::move(packed->tar);
}

void add_messages(caf::actor_system_config& to) {
  add_node_messages(to);
  add_shell_messages(to);
}

} // namespace troupe::embedding
