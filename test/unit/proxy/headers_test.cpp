#include "runtime/proxy/headers.hpp"

#include <gtest/gtest.h>

namespace troupe::proxy {
namespace {

std::string text(const header_list& list) {
  std::string out;
  for (const auto& [name, value] : list)
    out += name + ": " + value + "\n";
  return out;
}

TEST(ProxyHeaders, NoCredentialOfTheViewerReachesTheTask) {
  const header_list came = {
    {"Host", "head:8080"},
    {"Authorization", "Bearer u1.secret"},
    {"Grpc-Metadata-x-user-token", "Bearer u1.secret"},
    {"grpc-metadata-anything", "x"},
    {"Cookie",
     "auth=u1.secret; username-2f0c=theirs; troupe-12345678=u1.secret; troupe-task-2f0c0000=v1.x; _xsrf=t"},
    {"cookie", "AUTH=again"},
    {"X-Forwarded-For", "6.6.6.6"},
    {"X-Forwarded-User", "root"},
    {"X-Real-IP", "6.6.6.6"},
    {"X_Real_IP", "6.6.6.6"},
    {"X_Forwarded_For", "6.6.6.6"},
    {"Grpc_Metadata_x_user_token", "Bearer u1.secret"},
    {"Forwarded", "for=6.6.6.6"},
    {"Connection", "keep-alive, X-Secret, host"},
    {"X-Secret", "named by Connection"},
    {"Keep-Alive", "5"},
    {"TE", "trailers"},
    {"Transfer-Encoding", "chunked"},
    {"Content-Length", "12"},
    {"Upgrade", "websocket"},
    {"Expect", "100-continue"},
    {"Proxy-Authorization", "x"},
    {"X-XSRFToken", "t"},
    {"Content-Type", "text/plain"},
  };
  EXPECT_EQ(text(to_service(came, {"10.0.0.7", true, false})), "Host: head:8080\n"
                                                               "Cookie: username-2f0c=theirs; _xsrf=t\n"
                                                               "X-XSRFToken: t\n"
                                                               "Content-Type: text/plain\n"
                                                               "X-Real-IP: 10.0.0.7\n"
                                                               "X-Forwarded-For: 10.0.0.7\n"
                                                               "X-Forwarded-Proto: https\n"
                                                               "X-Forwarded-Host: head:8080\n");
}

TEST(ProxyHeaders, AnAuthorizationOfTheServiceItselfPasses) {
  const header_list came = {{"Authorization", "token abc"}};
  EXPECT_EQ(first_of(to_service(came, {"::1", false, true}), "authorization"), "token abc");
  EXPECT_EQ(first_of(to_service(came, {"::1", false, false}), "authorization"), "");
}

TEST(ProxyHeaders, ATaskSetsNothingThatIsTheClusters) {
  const header_list came = {
    {"Content-Type", "text/html"},
    {"Set-Cookie", "username-2f0c=v; Path=/proxy/2f0c/; Domain=head; HttpOnly"},
    {"Set-Cookie", "troupe-12345678=forged; Path=/"},
    {"set-cookie", "auth=forged"},
    {"Set-Cookie", "=auth=forged; Path=/"},
    {"Set-Cookie", "auth"},
    {"Set-Cookie", "Troupe-Task-2f0c=forged"},
    {"Set-Cookie", " plain=1;DOMAIN = .org"},
    {"Service-Worker-Allowed", "/"},
    {"Clear-Site-Data", "\"*\""},
    {"Strict-Transport-Security", "max-age=1"},
    {"Connection", "close"},
    {"Transfer-Encoding", "chunked"},
    {"Location", "/proxy/2f0c/lab"},
  };
  EXPECT_EQ(text(to_viewer(came)), "Content-Type: text/html\n"
                                   "Set-Cookie: username-2f0c=v; Path=/proxy/2f0c/; HttpOnly\n"
                                   "Set-Cookie: plain=1\n"
                                   "Location: /proxy/2f0c/lab\n");
}

TEST(ProxyHeaders, FindsACookie) {
  EXPECT_EQ(cookie_in("a=1; troupe-task-x=v1.2; b=3", "troupe-task-x"), "v1.2");
  EXPECT_EQ(cookie_in("a=1; troupe-task-xy=v1.2", "troupe-task-x"), "");
  EXPECT_EQ(cookie_in("", "a"), "");
}

} // namespace
} // namespace troupe::proxy
