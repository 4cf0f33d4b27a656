// The files of `tls init`: a CA for this cluster alone, a certificate for the master and one for its agents.
//
// Whoever shows a certificate of this CA is a member of the link, so that the CA must sign only for this
// cluster.

#include "runtime/node/link.hpp"

#include "system/random.hpp"
#include "system/whole_file.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

template <class T, void (*free_it)(T*)>
struct with_free {
  void operator()(T* x) const { free_it(x); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, with_free<EVP_PKEY, EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, with_free<X509, X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, with_free<X509_EXTENSION, X509_EXTENSION_free>>;
using bio_ptr = std::unique_ptr<BIO, with_free<BIO, BIO_free_all>>;

error openssl_fault(const std::string& what) {
  char text[256] = "no reason given";
  if (auto code = ERR_get_error())
    ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return {errc::internal, what + ": " + text};
}

struct identity {
  key_ptr key;
  certificate_ptr certificate;
};

struct wanted_certificate {
  std::string name;    ///< common name
  std::string usage;   ///< keyUsage
  std::string purpose; ///< extendedKeyUsage; empty: the certificate is that of a CA
  std::string names;   ///< subjectAltName; empty: none
};

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

result<void> check_host(const std::string& host) {
  bool plain = !host.empty() && host.size() <= 253;
  for (char c : host)
    plain =
      plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' || c == '*');
  if (plain || is_address(host))
    return {};
  return error{errc::invalid,
               "'" + host + "' is not a host name or address\nhint: --host head.example.org, without a port"};
}

std::string alternative_names(std::vector<std::string> hosts) {
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  std::string out;
  std::vector<std::string> seen;
  for (const auto& host : hosts) {
    if (std::find(seen.begin(), seen.end(), host) != seen.end())
      continue;
    seen.push_back(host);
    out += (out.empty() ? "" : ",") + std::string(is_address(host) ? "IP:" : "DNS:") + host;
  }
  return out;
}

bool extend(X509* certificate, X509* issuer, int kind, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  extension_ptr made{X509V3_EXT_conf_nid(nullptr, &context, kind, text.c_str())};
  return made && X509_add_ext(certificate, made.get(), -1) == 1;
}

/// Makes a certificate that `ca` signs; it signs itself if `ca` is null.
result<identity> make_identity(const wanted_certificate& want, int days, const identity* ca) {
  identity out{key_ptr{EVP_EC_gen("P-256")}, certificate_ptr{X509_new()}};
  if (!out.key || !out.certificate)
    return openssl_fault("cannot make a key");
  auto* c = out.certificate.get();
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1)
    return openssl_fault("no random bytes");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40); // positive and of full length
  std::unique_ptr<BIGNUM, with_free<BIGNUM, BN_free>> number{BN_bin2bn(serial, sizeof serial, nullptr)};
  auto* subject = X509_get_subject_name(c);
  bool ok =
    number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(c)) && X509_set_version(c, 2) == 1 &&
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("Troupe"),
                               -1, -1, 0) == 1 &&
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(want.name.c_str()), -1, -1, 0) == 1 &&
    X509_set_issuer_name(c, ca ? X509_get_subject_name(ca->certificate.get()) : subject) == 1 &&
    // The certificate is valid from an hour ago on, for hosts whose clocks differ a little.
    X509_gmtime_adj(X509_getm_notBefore(c), -3600) &&
    X509_time_adj_ex(X509_getm_notAfter(c), days, 0, nullptr) && X509_set_pubkey(c, out.key.get()) == 1;
  auto* issuer = ca ? ca->certificate.get() : c;
  ok = ok &&
       extend(c, issuer, NID_basic_constraints, ca ? "critical,CA:FALSE" : "critical,CA:TRUE,pathlen:0") &&
       extend(c, issuer, NID_key_usage, "critical," + want.usage) &&
       extend(c, issuer, NID_subject_key_identifier, "hash") &&
       extend(c, issuer, NID_authority_key_identifier, "keyid");
  ok = ok && (want.purpose.empty() || extend(c, issuer, NID_ext_key_usage, want.purpose)) &&
       (want.names.empty() || extend(c, issuer, NID_subject_alt_name, want.names)) &&
       X509_sign(c, ca ? ca->key.get() : out.key.get(), EVP_sha256()) > 0;
  if (!ok)
    return openssl_fault("cannot make the certificate of " + want.name);
  return out;
}

std::string bytes_of(BIO* bio) {
  char* data = nullptr;
  auto size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

result<std::string> pem_of(X509* certificate) {
  bio_ptr out{BIO_new(BIO_s_mem())};
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1)
    return openssl_fault("cannot write a certificate");
  return bytes_of(out.get());
}

result<std::string> pem_of(EVP_PKEY* key) {
  bio_ptr out{BIO_new(BIO_s_secmem())};
  if (!out || PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_fault("cannot write a key");
  return bytes_of(out.get());
}

} // namespace

result<void> make_tls_files(const fs::path& dir, const std::vector<std::string>& hosts, int days,
                            bool replace) {
  for (const auto& host : hosts)
    if (auto ok = check_host(host); !ok)
      return ok;
  std::error_code fault;
  fs::create_directories(dir, fault);
  if (fault)
    return error{errc::io, "cannot make the folder '" + dir.string() + "': " + fault.message()};
  for (const char* name :
       {"ca.pem", "ca.key", "master.pem", "master.key", "agent.pem", "agent.key", "join-token"})
    if (!replace && fs::exists(fs::symlink_status(dir / name, fault)))
      return error{errc::conflict, "'" + (dir / name).string() +
                                     "' exists already\nhint: choose another --dir, or make all"
                                     " files new with --replace; every node then needs its new ones"};
  auto ca = make_identity({"Troupe cluster CA", "keyCertSign,cRLSign", "", ""}, days, nullptr);
  if (!ca)
    return ca.error();
  const std::string both_ends = "serverAuth,clientAuth";
  auto master =
    make_identity({"Troupe master", "digitalSignature", both_ends, alternative_names(hosts)}, days, &*ca);
  if (!master)
    return master.error();
  auto agent = make_identity({"Troupe agent", "digitalSignature", "clientAuth", ""}, days, &*ca);
  if (!agent)
    return agent.error();
  std::vector<new_file> files;
  for (const auto& [name, who] : {std::pair{"ca", &*ca}, {"master", &*master}, {"agent", &*agent}}) {
    auto certificate = pem_of(who->certificate.get());
    auto key = pem_of(who->key.get());
    if (!certificate || !key)
      return certificate ? key.error() : certificate.error();
    files.push_back({std::string(name) + ".pem", std::move(*certificate), 0644});
    files.push_back({std::string(name) + ".key", std::move(*key), 0600});
  }
  files.push_back({"join-token", random_hex(32) + "\n", 0600});
  return replace_files(dir, files);
}

} // namespace troupe::node
