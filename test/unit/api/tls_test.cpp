// Tests the certificate of the server with a client that speaks TLS.

#include "fakes.hpp"

#include <fstream>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace troupe::api {
namespace {

/// Writes a self-signed certificate for localhost as two PEM files.
tls_files make_certificate(const std::filesystem::path& in) {
  tls_files files{in / "cert.pem", in / "key.pem"};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), 0);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, key);
  auto* name = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"),
                             -1, -1, 0);
  X509_set_issuer_name(cert, name);
  X509_sign(cert, key, EVP_sha256());
  FILE* out = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(out, cert);
  std::fclose(out);
  out = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(out);
  X509_free(cert);
  EVP_PKEY_free(key);
  return files;
}

TEST(Tls, ServesHttpsAndRefusesPlainText) {
  char name[] = "/tmp/troupe_tls_XXXXXX";
  const std::filesystem::path at = ::mkdtemp(name);
  server_options how;
  how.tls = make_certificate(at);
  {
    live x{how};
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* ssl = SSL_new(context);
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(x.http->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    SSL_set_fd(ssl, fd);
    ASSERT_EQ(SSL_connect(ssl), 1);
    for (int i = 0; i < 2; ++i) {
      const std::string ask = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
      SSL_write(ssl, ask.data(), static_cast<int>(ask.size()));
      std::string got;
      while (got.find("\"up\"") == got.npos) {
        char part[4096];
        int count = SSL_read(ssl, part, sizeof part);
        ASSERT_GT(count, 0);
        got.append(part, static_cast<std::size_t>(count));
      }
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200")) << got;
    }
    SSL_shutdown(ssl);
    SSL_free(ssl);
    SSL_CTX_free(context);
    ::close(fd);
    raw_client plain{x.http->port()};
    plain.send("GET /health HTTP/1.1\r\n\r\n");
    bool closed = false;
    auto got = plain.read_until([](const std::string&) { return false; }, &closed);
    EXPECT_TRUE(closed);
    EXPECT_EQ(got.find("HTTP/1.1 200"), std::string::npos);
  }
  std::ofstream(how.tls->certificate) << "no certificate";
  fake_gate g;
  auto refused = server::start(how, g, filled_reader(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("cert.pem"), std::string::npos);
  std::filesystem::remove_all(at);
}

} // namespace
} // namespace troupe::api
