#pragma once
// A connection that an agent's process dials to its master's HTTP port, with TLS or without. Everything
// happens on the thread of one io_context.

#include "runtime/http/master_address.hpp"
#include "runtime/http/session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl.hpp>

#include <map>
#include <memory>

namespace troupe::http {

/// TLS contexts by the file of their CA.
class trust_store {
public:
  /// Null if the file cannot be read.
  net::ssl::context* context_of(const std::string& ca_file) {
    auto& one = trust_[ca_file];
    if (!one) {
      auto fresh = std::make_unique<net::ssl::context>(net::ssl::context::tls_client);
      error_code bad;
      fresh->load_verify_file(ca_file, bad);
      if (bad)
        return nullptr;
      SSL_CTX_set_min_proto_version(fresh->native_handle(), TLS1_2_VERSION);
      fresh->set_verify_mode(net::ssl::verify_peer);
      one = std::move(fresh);
    }
    return one.get();
  }

private:
  std::map<std::string, std::unique_ptr<net::ssl::context>> trust_;
};

/// Exactly one of the two streams exists while the connection is open.
struct master_connection {
  std::optional<beast::tcp_stream> plain;
  std::optional<beast::ssl_stream<beast::tcp_stream>> tls;
  std::string host; ///< the master's host and port, as `Host` names them

  bool connected() const { return plain || tls; }

  void close() {
    if (plain)
      plain->close();
    if (tls)
      beast::get_lowest_layer(*tls).close();
  }
  void hang_up() {
    close();
    plain.reset();
    tls.reset();
  }

  /// False if the master cannot be reached, or shows a certificate that the CA has not signed.
  task<bool> dial(net::io_context& io, trust_store& trust, master_address where, milliseconds connect_time) {
    error_code bad;
    std::vector<net::ip::tcp::endpoint> ends;
    if (auto address = net::ip::make_address(where.host, bad); !bad) {
      ends.push_back({address, where.port});
    } else {
      net::ip::tcp::resolver resolver{io};
      auto found = co_await resolver.async_resolve(where.host, std::to_string(where.port), into(bad));
      if (bad)
        co_return false;
      for (const auto& one : found)
        ends.push_back(one.endpoint());
    }
    const auto shown = where.host.find(':') == std::string::npos ? where.host : "[" + where.host + "]";
    host = shown + ":" + std::to_string(where.port);
    if (where.ca_file.empty()) {
      plain.emplace(io);
    } else {
      auto* context = trust.context_of(where.ca_file.string());
      if (!context)
        co_return false;
      tls.emplace(io, *context);
      SSL_set_tlsext_host_name(tls->native_handle(), where.host.c_str());
      tls->set_verify_callback(net::ssl::host_name_verification(where.host), bad);
    }
    auto& lowest = plain ? *plain : beast::get_lowest_layer(*tls);
    lowest.expires_after(connect_time);
    co_await lowest.async_connect(ends, into(bad));
    if (!bad) {
      lowest.socket().set_option(net::ip::tcp::no_delay(true), bad);
      notice_dead_host(lowest.socket().native_handle());
    }
    if (!bad && tls) {
      lowest.expires_after(connect_time);
      co_await tls->async_handshake(net::ssl::stream_base::client, into(bad));
    }
    lowest.expires_never();
    if (bad)
      hang_up();
    co_return connected();
  }
};

} // namespace troupe::http
