#include "runtime/client/server.hpp"

#include "runtime/client/whole_lines.hpp"

namespace troupe::client {
namespace {

std::string short_text(std::string_view body) {
  std::string text;
  for (unsigned char c : body.substr(0, 80))
    text += c < 0x20 || c >= 0x7f ? ' ' : static_cast<char>(c);
  return text + (body.size() > 80 ? "..." : "");
}

std::string text_in(const value& x, const char* key) {
  auto at = x.find(key);
  return at != x.end() && at->is_string() ? at->get<std::string>() : "";
}

errc code_of(int status, const std::string& reason) {
  switch (status) {
  case 400:
    return reason == "FailedPrecondition" ? errc::conflict : errc::invalid;
  case 401:
    return errc::unauthorized;
  case 403:
    return errc::denied;
  case 404:
    return errc::not_found;
  case 408:
  case 504:
    return errc::timeout;
  case 409:
    return errc::conflict;
  case 413:
    return errc::invalid;
  case 429:
  case 503:
    return errc::busy;
  case 501:
    return errc::unsupported;
  default:
    return reason == "DataLoss" ? errc::corrupt : errc::internal;
  }
}

std::string as_curl(const request& what) {
  std::string text = "curl -X " + what.method;
  for (const auto& header : what.headers)
    if (!header.starts_with("Authorization:"))
      text += " -H '" + header + "'";
  if (!what.body.empty())
    text += what.body.size() <= 400 && what.body.find('\'') == std::string::npos ? " -d '" + what.body + "'"
                                                                                 : " --data-binary @BODY";
  return text + " '" + what.url + "'";
}

} // namespace

server_options options_from(const environment& env) {
  server_options options;
  if (auto user = env("TROUPE_USER"); !user.empty())
    options.who.user = user;
  options.who.password = env("TROUPE_PASSWORD");
  options.who.token = env("TROUPE_TOKEN");
  options.ca_file = env("TROUPE_CA_FILE");
  return options;
}

server::server(server_address where, server_options options)
    : where_(std::move(where)), options_(std::move(options)), transport_{.ca_file = options_.ca_file},
      http_(transport_), token_(options_.who.token) {}

bool server::find_again() {
  if (where_.data_dir.empty())
    return false;
  auto lock = read_lock(where_.data_dir);
  if (!lock || lock->url.empty() || !alive(*lock) || (lock->url == where_.url && lock->pid == where_.pid))
    return false;
  where_.url = lock->url;
  where_.pid = lock->pid;
  return true;
}

error server::placed(error why) const {
  if (why.code == errc::unreachable || why.code == errc::timeout)
    why.what = where_.url + ": " + why.what;
  return why;
}

error server::fault_of(const reply& answer) const {
  auto body = parse_json(answer.body);
  if (body && body->is_object()) {
    auto inner = body->find("error");
    std::string text, reason;
    if (inner != body->end() && inner->is_object()) {
      text = text_in(*inner, "error");
      reason = text_in(*inner, "reason");
    }
    if (text.empty())
      text = text_in(*body, "message");
    if (!text.empty())
      return {code_of(answer.status, reason), text};
  }
  return {errc::unreachable, where_.url + " does not answer like a Troupe server (HTTP " +
                               std::to_string(answer.status) + ", '" + short_text(answer.body) + "')"};
}

request server::make(const std::string& method, const std::string& path, const query& with) const {
  request what;
  what.method = method;
  what.url = path;
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [key, text] : with) {
    what.url += separator + percent_encode(key) + "=" + percent_encode(text);
    separator = '&';
  }
  what.timeout = options_.timeout;
  return what;
}

/// `what.url` is the path here; the address may change between tries.
result<reply> server::send(request what, const std::function<bool(std::string_view)>& sink) {
  auto path = what.url;
  for (bool again = false;; again = true) {
    auto now = what;
    now.url = where_.url + path;
    if (!token_.empty())
      now.headers.push_back("Authorization: Bearer " + token_);
    if (options_.trace)
      options_.trace(as_curl(now));
    auto answer = http_.send(now, sink);
    if (!answer)
      return placed(answer.error());
    if (answer->status == 200 || answer->status == 303)
      return answer;
    if (answer->status != 401 || again)
      return fault_of(*answer);
    if (auto ok = log_in(); !ok)
      return ok.error();
  }
}

/// Who gave a token is not logged in by name where the token is refused, as that is another user.
result<void> server::log_in() {
  if (!options_.who.token.empty())
    return error{errc::unauthorized, "the token in TROUPE_TOKEN is not valid, or not any more"};
  request what;
  what.method = "POST";
  what.url = where_.url + "/api/v1/auth/login";
  what.body = to_json({{"username", options_.who.user}, {"password", options_.who.password}});
  what.timeout = options_.timeout;
  auto answer = http_.send(what);
  if (!answer)
    return placed(answer.error());
  if (answer->status != 200) {
    auto why = fault_of(*answer);
    if (why.code != errc::unreachable && why.code != errc::internal)
      why = {errc::unauthorized, "not logged in as '" + options_.who.user + "': " + why.what};
    return why;
  }
  auto body = parse_json(answer->body);
  token_ = body && body->is_object() ? text_in(*body, "token") : "";
  if (token_.empty())
    return error{errc::unreachable,
                 where_.url + " does not answer like a Troupe server (no token in its login)"};
  return {};
}

result<snapshot> server::get(const std::string& path, const query& with) {
  auto answer = send(make("GET", path, with));
  if (!answer)
    return answer.error();
  auto body = parse_json(answer->body);
  if (!body)
    return error{errc::unreachable,
                 where_.url + " does not answer like a Troupe server ('" + short_text(answer->body) + "')"};
  snapshot got{*std::move(body), std::nullopt};
  if (auto at = answer->headers.find("troupe-sequence"); at != answer->headers.end())
    got.sequence = std::strtoull(at->second.c_str(), nullptr, 10);
  return got;
}

result<value> server::post(const std::string& path, const value& body) { return change("POST", path, body); }

result<value> server::change(const std::string& method, const std::string& path, const value& body) {
  auto what = make(method, path, {});
  if (!body.empty())
    what.body = to_json(body);
  auto answer = send(std::move(what));
  if (!answer)
    return answer.error();
  auto got = parse_json(answer->body);
  if (!got)
    return error{errc::unreachable,
                 where_.url + " does not answer like a Troupe server ('" + short_text(answer->body) + "')"};
  return *std::move(got);
}

/// One line of JSON, then the bytes of a tar.
result<value> server::post_framed(const std::string& path, const value& body, const std::string& tar) {
  auto post = make("POST", path, {});
  post.headers = {"Content-Type: application/x-troupe-experiment"};
  post.body = to_json(body);
  post.body += '\n';
  post.body += tar;
  post.timeout =
    std::max<std::chrono::milliseconds>(options_.timeout, std::chrono::minutes(5)); // up to 95 MB go over
  auto answer = send(std::move(post));
  if (!answer)
    return answer.error();
  auto got = parse_json(answer->body);
  if (!got || !got->is_object() || !got->contains("id"))
    return error{errc::unreachable,
                 where_.url + " does not answer like a Troupe server ('" + short_text(answer->body) + "')"};
  return got;
}

result<experiment_id> server::create(const new_experiment& what, std::vector<std::string>* warnings) {
  auto got = post_framed("/troupe/v1/experiments",
                         {{"config", what.config},
                          {"configName", what.config_name},
                          {"activate", what.activate},
                          {"key", what.key},
                          {"name", what.name}},
                         what.context);
  if (!got)
    return got.error();
  const auto& id = (*got)["id"];
  if (!id.is_number_unsigned())
    return error{errc::unreachable, where_.url + " does not answer like a Troupe server"};
  if (const auto said = got->find("warnings"); warnings && said != got->end() && said->is_array())
    for (const auto& one : *said)
      if (one.is_string())
        warnings->push_back(one.get<std::string>());
  return experiment_id{id.get<std::uint64_t>()};
}

result<value> server::create_task(const value& body, const std::string& context) {
  return post_framed("/troupe/v1/tasks", body, context);
}

result<value> server::list(const std::string& path, const std::string& key, query with) {
  constexpr std::size_t page = 1000;
  auto rows = value::array();
  for (;;) {
    auto paged = with;
    paged.emplace_back("offset", std::to_string(rows.size()));
    paged.emplace_back("limit", std::to_string(page));
    auto got = get(path, paged);
    if (!got)
      return got.error();
    auto& body = got->body;
    if (!body.is_object() || !body.contains(key) || !body[key].is_array())
      return error{errc::unreachable, where_.url + path + " has no list '" + key + "' in its answer"};
    auto count = body[key].size();
    for (auto& row : body[key])
      rows.push_back(std::move(row));
    std::size_t total = rows.size();
    if (auto at = body.find("pagination"); at != body.end() && at->is_object())
      total = at->value("total", rows.size());
    if (count == 0 || rows.size() >= total)
      return rows;
  }
}

result<void> server::lines(const std::string& path, const query& with, bool follow,
                           const std::function<bool(value)>& each, const std::function<bool()>& stop) {
  // A quiet follower waits for days; TCP itself notices a dead peer no sooner than the next byte.
  auto quiet = follow ? std::chrono::milliseconds(std::chrono::hours(24 * 365)) : options_.timeout;
  for (bool again = false;; again = true) {
    auto stream = open(path, with, {}, quiet);
    if (!stream)
      return stream.error();
    std::string bytes;
    bool open = true, refused = false;
    while (open) {
      if (stop && stop())
        return {};
      auto more = (*stream)->read(bytes, std::chrono::milliseconds(100));
      if (!more)
        return placed(more.error());
      open = *more;
      if ((*stream)->status() != 0 && (*stream)->status() != 200) {
        refused = true;
        continue;
      }
      result<void> fine;
      bool goes_on = true;
      take_whole_lines(bytes, !open, [&](std::string_view line) {
        if (line.empty())
          return true;
        auto one = parse_json(line);
        if (!one)
          fine = error{errc::unreachable,
                       where_.url + " does not answer like a Troupe server ('" + short_text(line) + "')"};
        else if (one->is_object() && one->contains("error"))
          fine = error{errc::internal, text_in((*one)["error"], "message")};
        else
          goes_on = each(*std::move(one));
        return goes_on && fine;
      });
      if (!fine || !goes_on)
        return fine;
    }
    if (!refused)
      return {};
    if ((*stream)->status() != 401 || again)
      return fault_of({(*stream)->status(), bytes, {}});
    if (auto ok = log_in(); !ok)
      return ok;
  }
}

result<void> server::download(const std::string& path, const query& with,
                              const std::function<bool(std::string_view)>& sink) {
  auto answer = send(make("GET", path, with), sink);
  return answer ? result<void>{} : answer.error();
}

result<std::unique_ptr<http_stream>> server::open(const std::string& path, const query& with,
                                                  std::vector<std::string> headers,
                                                  std::chrono::milliseconds quiet_limit) {
  if (token_.empty())
    if (auto ok = log_in(); !ok)
      return ok.error();
  auto what = make("GET", path, with);
  what.url = where_.url + what.url;
  what.headers = std::move(headers);
  what.headers.push_back("Authorization: Bearer " + token_);
  if (options_.trace)
    options_.trace(as_curl(what));
  return std::make_unique<http_stream>(what, transport_, quiet_limit);
}

/// Services that are open to strangers, as those of shells, need no login: ssh runs where none is set.
result<std::unique_ptr<http_upgrade>> server::tunnel(const std::string& service) {
  for (bool again = false;; again = true) {
    auto what = make("GET", "/proxy/" + percent_encode(service) + "/", {});
    what.url = where_.url + what.url;
    if (!token_.empty())
      what.headers.push_back("Authorization: Bearer " + token_);
    reply refused;
    auto out = http_upgrade::open(what, transport_, "troupe-tunnel", refused);
    if (out)
      return out;
    if (refused.status == 0)
      return placed(out.error());
    if (refused.status != 401 || again)
      return fault_of(refused);
    if (auto ok = log_in(); !ok)
      return ok.error();
  }
}

result<std::string> server::page_of(const std::string& task) {
  auto answer = send(make("GET", "/det/interactive/" + task, {}));
  if (!answer)
    return answer.error();
  const auto where = answer->headers.find("location");
  return where != answer->headers.end()
           ? result<std::string>(where->second)
           : error{errc::unreachable, where_.url + " does not answer like a Troupe server"};
}

result<void> server::shut_down() {
  auto answer = post("/troupe/v1/shutdown");
  if (answer)
    return {};
  if (answer.error().code != errc::denied || options_.who.user == "admin")
    return answer.error();
  auto as_admin = options_;
  as_admin.who = {"admin", options_.who.password, ""};
  return server(where_, as_admin).shut_down();
}

} // namespace troupe::client
