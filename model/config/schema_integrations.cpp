// The services outside of the cluster that an experiment uses.

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
      {required("host", text(t), "Host of the service."),
       required("port", integer(t), "Port of the service.")});
  map("pachyderm-proxy", "The Pachyderm proxy.",
      {required("scheme", text(t), "http or https."), required("host", text(t), "Host of the service."),
       required("port", integer(t), "Port of the service.")});
  map("pachyderm-dataset", "The data that the experiment reads.",
      {required("project", text(t), "Project of the data."),
       required("repo", text(t), "Repository of the data."),
       required("commit", text(t), "Commit of the data."), required("branch", text(t), "Branch of the data."),
       required("token", text(t), "Token that reads the data.")});
  map("pachyderm", "The Pachyderm data that the experiment reads; shown as its origin.",
      {required("pachd", t.at("pachyderm-pachd"), "The Pachyderm daemon."),
       required("proxy", t.at("pachyderm-proxy"), "The Pachyderm proxy."),
       required("dataset", t.at("pachyderm-dataset"), "The data that the experiment reads.")});
  map("webhooks", "Webhooks that are called for this experiment.",
      {unset("webhook_id", list_of(t, integer(t)), "Webhooks by id."),
       unset("webhook_name", list_of(t, text(t)), "Webhooks by name."),
       given("exclude", boolean(t), false, "Whether all others are meant.")});
  map("integrations", "Services outside that the experiment is tied to.",
      {unset("pachyderm", t.at("pachyderm"), t.at("pachyderm")->doc),
       unset("webhooks", t.at("webhooks"), t.at("webhooks")->doc)});
  map("kerberos", "Key of older versions; ignored.", {required("config_file", text(t), "A file.")});
  map("security", "Key of older versions; ignored.",
      {unset("kerberos", t.at("kerberos"), "Key of older versions; ignored.")});
}

} // namespace troupe::config
