#pragma once
// The route table with fakes behind it and no socket in front.

#include "fakes.hpp"

#include "runtime/api/service.hpp"
#include "runtime/api/shapes.hpp"

namespace troupe::api {

struct table {
  table()
      : reader(filled_reader()), users(std::move(*accounts::open({}, t0))),
        api({cluster, reader, users, {"c", "m", "", "0"}, [] { return t0 + 60s; }}) {
    obey_for(cluster, users);
    cluster.answers["agent.list"] = [](const auto&) {
      return value{{"agents",
                    {{{"id", "r4nd0m"},
                      {"name", "a1"},
                      {"host", "127.0.0.1"},
                      {"since", to_rfc3339(t0)},
                      {"state", "alive"},
                      {"slots",
                       {{{"id", 0}, {"device", "cpu"}, {"enabled", true}, {"allocation", "12.2"}},
                        {{"id", 1}, {"device", "cpu"}, {"enabled", true}}}}}}}};
    };
    cluster.answers["experiment.create"] = [](const auto&) { return value{{"id", 7}}; };
    cluster.answers["allocation.rendezvous"] = [](const auto&) {
      return value{{"addresses", {"127.0.0.1"}}, {"slots", {1}}, {"rank", 0}};
    };
    cluster.answers["allocation.preemption"] = [](const auto&) { return value{{"preempt", false}}; };
  }
  response ask(const std::string& method, const std::string& target, request_headers headers,
               const std::string& body = {}) {
    auto let_in = api.admit({method, target, std::move(headers)});
    if (auto* refused = std::get_if<response>(&let_in))
      return std::move(*refused);
    response got;
    api.run(std::move(std::get<admission>(let_in)), body, reply{[&](response x) { got = std::move(x); }});
    while (got.stream) { // reads a stream that does not follow
      auto piece = got.stream->next(t0 + 60s);
      EXPECT_TRUE(piece);
      got.body += piece->bytes;
      if (piece->last)
        got.stream.reset();
    }
    return got;
  }
  request_headers user(const std::string& name = "determined") {
    return {.authorization = "Bearer " + users->log_in(name, "", true, t0 + 59s)->token,
            .cookie = {},
            .user_token = {},
            .allocation_token = {},
            .accept = {},
            .content_type = {},
            .last_event_id = {}};
  }
  request_headers task(allocation_id id = {{12}, {2}}) {
    request_headers h;
    h.allocation_token = "Bearer " + users->allocation_token(id);
    return h;
  }

  fake_gate cluster;
  std::shared_ptr<fake_reader> reader;
  std::shared_ptr<accounts> users;
  service api;
};

} // namespace troupe::api
