// What an experiment is tied to outside.

#include "model/config/shapes.hpp"

namespace troupe::config {

void add_integrations(schema_table& t) {
  auto map = [&](const char* name, const char* doc, std::vector<key> keys) {
    auto& s = t.make(name);
    s.kinds = map_bit;
    s.doc = doc;
    s.keys = std::move(keys);
    s.merge = merging::by_key;
    return &s;
  };
  map("pachyderm-pachd", "The Pachyderm daemon.",
      {required("host", text(t), "Its host."), required("port", integer(t), "Its port.")});
  map("pachyderm-proxy", "The Pachyderm proxy.",
      {required("scheme", text(t), "http or https."), required("host", text(t), "Its host."),
       required("port", integer(t), "Its port.")});
  map("pachyderm-dataset", "The data that the experiment reads.",
      {required("project", text(t), "Its project."), required("repo", text(t), "Its repository."),
       required("commit", text(t), "Its commit."), required("branch", text(t), "Its branch."),
       required("token", text(t), "The token to read it with.")});
  map("pachyderm", "The Pachyderm data that the experiment reads; shown as its origin.",
      {required("pachd", t.at("pachyderm-pachd"), "The Pachyderm daemon."),
       required("proxy", t.at("pachyderm-proxy"), "The Pachyderm proxy."),
       required("dataset", t.at("pachyderm-dataset"), "The data that the experiment reads.")});
  map("webhooks", "Which webhooks hear of this experiment.",
      {unset("webhook_id", list_of(t, integer(t)), "Webhooks by id."),
       unset("webhook_name", list_of(t, text(t)), "Webhooks by name."),
       given("exclude", boolean(t), false, "Whether all others are meant.")});
  map("integrations", "What the experiment is tied to outside.",
      {unset("pachyderm", t.at("pachyderm"), t.at("pachyderm")->doc),
       unset("webhooks", t.at("webhooks"), t.at("webhooks")->doc)});
  map("kerberos", "Of older versions; ignored.", {required("config_file", text(t), "A file.")});
  map("security", "Of older versions; ignored.",
      {unset("kerberos", t.at("kerberos"), "Of older versions; ignored.")});
}

} // namespace troupe::config
