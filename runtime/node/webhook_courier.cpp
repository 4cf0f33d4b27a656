#include "runtime/node/webhook_courier.hpp"

#include "model/hex.hpp"
#include "runtime/client/curl_library.hpp"

#include <condition_variable>
#include <curl/curl.h>
#include <deque>
#include <mutex>
#include <netdb.h>
#include <sodium.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe::node {
namespace {

using client::curl_library;
TROUPE_LAZY_CALL(curl_library, curl_easy_cleanup);
TROUPE_LAZY_CALL(curl_library, curl_easy_getinfo);
TROUPE_LAZY_CALL(curl_library, curl_easy_init);
TROUPE_LAZY_CALL(curl_library, curl_easy_reset);
TROUPE_LAZY_CALL(curl_library, curl_easy_setopt);
TROUPE_LAZY_CALL(curl_library, curl_easy_strerror);
TROUPE_LAZY_CALL(curl_library, curl_multi_add_handle);
TROUPE_LAZY_CALL(curl_library, curl_multi_cleanup);
TROUPE_LAZY_CALL(curl_library, curl_multi_info_read);
TROUPE_LAZY_CALL(curl_library, curl_multi_init);
TROUPE_LAZY_CALL(curl_library, curl_multi_perform);
TROUPE_LAZY_CALL(curl_library, curl_multi_poll);
TROUPE_LAZY_CALL(curl_library, curl_multi_remove_handle);
TROUPE_LAZY_CALL(curl_library, curl_multi_wakeup);
TROUPE_LAZY_CALL(curl_library, curl_slist_append);
TROUPE_LAZY_CALL(curl_library, curl_slist_free_all);

} // namespace

std::string webhook_signature(const std::string& key, const std::string& timestamp, const std::string& body) {
  unsigned char digest[crypto_auth_hmacsha256_BYTES];
  crypto_auth_hmacsha256_state state;
  const auto bytes = [](const std::string& x) { return reinterpret_cast<const unsigned char*>(x.data()); };
  crypto_auth_hmacsha256_init(&state, bytes(key), key.size());
  const auto signed_text = timestamp + "," + body;
  crypto_auth_hmacsha256_update(&state, bytes(signed_text), signed_text.size());
  crypto_auth_hmacsha256_final(&state, digest);
  return hex({reinterpret_cast<const char*>(digest), sizeof digest});
}

struct webhook_courier::inside {
  struct job {
    webhook_delivery what;
    webhook_ear done;
  };
  struct transfer {
    job of;
    const webhook_targets* targets = nullptr;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::string host, refused;
    std::size_t heard = 0;
    char fault[CURL_ERROR_SIZE] = "";

    ~transfer() {
      if (headers)
        curl_slist_free_all(headers);
      if (easy)
        curl_easy_cleanup(easy);
    }
  };

  explicit inside(settings given) : how(std::move(given)) {}

  ~inside() {
    {
      const std::scoped_lock lock(mutex);
      ending = true;
      if (multi)
        curl_multi_wakeup(multi);
    }
    if (thread.joinable())
      thread.join();
  }

  void send(std::vector<webhook_delivery> what, webhook_ear done) {
    const std::scoped_lock lock(mutex);
    if (!thread.joinable()) {
      auto started = client::start_curl();
      if (started)
        multi = curl_multi_init();
      if (!multi) {
        std::vector<webhook_told> none;
        for (const auto& one : what)
          none.push_back({one.id, false, false, started ? "libcurl cannot be used" : started.error().what});
        return (*done)(std::move(none));
      }
      thread = std::thread([this] { run(); });
    }
    for (auto& one : what)
      jobs.push_back({std::move(one), done});
    curl_multi_wakeup(multi);
  }

  void run() {
    for (;;) {
      std::deque<job> fresh;
      {
        const std::scoped_lock lock(mutex);
        if (ending)
          break;
        fresh.swap(jobs);
      }
      for (auto& one : fresh)
        begin(std::move(one));
      int running = 0;
      curl_multi_perform(multi, &running);
      int left = 0;
      while (auto* message = curl_multi_info_read(multi, &left))
        if (message->msg == CURLMSG_DONE)
          end(message->easy_handle, message->data.result);
      tell();
      curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
    for (auto& [easy, one] : open)
      curl_multi_remove_handle(multi, easy);
    open.clear();
    for (auto* easy : idle)
      curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  static curl_socket_t open_socket(void* of, curlsocktype, curl_sockaddr* to) {
    auto& one = *static_cast<transfer*>(of);
    char text[NI_MAXHOST] = "";
    if (getnameinfo(&to->addr, to->addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
      return CURL_SOCKET_BAD;
    std::string address = text;
    address = address.substr(0, address.find('%')); // removes the interface of a link-local address
    one.refused = one.targets->refuses(one.host, address);
    if (!one.refused.empty())
      return CURL_SOCKET_BAD;
    return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
  }
  static std::size_t take(char*, std::size_t size, std::size_t count, void* of) {
    auto& heard = static_cast<transfer*>(of)->heard;
    heard += size * count;
    return heard > most_answer_bytes ? 0 : size * count;
  }

  void begin(job one) {
    auto made = std::make_unique<transfer>();
    auto& t = *made;
    t.of = std::move(one);
    t.targets = &how.targets;
    if (idle.empty()) {
      t.easy = curl_easy_init();
    } else {
      t.easy = idle.back();
      idle.pop_back();
    }
    if (!t.easy) {
      ended[t.of.done].push_back({t.of.what.id, false, false, "libcurl cannot be used"});
      return;
    }
    const auto& what = t.of.what;
    const auto from = what.url.find("//") + 2, upto = what.url.find_first_of("/?#", from);
    t.host = what.url.substr(from, upto == what.url.npos ? upto : upto - from);
    if (t.host.starts_with('['))
      t.host = t.host.substr(1, t.host.find(']') - 1);
    else
      t.host = t.host.substr(0, t.host.find(':'));
    const auto timestamp = std::to_string(what.timestamp);
    for (const auto& line :
         {std::string("Content-Type: application/json; charset=UTF-8"), std::string("Expect:"),
          "X-Determined-AI-Signature-Timestamp: " + timestamp,
          "X-Determined-AI-Signature: " + webhook_signature(how.key, timestamp, what.body)})
      t.headers = curl_slist_append(t.headers, line.c_str());
    curl_easy_setopt(t.easy, CURLOPT_URL, what.url.c_str());
    curl_easy_setopt(t.easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(t.easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(t.easy, CURLOPT_PROXY, ""); // a proxy would resolve the name itself
    curl_easy_setopt(t.easy, CURLOPT_POST, 1L);
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(what.body.size()));
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDS, what.body.c_str());
    curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, t.headers);
    curl_easy_setopt(t.easy, CURLOPT_USERAGENT, "troupe-webhook");
    curl_easy_setopt(t.easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, static_cast<long>(time_limit.count()));
    curl_easy_setopt(t.easy, CURLOPT_ERRORBUFFER, t.fault);
    curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETDATA, &t);
    curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(t.easy, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(t.easy, CURLOPT_HEADERFUNCTION, take);
    curl_easy_setopt(t.easy, CURLOPT_HEADERDATA, &t);
    curl_multi_add_handle(multi, t.easy);
    open.emplace(t.easy, std::move(made));
  }

  void end(CURL* easy, CURLcode code) {
    curl_multi_remove_handle(multi, easy);
    auto node = open.extract(easy);
    if (!node)
      return;
    auto& t = *node.mapped();
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    webhook_told told{t.of.what.id};
    const bool too_long = code == CURLE_WRITE_ERROR && t.heard > most_answer_bytes;
    if ((code == CURLE_OK || too_long) && status >= 200 && status < 300)
      told.done = true;
    else if (code == CURLE_OK || too_long) {
      told.final = status >= 300 && status < 500; // redirects are not followed
      told.why = "the receiver answered " + std::to_string(status);
    } else if (!t.refused.empty()) {
      told.final = true;
      told.why = t.refused;
    } else {
      told.why = *t.fault ? std::string(t.fault) : curl_easy_strerror(code);
    }
    ended[t.of.done].push_back(std::move(told));
    if (idle.size() < most_idle) {
      curl_easy_reset(easy);
      idle.push_back(std::exchange(t.easy, nullptr));
    }
  }

  void tell() {
    for (auto& [done, all] : std::exchange(ended, {}))
      (*done)(std::move(all));
  }

  const settings how;
  std::mutex mutex;
  std::deque<job> jobs;
  bool ending = false;
  CURLM* multi = nullptr;
  /// Only the courier's thread uses this and all members below.
  std::map<CURL*, std::unique_ptr<transfer>> open;
  std::map<webhook_ear, std::vector<webhook_told>> ended;
  static constexpr std::size_t most_idle = 16; ///< each keeps its buffers
  std::vector<CURL*> idle;
  std::thread thread;
};

webhook_courier::webhook_courier(settings how) : inside_(std::make_unique<inside>(std::move(how))) {}
webhook_courier::~webhook_courier() = default;

void webhook_courier::send(std::vector<webhook_delivery> what, webhook_ear done) {
  inside_->send(std::move(what), std::move(done));
}

} // namespace troupe::node
