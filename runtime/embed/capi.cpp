#include "runtime/embed/capi.hpp"
#include "model/value.hpp"
#include "runtime/embed/engine.hpp"

#include <cstdlib>
#include <cstring>
#include <set>

struct troupe_node {
  std::unique_ptr<troupe::embedding::engine> held;
};

namespace {

using troupe::value;
using troupe::embedding::fault;

thread_local std::string last_error;

void fail(std::string why) { last_error = std::move(why); }
void fail(const fault& why) { last_error = why.message + (why.hint.empty() ? "" : "\nhint: " + why.hint); }

/// The members of the options, each used once; a member that is left is a fault.
class option_reader {
public:
  explicit option_reader(value all) : all_(std::move(all)) {}
  std::string text(const char* key, std::string otherwise = {}) {
    auto x = take(key);
    if (x.is_null())
      return otherwise;
    if (!x.is_string())
      return wrong(key, "a text"), otherwise;
    return x.get<std::string>();
  }
  int number(const char* key) {
    auto x = take(key);
    if (x.is_null())
      return 0;
    if (!x.is_number_integer() || x.get<std::int64_t>() < 0 || x.get<std::int64_t>() > 100'000)
      return wrong(key, "a whole number from 0 to 100000"), 0;
    return x.get<int>();
  }
  bool flag(const char* key, bool usual) {
    auto x = take(key);
    if (!x.is_null() && !x.is_boolean())
      return wrong(key, "true or false"), usual;
    return x.is_null() ? usual : x.get<bool>();
  }
  std::string choice(const char* key, std::initializer_list<const char*> known) {
    auto x = text(key, *known.begin());
    std::string all;
    for (auto* one : known) {
      if (x == one)
        return x;
      all += (all.empty() ? "" : " or ") + std::string(one);
    }
    return wrong(key, all), x;
  }
  std::string fault() {
    if (bad_.empty() && !all_.empty())
      bad_ = "the option '" + all_.begin().key() +
             "' is not known\nhint: data_dir, http, cpu_slots, store, python, name, shared_rocksdb, web";
    return bad_;
  }

private:
  value take(const char* key) {
    auto at = all_.find(key);
    if (at == all_.end())
      return nullptr;
    auto x = std::move(*at);
    all_.erase(at);
    return x;
  }
  void wrong(const char* key, const std::string& wanted) {
    if (bad_.empty())
      bad_ = std::string("the option '") + key + "' has to be " + wanted;
  }
  value all_;
  std::string bad_;
};

troupe_node* open(const char* options) {
  if (!options)
    return fail("no options are given\nhint: {\"data_dir\": \"FOLDER\"}"), nullptr;
  auto read = troupe::parse_json(options);
  if (!read || !read->is_object())
    return fail("the options are not a JSON object" + (read ? std::string() : ": " + read.error().what) +
                "\nhint: {\"data_dir\": \"FOLDER\"}"),
           nullptr;
  option_reader o(std::move(*read));
  troupe::embedding::settings how;
  how.data_dir = o.text("data_dir");
  if (auto http = o.text("http", "off"); http != "off")
    how.listen = http;
  how.cpu_slots = o.number("cpu_slots");
  how.in_memory = o.choice("store", {"disk", "memory"}) == "memory";
  how.python = o.text("python");
  how.name = o.text("name");
  how.shared_rocksdb = o.flag("shared_rocksdb", false);
  how.web = o.flag("web", true);
  if (auto why = o.fault(); !why.empty())
    return fail(why), nullptr;
  if (how.data_dir.empty())
    return fail("the option 'data_dir' is missing\nhint: a folder that is made if it is missing"), nullptr;
  how.log = [](int, std::string_view line) {
    std::fprintf(stderr, "troupe: %.*s\n", static_cast<int>(line.size()), line.data());
  };
  fault why;
  auto held = troupe::embedding::engine::open(std::move(how), why);
  if (!held)
    return fail(why), nullptr;
  if ((why = held->ready(std::chrono::seconds(60))))
    return fail(why), nullptr;
  return new troupe_node{std::move(held)};
}

/// Turns a stream of JSON lines, or of server-sent events, into an array.
value lines_of(std::string_view body) {
  auto out = value::array();
  while (!body.empty()) {
    const auto end = std::min(body.find('\n'), body.size());
    auto line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.starts_with("data: "))
      line.remove_prefix(6);
    if (auto x = troupe::parse_json(line); x && !line.empty())
      out.push_back(std::move(*x));
  }
  return out;
}

value body_of(const troupe::embedding::answer& got) {
  if (got.type.starts_with("text/event-stream") || got.type.starts_with("application/x-ndjson"))
    return lines_of(got.body);
  if (auto x = troupe::parse_json(got.body))
    return std::move(*x);
  if (got.type.starts_with("application/json") && got.body.find('\n') != std::string::npos)
    return lines_of(got.body);
  return got.type.starts_with("text/") || got.body.empty()
           ? value(got.body)
           : value::binary(std::vector<std::uint8_t>(got.body.begin(), got.body.end()));
}

std::string complaint(const value& body, int status) {
  if (body.is_object())
    if (auto at = body.find("error");
        at != body.end() && at->is_object() && at->contains("error") && (*at)["error"].is_string())
      return (*at)["error"].get<std::string>();
  if (body.is_object() && body.contains("message") && body["message"].is_string())
    return body["message"].get<std::string>();
  if (body.is_object())
    if (auto at = body.find("error");
        at != body.end() && at->is_object() && at->contains("message") && (*at)["message"].is_string())
      return (*at)["message"].get<std::string>();
  return "the answer's status is " + std::to_string(status);
}

int give(const troupe::embedding::answer& got, void** out, size_t* out_size) {
  const auto answer = body_of(got);
  if (got.status >= 400)
    fail(complaint(answer, static_cast<int>(got.status)));
  if (out && out_size) {
    const auto bytes = troupe::to_msgpack(answer);
    *out = std::malloc(std::max<std::size_t>(bytes.size(), 1));
    if (!*out)
      return fail("out of memory"), 500;
    std::memcpy(*out, bytes.data(), bytes.size());
    *out_size = bytes.size();
  }
  return static_cast<int>(got.status);
}

int call(troupe_node* node, const char* request, const void* in, size_t in_size, void** out,
         size_t* out_size) {
  if (out)
    *out = nullptr;
  if (out_size)
    *out_size = 0;
  if (!node || !request)
    return fail("no node or no request is given"), 400;
  std::string_view line = request;
  if (troupe::embedding::engine::takes_command(line))
    return give(node->held->command(std::string(line), {static_cast<const char*>(in), in ? in_size : 0}), out,
                out_size);
  const auto blank = line.find(' ');
  if (blank == line.npos || blank == 0 || line.substr(blank + 1).empty() || line[blank + 1] != '/')
    return fail("'" + std::string(line.substr(0, 100)) +
                "' is not a request\nhint: \"GET /api/v1/experiments\", or a command as \"status\""),
           400;
  const std::string method(line.substr(0, blank)), target(line.substr(blank + 1));
  std::string body, type = "application/json";
  if (in_size > 0 && in) {
    auto x = troupe::parse_msgpack({static_cast<const char*>(in), in_size});
    if (!x)
      return fail("the body is not msgpack: " + x.error().what), 400;
    std::string context;
    if (method == "POST" && target == "/troupe/v1/experiments" && x->is_object() &&
        x->contains("context_dir")) {
      if (!(*x)["context_dir"].is_string())
        return fail("context_dir has to be a text: a folder or file of this host"), 400;
      fault why;
      context = troupe::embedding::pack((*x)["context_dir"].get<std::string>(), why);
      if (why)
        return fail(why), 400;
      x->erase("context_dir");
      type = "application/x-troupe-experiment";
      context.insert(0, "\n");
    }
    body = troupe::to_json(*x) + context;
  }
  return give(node->held->http(method, target, {{"content-type", type}}, std::move(body), true, {}), out,
              out_size);
}

int subscribe(troupe_node* node, const char* topics, void (*heard)(const void*, size_t, void*), void* with) {
  if (!node || !topics || !heard)
    return fail("no node, no topics or no function is given"), -1;
  std::set<std::string> wanted;
  for (std::string_view rest = topics; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    auto word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    while (word.starts_with(' '))
      word.remove_prefix(1);
    while (word.ends_with(' '))
      word.remove_suffix(1);
    if (word != "experiment" && word != "trial" && word != "allocation" && word != "metric" && word != "all")
      return fail("the topic '" + std::string(word.substr(0, 100)) +
                  "' is not known\nhint: experiment, trial, allocation, metric, all"),
             -1;
    wanted.insert(std::string(word));
  }
  if (wanted.empty())
    return fail("no topic is given\nhint: experiment, trial, allocation, metric, all"), -1;
  if (wanted.contains("metric"))
    node->held->on_every_metric(
      [heard, with](std::uint64_t experiment, const troupe::embedding::reported& r) {
        const auto bytes = troupe::to_msgpack({{"type", "metric"},
                                               {"experiment", experiment},
                                               {"trial", r.trial},
                                               {"step", r.step},
                                               {"name", r.name},
                                               {"value", r.value},
                                               {"validation", r.validation}});
        heard(bytes.data(), bytes.size(), with);
      });
  if (wanted.size() > wanted.count("metric"))
    node->held->on_fact([heard, with, wanted](std::uint64_t, const std::string& entity, const std::string&,
                                              const std::string& json) {
      // The creation or removal of an experiment is a fact of the cluster's stream.
      const auto kind = entity == "cluster" ? std::string("experiment") : entity.substr(0, entity.find('/'));
      if (!wanted.contains("all") && !wanted.contains(kind))
        return;
      if (auto x = troupe::parse_json(json)) {
        const auto bytes = troupe::to_msgpack(*x);
        heard(bytes.data(), bytes.size(), with);
      }
    });
  return 0;
}

/// Catches exceptions: none leaves the library.
template <class T, class F>
T guarded(T otherwise, F call) noexcept {
  try {
    return call();
  } catch (const std::exception& thrown) {
    try {
      fail(std::string(thrown.what()));
    } catch (...) {
    }
  } catch (...) {
  }
  return otherwise;
}

} // namespace

namespace troupe::embedding::c {

troupe_node* open_json(const char* options) noexcept {
  return guarded<troupe_node*>(nullptr, [&] { return open(options); });
}
int call_node(troupe_node* node, const char* request, const void* in, size_t in_size, void** out,
              size_t* out_size) noexcept {
  return guarded<int>(500, [&] { return call(node, request, in, in_size, out, out_size); });
}
int subscribe_to(troupe_node* node, const char* topics, void (*heard)(const void*, size_t, void*),
                 void* with) noexcept {
  return guarded<int>(-1, [&] { return subscribe(node, topics, heard, with); });
}
void close_node(troupe_node* node) noexcept {
  guarded<int>(0, [&] { return delete node, 0; });
}
const char* why() noexcept { return last_error.c_str(); }

} // namespace troupe::embedding::c
