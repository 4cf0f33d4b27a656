#include "runtime/client/http.hpp"

#include "runtime/client/curl_library.hpp"

#include <algorithm>
#include <cctype>
#include <curl/curl.h>
#include <poll.h>
#include <sys/socket.h>

namespace troupe::client {
namespace {

TROUPE_LAZY_CALL(curl_library, curl_easy_cleanup);
TROUPE_LAZY_CALL(curl_library, curl_easy_getinfo);
TROUPE_LAZY_CALL(curl_library, curl_easy_init);
TROUPE_LAZY_CALL(curl_library, curl_easy_perform);
TROUPE_LAZY_CALL(curl_library, curl_easy_recv);
TROUPE_LAZY_CALL(curl_library, curl_easy_reset);
TROUPE_LAZY_CALL(curl_library, curl_easy_send);
TROUPE_LAZY_CALL(curl_library, curl_easy_setopt);
TROUPE_LAZY_CALL(curl_library, curl_easy_strerror);
TROUPE_LAZY_CALL(curl_library, curl_global_init);
TROUPE_LAZY_CALL(curl_library, curl_multi_add_handle);
TROUPE_LAZY_CALL(curl_library, curl_multi_cleanup);
TROUPE_LAZY_CALL(curl_library, curl_multi_info_read);
TROUPE_LAZY_CALL(curl_library, curl_multi_init);
TROUPE_LAZY_CALL(curl_library, curl_multi_perform);
TROUPE_LAZY_CALL(curl_library, curl_multi_poll);
TROUPE_LAZY_CALL(curl_library, curl_multi_remove_handle);
TROUPE_LAZY_CALL(curl_library, curl_slist_append);
TROUPE_LAZY_CALL(curl_library, curl_slist_free_all);

struct receiver {
  reply got;
  const std::function<bool(std::string_view)>* sink = nullptr;
  std::size_t most_bytes = 0;
  bool too_large = false, sink_refused = false;
};

std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* to) {
  auto& r = *static_cast<receiver*>(to);
  std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) { // of the final answer, or of a 100 before it
    r.got.headers.clear();
    auto space = line.find(' ');
    r.got.status = space == line.npos ? 0 : std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    return line.size();
  }
  auto colon = line.find(':');
  if (colon != line.npos) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    auto text = line.substr(colon + 1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
      text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
      text.remove_suffix(1);
    r.got.headers[std::move(name)] = text;
  }
  return line.size();
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* to) {
  auto& r = *static_cast<receiver*>(to);
  std::string_view part(bytes, size * count);
  if (r.sink && r.got.status == 200) {
    r.sink_refused = !(*r.sink)(part);
    return r.sink_refused ? 0 : part.size();
  }
  r.too_large = r.got.body.size() + part.size() > r.most_bytes;
  if (r.too_large)
    return 0;
  r.got.body += part;
  return part.size();
}

/// The options of one transfer; what they point to must outlive it.
struct transfer {
  transfer() : header_list(nullptr, curl_slist_free_all) {}
  std::unique_ptr<curl_slist, decltype(curl_slist_free_all)> header_list;
  char fault_text[CURL_ERROR_SIZE] = "";

  void prepare(CURL* easy, const request& what, const transport_options& options, receiver& to) {
    for (const auto& line : what.headers)
      header_list.reset(curl_slist_append(header_list.release(), line.c_str()));
    header_list.reset(curl_slist_append(header_list.release(), "Expect:")); // no waiting for a 100
    curl_easy_setopt(easy, CURLOPT_URL, what.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, what.method.c_str());
    if (what.method != "GET") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(what.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, what.body.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header_list.get());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fault_text);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &to);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &to);
    if (!options.ca_file.empty())
      curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
    if (!options.ca_pem.empty()) {
      curl_blob pem{const_cast<char*>(options.ca_pem.data()), options.ca_pem.size(), CURL_BLOB_COPY};
      curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &pem);
    }
  }

  error fault(CURLcode code, const receiver& to) const {
    if (to.too_large)
      return {errc::invalid, "the answer is larger than " + std::to_string(to.most_bytes >> 20) + " MB"};
    if (to.sink_refused)
      return {errc::io, "the received bytes could not be taken"};
    std::string text = fault_text[0] ? fault_text : curl_easy_strerror(code);
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {errc::timeout, "no answer in time (" + text + ")"};
    case CURLE_URL_MALFORMAT:
      return {errc::invalid, text};
    case CURLE_PEER_FAILED_VERIFICATION:
      return {errc::unreachable,
              text + "\nhint: name the cluster's CA: export TROUPE_CA_FILE=DIR/ca.pem, with DIR as"
                     " `troupe tls init` made it"};
    case CURLE_SSL_CACERT_BADFILE:
      return {errc::unreachable, text + "\nhint: TROUPE_CA_FILE has to name a readable PEM file"};
    case CURLE_SSL_CONNECT_ERROR:
      return {errc::unreachable,
              text + "\nhint: does it speak TLS? if not, use http:// in place of https://"};
    case CURLE_GOT_NOTHING:
      return {errc::unreachable, text + "\nhint: does it speak TLS? then use https:// in place of http://"};
    default:
      return {errc::unreachable, text};
    }
  }
};

transport_fault kind_of(CURLcode code) {
  switch (code) {
  case CURLE_OK:
    return transport_fault::none;
  case CURLE_COULDNT_CONNECT:
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_OPERATION_TIMEDOUT:
    return transport_fault::no_connection;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
    return transport_fault::no_trust;
  case CURLE_SSL_CONNECT_ERROR:
    return transport_fault::no_tls;
  default:
    return transport_fault::no_http;
  }
}

} // namespace

result<void> start_curl() {
  if (auto loaded = curl_library::load(); !loaded)
    return loaded;
  static const auto code = curl_global_init(CURL_GLOBAL_DEFAULT);
  return code == CURLE_OK ? result<void>{}
                          : error{errc::io, std::string("libcurl: ") + curl_easy_strerror(code)};
}

struct http::impl {
  transport_options options;
  result<void> started = start_curl();
  CURL* easy = nullptr;
  transport_fault last = transport_fault::none;
};

http::http(transport_options options) : impl_(std::make_unique<impl>()) {
  impl_->options = std::move(options);
  if (impl_->started)
    impl_->easy = curl_easy_init();
}

http::~http() {
  if (impl_->started)
    curl_easy_cleanup(impl_->easy);
}

result<reply> http::send(const request& what) { return send(what, nullptr); }
transport_fault http::last_fault() const { return impl_->last; }

result<reply> http::send(const request& what, const std::function<bool(std::string_view)>& sink) {
  if (!impl_->started)
    return impl_->started.error();
  receiver to{{}, sink ? &sink : nullptr, impl_->options.most_bytes};
  transfer one;
  curl_easy_reset(impl_->easy);
  one.prepare(impl_->easy, what, impl_->options, to);
  if (sink) { // may take as long as it likes while bytes come
    curl_easy_setopt(impl_->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(impl_->easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(what.timeout.count() / 1000 + 1));
  } else {
    curl_easy_setopt(impl_->easy, CURLOPT_TIMEOUT_MS, static_cast<long>(what.timeout.count()));
  }
  auto code = curl_easy_perform(impl_->easy);
  impl_->last = kind_of(code);
  if (code != CURLE_OK)
    return one.fault(code, to);
  return std::move(to.got);
}

struct http_stream::impl {
  result<void> started = start_curl();
  request what; // libcurl reads its body later
  receiver to;
  transfer one;
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  std::chrono::milliseconds quiet_limit{};
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  bool done = false;
};

http_stream::http_stream(const request& what, const transport_options& options,
                         std::chrono::milliseconds quiet_limit)
    : impl_(std::make_unique<impl>()) {
  auto& x = *impl_;
  if (!x.started)
    return;
  x.what = what;
  x.quiet_limit = quiet_limit;
  x.to.most_bytes = options.most_bytes;
  x.easy = curl_easy_init();
  x.multi = curl_multi_init();
  x.one.prepare(x.easy, x.what, options, x.to);
  curl_multi_add_handle(x.multi, x.easy);
}

http_stream::~http_stream() {
  if (!impl_->started)
    return;
  curl_multi_remove_handle(impl_->multi, impl_->easy);
  curl_easy_cleanup(impl_->easy);
  curl_multi_cleanup(impl_->multi);
}

int http_stream::status() const { return impl_->to.got.status; }

result<bool> http_stream::read(std::string& into, std::chrono::milliseconds wait) {
  auto& x = *impl_;
  if (!x.started)
    return x.started.error();
  if (x.done)
    return false;
  int running = 0;
  auto run = [&] { return curl_multi_perform(x.multi, &running); };
  run();
  if (x.to.got.body.empty() && running) {
    curl_multi_poll(x.multi, nullptr, 0, static_cast<int>(wait.count()), nullptr);
    run();
  }
  auto now = std::chrono::steady_clock::now();
  if (!x.to.got.body.empty()) {
    x.last = now;
    into += x.to.got.body;
    x.to.got.body.clear();
  }
  int left = 0;
  while (const auto* note = curl_multi_info_read(x.multi, &left)) {
    if (note->msg != CURLMSG_DONE)
      continue;
    x.done = true;
    if (note->data.result != CURLE_OK)
      return x.one.fault(note->data.result, x.to);
    return false;
  }
  if (now - x.last > x.quiet_limit)
    return error{errc::timeout, "nothing came for " + std::to_string(x.quiet_limit.count() / 1000) + " s"};
  return true;
}

struct http_upgrade::impl {
  CURL* easy = curl_easy_init();
  curl_socket_t socket = CURL_SOCKET_BAD;
  transfer one;
  receiver nothing;
  std::string early; ///< bytes that came with the head of the answer
  ~impl() { curl_easy_cleanup(easy); }

  /// Until the socket is ready, or the time is over.
  bool wait(short what, std::chrono::steady_clock::time_point until) const {
    const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd one_socket{socket, what, 0};
    return left.count() > 0 && ::poll(&one_socket, 1, static_cast<int>(left.count())) > 0;
  }
};

http_upgrade::http_upgrade(std::unique_ptr<impl> x) : impl_(std::move(x)) {}
http_upgrade::~http_upgrade() = default;
int http_upgrade::descriptor() const { return impl_->socket; }

result<std::unique_ptr<http_upgrade>> http_upgrade::open(const request& what,
                                                         const transport_options& options,
                                                         const std::string& protocol, reply& refused) {
  if (auto started = start_curl(); !started)
    return started.error();
  auto x = std::make_unique<impl>();
  x->one.prepare(x->easy, what, options, x->nothing);
  curl_easy_setopt(x->easy, CURLOPT_CONNECT_ONLY, 1L);
  if (const auto code = curl_easy_perform(x->easy); code != CURLE_OK)
    return x->one.fault(code, x->nothing);
  curl_easy_getinfo(x->easy, CURLINFO_ACTIVESOCKET, &x->socket);
  const auto scheme = what.url.find("://");
  const auto path = what.url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  auto head = what.method + " " + (path == std::string::npos ? "/" : what.url.substr(path)) +
              " HTTP/1.1\r\nHost: " + what.url.substr(scheme + 3, path - scheme - 3) +
              "\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n";
  for (const auto& line : what.headers)
    head += line + "\r\n";
  head += "\r\n";
  std::unique_ptr<http_upgrade> out{new http_upgrade(std::move(x))};
  auto& in = *out->impl_;
  const auto until = std::chrono::steady_clock::now() + what.timeout;
  const error late{errc::timeout, "no answer in time"};
  for (std::string_view rest = head; !rest.empty();) {
    auto sent = out->write(rest);
    if (!sent)
      return sent.error();
    rest.remove_prefix(*sent);
    if (*sent == 0 && !in.wait(POLLOUT, until))
      return late;
  }
  std::string answer;
  auto end = answer.npos;
  while ((end = answer.find("\r\n\r\n")) == answer.npos) {
    auto more = out->read();
    if (!more)
      return more.error();
    answer += more->bytes;
    if (more->over || answer.size() > 65'536)
      return error{errc::unreachable, "the connection ended before an answer"};
    if (more->bytes.empty() && !in.wait(POLLIN, until))
      return late;
  }
  refused.status = answer.size() > 12 ? std::atoi(answer.substr(9, 3).c_str()) : 0;
  if (refused.status == 101) {
    in.early = answer.substr(end + 4);
    return out;
  }
  refused.body = answer.substr(end + 4);
  const auto moment = std::min(until, std::chrono::steady_clock::now() + std::chrono::seconds(1));
  while (refused.body.size() < 65'536 && refused.body.find('}') == std::string::npos &&
         in.wait(POLLIN, moment)) {
    auto more = out->read();
    if (!more || more->over)
      break;
    refused.body += more->bytes;
  }
  return error{errc::conflict, "HTTP " + std::to_string(refused.status)};
}

result<http_upgrade::got> http_upgrade::read() {
  if (!impl_->early.empty())
    return got{std::exchange(impl_->early, {}), false};
  got out;
  out.bytes.resize(65'536);
  std::size_t n = 0;
  const auto code = curl_easy_recv(impl_->easy, out.bytes.data(), out.bytes.size(), &n);
  out.bytes.resize(code == CURLE_OK ? n : 0);
  out.over = code == CURLE_OK && n == 0;
  if (code != CURLE_OK && code != CURLE_AGAIN)
    return error{errc::unreachable, std::string("the connection broke: ") + curl_easy_strerror(code)};
  return out;
}

result<std::size_t> http_upgrade::write(std::string_view bytes) {
  std::size_t n = 0;
  const auto code = curl_easy_send(impl_->easy, bytes.data(), bytes.size(), &n);
  if (code != CURLE_OK && code != CURLE_AGAIN)
    return error{errc::unreachable, std::string("the connection broke: ") + curl_easy_strerror(code)};
  return code == CURLE_OK ? n : 0;
}

void http_upgrade::end_writing() { ::shutdown(impl_->socket, SHUT_WR); }

std::string percent_encode(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += digits[c >> 4];
      out += digits[c & 15];
    }
  }
  return out;
}

} // namespace troupe::client
