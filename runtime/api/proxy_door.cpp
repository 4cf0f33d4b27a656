#include "runtime/api/proxy_door.hpp"

#include "model/names.hpp"
#include "runtime/api/errors.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/api/veil.hpp"
#include "runtime/proxy/frames.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

using proxy::opening;

constexpr std::size_t most_strangers = 64;        ///< connections at once to a service without a login
constexpr std::chrono::seconds stranger_says{10}; ///< time in which a stranger has to send the first byte
constexpr const char* code_name = "troupe_code";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<'   ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  return out;
}

response plain_page(unsigned status, const std::string& text, const std::string& head = {}) {
  response out;
  out.status = status;
  out.content_type = "text/html; charset=utf-8";
  out.body =
    "<!doctype html><meta charset=utf-8><title>Troupe</title>" + head + "<p>" + html_escaped(text) + "</p>\n";
  out.headers = {{"Cache-Control", "no-store"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Content-Security-Policy", "default-src 'none'"}};
  return out;
}

response refused(const error& why, bool as_page) {
  return as_page ? plain_page(http_of(why.code).status, why.what) : failure(why);
}

response see_other(const std::string& where) {
  response out;
  out.status = 303;
  out.content_type = "text/plain";
  out.headers = {{"Location", where}, {"Cache-Control", "no-store"}, {"Referrer-Policy", "no-referrer"}};
  return out;
}

std::string path_and_query(const std::string& path, const std::string& query) {
  return query.empty() ? path : path + "?" + query;
}

std::string host_alone(std::string_view text) {
  const auto bracket = text.find(']');
  return lower(text.substr(0, text.find(':', bracket == text.npos ? 0 : bracket)));
}

/// The token of "token T", as Jupyter's clients send it; empty for another scheme.
std::string_view own_scheme(std::string_view authorization) {
  return lower(authorization.substr(0, 6)) == "token " ? authorization.substr(6) : std::string_view();
}

/// Whether the token has the form of a credential of Troupe, valid or not.
bool is_of_ours(std::string_view token) {
  for (std::string_view kind : {"u1.", "p1.", "e1.", "a1.", "v1.", "t1.", "s1."})
    if (token.starts_with(kind))
      return true;
  return false;
}

/// The query without each parameter `token` that holds a credential of Troupe, with which the service could
/// act as its viewer.
std::string without_our_tokens(const std::string& query) {
  std::string out;
  bool ours = false;
  for (std::string_view rest = query; !rest.empty();) {
    const auto end = rest.find('&');
    const auto pair = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (const auto token = proxy::take_parameter(pair, "token"); token.found && is_of_ours(token.value))
      ours = true;
    else
      out += (out.empty() ? "" : "&") + std::string(pair);
  }
  return ours ? out : query;
}

/// The path with the service's name unescaped and a "/" after it, as the path of the page's cookie has it.
std::string plain_path(const proxy::service_path& x) {
  const auto rest = x.path.find('/', std::string_view("/proxy/").size());
  return "/proxy/" + x.service + (rest == x.path.npos ? "/" : x.path.substr(rest));
}

/// A credential, and the identity behind it.
struct shown_pass {
  std::string token;
  result<identity> by = error{errc::unauthorized, "no token: log in first"};
  explicit operator bool() const { return !token.empty() && bool(by); }
};

/// The credential with its identity where it is valid and has the right to this task; otherwise with the
/// error.
shown_pass pass_of(const service& api, std::string token, const task_row& task, time_point now) {
  shown_pass out;
  if (token.empty())
    return out;
  const auto& parts = api.parts();
  out.by = api.who_views(token, task.id, now);
  // A notebook takes the right to its secret, because whoever can use it acts as its owner.
  const auto asked = task.id.kind() == task_kind::notebook ? thing::secret : thing::task;
  if (out.by) {
    const authority::resource on{asked, to_string(task.id), task.owner};
    const viewer by{parts.roles, {out.by->user_id}, out.by->experiment, out.by->allocation.task};
    if (auto fine = authority::may(out.by->asks(), action::view, on); !fine)
      out.by = fine.error();
    else if (parts.roles && !veiled(parts.storage, by)->task(task.id))
      out.by = error{errc::not_found, "task '" + to_string(task.id) + "' not found"};
  }
  out.token = std::move(token);
  return out;
}

/// Decides on one request.
class visit {
public:
  visit(const service& api, const request_head& head, const proxy::header_list& all, const proxy_caller& by)
      : api_(api), parts_(api.parts()), head_(head), all_(all), by_(by), now_(parts_.now()) {}

  std::variant<proxied, response> run() {
    const auto mode = proxy::first_of(all_, "sec-fetch-mode");
    const bool plainly = mode.empty() && by_.upgrade.empty() && asks_for_page(head_.headers);
    // Node's fetch sends Sec-Fetch-Mode as well, but no other header of browsers.
    const bool browses = mode == "navigate" || (!mode.empty() && !head_.headers.fetch_site.empty());
    knock_.browser = browses || plainly;
    knock_.navigates = mode == "navigate" || plainly;
    auto path = proxy::parse_service_path(head_.target);
    if (!path)
      return refused(path.error(), knock_.navigates);
    const auto hosts =
      std::count_if(all_.begin(), all_.end(), [](const auto& one) { return lower(one.first) == "host"; });
    if (hosts != 1)
      return refused(
        {errc::invalid, std::string("this request is refused: ") + (hosts ? "two" : "no") + " Host headers"},
        knock_.navigates);
    path_ = std::move(*path);
    knock_.at = whose_origin();
    knock_.safe = (head_.method == "GET" || head_.method == "HEAD") && by_.upgrade.empty();
    // For other spellings of the path a browser does not send the cookie.
    if (knock_.at == proxy::place::own_page && knock_.navigates && knock_.safe)
      if (const auto plain = plain_path(path_); plain != path_.path)
        return see_other(path_and_query(plain, path_.query));
    if (knock_.at == proxy::place::api)
      if (auto fine = host_is_ours(head_.headers, parts_.browsers); !fine)
        return failure(fine.error());
    auto found = parts_.proxy->find(*parts_.storage, path_);
    if (!found)
      return refused(found.error(), knock_.navigates);
    at_ = std::move(*found);
    look_at_credentials();
    return open();
  }

private:
  proxy::page_names names() const { return {parts_.browsers.loopback, parts_.browsers.proxy_domain, 0}; }

  proxy::place whose_origin() const {
    if (by_.at_pages)
      return proxy::place::own_page;
    return proxy::place_of(host_alone(head_.headers.host), proxy::host_label(path_.service), names());
  }

  /// Pages at names below the domain are shown over https only, also where a proxy in front does the TLS.
  bool is_secure() const {
    return by_.tls || proxy::is_page_host(host_alone(head_.headers.host), {false, names().domain, 0});
  }

  std::string origin_here() const { return (is_secure() ? "https://" : "http://") + head_.headers.host; }

  /// Adds a Referer for JupyterLab, which exports notebooks only for requests that show one. Pages send none,
  /// because their address may tell too much; a browser's Sec-Fetch-Site says that the page is of the same
  /// service.
  void say_where_from(proxy::header_list& to) const {
    if (knock_.at == proxy::place::own_page && head_.headers.fetch_site == "same-origin" &&
        proxy::first_of(all_, "referer").empty())
      to.emplace_back("Referer", origin_here() + "/proxy/" + path_.service + "/");
  }

  void look_at_credentials() {
    auto headers = head_.headers;
    headers.cookie.clear();
    const auto own = own_scheme(headers.authorization);
    by_header_ = pass(std::string(own.empty() ? shown_token(headers, parts_.about.cluster_id).token : own));
    passes_on_ = !own.empty() && (!is_of_ours(own) || is_view(by_header_.token));
    auto token = proxy::take_parameter(path_.query, "token");
    by_query_ = pass(token.value);
    clean_query_ = without_our_tokens(path_.query);
    by_cookie_ = pass(std::string(proxy::cookie_in(head_.headers.cookie, page_cookie_name(at_.name))));
    auto code = proxy::take_parameter(clean_query_, code_name);
    if (code.found)
      clean_query_ = code.rest;
    const auto site = head_.headers.fetch_site;
    const auto own_origin = origin_here();
    knock_.from_elsewhere = site.empty() ? !head_.headers.origin.empty() && head_.headers.origin != own_origin
                                         : site != "same-origin" && site != "none";
    const auto wanted = proxy::first_of(all_, "sec-fetch-dest");
    knock_.navigates = knock_.navigates && (wanted.empty() || wanted == "document");
    knock_.anyone = at_.service.unauthenticated;
    knock_.header = bool(by_header_);
    knock_.query = bool(by_query_);
    knock_.page_cookie = bool(by_cookie_);
    if (knock_.at == proxy::place::own_page && knock_.page_cookie)
      knock_.browser = true; // only browsers have this cookie
    // A code works once, so it is taken only where it decides.
    if (code.found && knock_.at == proxy::place::own_page && knock_.safe)
      if (auto stands_for = parts_.proxy->take_code(at_.service.id, code.value, now_)) {
        by_code_ = pass(*stands_for);
        knock_.code = bool(by_code_);
      }
    if (knock_.at == proxy::place::api) {
      request_headers only_cookie;
      only_cookie.cookie = head_.headers.cookie;
      by_api_cookie_ = pass(std::string(shown_token(only_cookie, parts_.about.cluster_id).token));
      knock_.api_cookie = bool(by_api_cookie_);
    }
  }

  bool is_view(const std::string& token) const {
    const auto holder = parts_.users->holder(token, now_);
    return holder &&
           (holder->what == token_holder::kind::view || holder->what == token_holder::kind::service);
  }

  shown_pass pass(std::string token) const { return pass_of(api_, std::move(token), at_.task, now_); }

  /// Pages that share an origin can use each other's services as their viewer. So all pages at one origin
  /// have to be of one owner.
  bool opens_here(const shown_pass& by) const { return !by_.at_pages || (by && by.by->is(at_.task.owner)); }
  response of_somebody_else() const {
    return refused(
      {errc::denied,
       "at this address a browser opens the tasks of its own user alone; those of others have pages "
       "where the cluster file sets cluster.proxy_domain"},
      knock_.navigates);
  }

  std::variant<proxied, response> open() {
    switch (proxy::opening_of(knock_)) {
    case opening::by_nobody:
      return let_in(nullptr, true);
    case opening::by_header:
      return let_in(&by_header_);
    case opening::by_query:
      if (knock_.browser && !opens_here(by_query_))
        return of_somebody_else();
      return let_in(&by_query_);
    case opening::by_cookie:
      if (!opens_here(by_cookie_))
        return of_somebody_else();
      return let_in(&by_cookie_);
    case opening::exchange:
      return opens_here(by_code_) ? exchange(by_code_) : of_somebody_else();
    case opening::exchange_query:
      return opens_here(by_query_) ? exchange(by_query_) : of_somebody_else();
    case opening::send_on:
      return send_to_page(parts_, at_.service.id, head_.headers.host,
                          (by_header_  ? by_header_
                           : by_query_ ? by_query_
                                       : by_api_cookie_)
                            .token,
                          now_, path_and_query(path_.path, clean_query_));
    case opening::send_back:
      // The user of the code may not see the service, so another login would only lead here again.
      if (const auto& by = by_code_; !by.token.empty() && by.by.error().code != errc::unauthorized)
        return seen_from_outside(by.by.error());
      return send_back();
    case opening::log_in:
      // A user who is logged in but may not see the service would be sent back here again and again.
      if (const auto& by = by_api_cookie_; !by.token.empty() && by.by.error().code != errc::unauthorized)
        return seen_from_outside(by.by.error());
      return send_to_login(path_and_query(path_.path, clean_query_));
    case opening::foreign:
      return refused({errc::denied, knock_.at == proxy::place::api
                                      ? "a page does not show a task's service from the API's own address"
                                      : "this service is shown by its own page alone"},
                     knock_.navigates);
    case opening::unauthorized:
      break;
    }
    const auto& why = by_header_.token.empty() ? by_query_.by : by_header_.by;
    return why ? failure({errc::unauthorized, "no token: log in first"}) : seen_from_outside(why.error());
  }

  /// The answer to a viewer who may not see the service: the service is not found.
  response seen_from_outside(const error& why) const {
    const bool hidden = why.code == errc::denied || why.code == errc::not_found;
    return refused(hidden ? error{errc::not_found, "service not found: " + path_.service} : why,
                   knock_.navigates);
  }

  /// The answer to a viewer without a valid pass to the page: it says how to open the page again.
  response send_back() const {
    return plain_page(
      401, "This page is open for those only who came from the cluster's own page, and that was too "
           "long ago, or they logged out. Open it again from there, or with `troupe notebook open` "
           "or `det notebook open`.");
  }

  response exchange(const shown_pass& by) const {
    auto view = parts_.users->view_token(by.token, at_.task.id, now_);
    if (!view)
      return refused(view.error(), true);
    const auto clean = path_and_query(path_.path, clean_query_);
    const auto scope = "/proxy/" + path_.service + "/";
    const auto site = head_.headers.fetch_site;
    // A browser does not send a strict cookie where another site began the navigation. Then a page of ours
    // goes on to the address.
    auto out = site.empty() || site == "none" || site == "same-origin"
                 ? see_other(clean)
                 : plain_page(200, "One moment.",
                              "<meta http-equiv=refresh content=\"0;url=" + html_escaped(clean) + "\">");
    out.headers.emplace_back("Set-Cookie", page_cookie_name(at_.name) + "=" + *view + "; Path=" + scope +
                                             "; HttpOnly; SameSite=Strict" + (is_secure() ? "; Secure" : ""));
    return out;
  }

  std::variant<proxied, response> let_in(const shown_pass* by, bool stranger = false) {
    if (by && !*by)
      return seen_from_outside(by->by.error());
    proxied out;
    out.page = knock_.navigates;
    out.sandboxed = knock_.at == proxy::place::api;
    out.most = stranger ? most_strangers : 0;
    out.pass = by ? by->token : std::string();
    out.first_byte = stranger ? stranger_says : std::chrono::seconds{0};
    if (auto wrong = choose_way(out))
      return std::move(*wrong);
    out.target = path_and_query(path_.path, clean_query_);
    proxy::viewer viewer{by_.address, is_secure(), passes_on_};
    out.head = proxy::to_service(all_, viewer);
    say_where_from(out.head);
    if (at_.task.id.kind() == task_kind::notebook && !passes_on_ && is_to_be_logged_in())
      if (const auto owner = parts_.users->owner(at_.task.owner))
        out.head.emplace_back("Authorization",
                              "token " + parts_.users->service_token(at_.task.id, owner->id));
    say_used();
    out.at = std::move(at_);
    return out;
  }

  /// Whether JupyterLab logs the viewer in by a token in a header. Afterwards its own cookie tells the
  /// viewer, and then it checks for XSRF, which it does not do for a token. So a browser gets the token only
  /// with a page that it opens.
  bool is_to_be_logged_in() const {
    if (!knock_.browser)
      return true;
    const auto& cookies = head_.headers.cookie;
    return knock_.navigates && knock_.safe &&
           (cookies.starts_with("username-") || cookies.find("; username-") != cookies.npos) == false;
  }

  /// Reports that the task is used. Notebooks report which of their documents are open, but not that somebody
  /// only reads and writes files.
  void say_used() const {
    const auto& id = at_.task.id;
    if (id.is_trial() || !parts_.proxy->is_news(id, now_))
      return;
    commands::task_use use;
    use.id = to_string(id);
    parts_.cluster.order({.user = at_.task.owner, .admin = false, .allocation = {}}, std::move(use),
                         [](const result<value>&) {});
  }

  std::optional<response> choose_way(proxied& out) const {
    const bool websocket = by_.upgrade == "websocket", tunnel = by_.upgrade == "troupe-tunnel";
    if (!at_.service.tcp && !websocket && !tunnel) // another offer, such as HTTP/2, is declined
      return std::nullopt;
    const auto length = proxy::first_of(all_, "content-length");
    if ((!length.empty() && length != "0") || !proxy::first_of(all_, "transfer-encoding").empty())
      return failure({errc::invalid, "a request that opens a connection has no body"});
    if (tunnel) {
      out.how = proxied::way::bytes;
      return std::nullopt;
    }
    if (!websocket)
      return failure({errc::invalid, "the service " + path_.service +
                                       " speaks TCP: bytes go through a WebSocket (`det shell open`, "
                                       "`troupe tunnel`)"});
    if (at_.service.requests_only)
      return failure({errc::invalid, "the service " + path_.service +
                                       " serves no WebSocket: ask it by requests without `Upgrade`"});
    const auto accept = proxy::accept_of(proxy::first_of(all_, "sec-websocket-key"));
    if (accept.empty() || proxy::first_of(all_, "sec-websocket-version") != "13" || head_.method != "GET")
      return failure({errc::invalid, "a WebSocket begins with GET, Sec-WebSocket-Version 13 and a "
                                     "Sec-WebSocket-Key of 16 bytes"});
    if (at_.service.tcp && knock_.from_elsewhere)
      return failure({errc::denied, "this service is not for pages of other origins"});
    out.how = at_.service.tcp ? proxied::way::frames : proxied::way::websocket;
    out.accept = accept;
    return std::nullopt;
  }

  const service& api_;
  const services& parts_;
  const request_head& head_;
  const proxy::header_list& all_;
  const proxy_caller& by_;
  const time_point now_;
  proxy::service_path path_;
  proxy_desk::found_service at_;
  proxy::knock knock_;
  shown_pass by_header_, by_query_, by_cookie_, by_code_, by_api_cookie_;
  std::string clean_query_;
  bool passes_on_ = false; ///< `Authorization` is meant for the service
};

} // namespace

std::variant<proxied, response> open_door(const service& api, const request_head& head,
                                          const proxy::header_list& all, const proxy_caller& by) {
  return visit(api, head, all, by).run();
}

bool lasting_right::holds(const service& api, time_point now) {
  if (pass_.empty())
    return true;
  const auto& storage = *api.parts().storage;
  if (const auto newest = storage.sequence(); newest != sequence_) {
    sequence_ = newest;
    if (const auto facts = storage.next_of(cluster_entity); !facts || *facts != facts_) {
      facts_ = facts ? *facts : 0;
      looks_ = 2; // accounts hear of the fact a moment later, so the rights are looked up twice
    }
  }
  if (looks_ == 0 && now - looked_ < std::chrono::minutes{10})
    return true;
  looks_ = std::max(0, looks_ - 1);
  looked_ = now;
  return bool(pass_of(api, pass_, task_, now));
}

response send_to_page(const services& parts, const std::string& service, const std::string& host,
                      const std::string& token, time_point now, const std::string& path) {
  const auto label = proxy::host_label(service);
  const auto origin =
    proxy::page_origin(label, host, parts.browsers.tls,
                       {parts.browsers.loopback, parts.browsers.proxy_domain, parts.browsers.proxy_port});
  if (!origin)
    return plain_page(
      421, "This cluster shows no pages of tasks yet: they need an address of their own, so that they "
           "cannot act in your name. Set cluster.proxy_domain or cluster.proxy_listen in the cluster "
           "file. Clients other than browsers work as before.");
  const auto code = parts.proxy->make_code(service, token, now);
  return see_other(*origin + path + (path.find('?') == path.npos ? "?" : "&") + code_name + "=" + code);
}

response send_to_login(const std::string& page) { return see_other("/ui/open" + page); }

response service_fault(const error& why, bool as_page) {
  const bool later = why.code == errc::busy || why.code == errc::timeout;
  const auto kind = why.code == errc::not_found ? http_of(errc::not_found)
                    : later                     ? http_of(errc::unreachable)
                                                : http_error{502, 14, "Unavailable"};
  auto out = as_page ? plain_page(kind.status, why.what, later ? "<meta http-equiv=refresh content=2>" : "")
                     : failure(kind, why.what);
  if (later)
    out.headers.emplace_back("Retry-After", "2");
  return out;
}

} // namespace troupe::api
