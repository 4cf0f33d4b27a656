// Routes for webhooks, which receive events, and for events that tasks and users make themselves.
// actors/catalogue/deliveries decides what is sent and when.

#include "runtime/api/errors.hpp"
#include "runtime/api/fields.hpp"
#include "runtime/api/place_shapes.hpp"
#include "runtime/api/route.hpp"
#include "storage/keys.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

using storage::records_of;

constexpr std::string_view trigger_prefix = "TRIGGER_TYPE_";

value shape(const webhook_changed& x) {
  value triggers = value::array();
  for (const auto& one : x.triggers)
    triggers.push_back({{"id", triggers.size() + 1},
                        {"webhookId", x.id.value},
                        {"triggerType", std::string(trigger_prefix) + one.value("type", std::string())},
                        {"condition", one.value("condition", value::object())}});
  return {{"id", x.id.value},
          {"name", x.name},
          {"url", x.url},
          {"webhookType", x.slack ? "WEBHOOK_TYPE_SLACK" : "WEBHOOK_TYPE_DEFAULT"},
          {"workspaceId", x.workspace.value},
          {"mode", x.specific ? "WEBHOOK_MODE_SPECIFIC" : "WEBHOOK_MODE_WORKSPACE"},
          {"triggers", std::move(triggers)}};
}

result<std::vector<webhook_changed>> all_webhooks(const storage::reader& storage) {
  auto all = records_of<webhook_changed>(storage);
  if (all)
    std::erase_if(*all, [](const auto& one) { return one.deleted; });
  return all;
}

/// The owner of a webhook, who is the owner of its workspace. Webhooks of all workspaces belong to admins and
/// have no owner.
result<std::string> owner_of(const call& c, workspace_id in) {
  if (!in)
    return std::string();
  auto book = place_book::read(*c.parts->storage);
  if (!book)
    return book.error();
  const auto* workspace = book->find(in);
  if (!workspace)
    return error{errc::not_found, "workspace '" + to_string(in) + "' not found"};
  return workspace->owner;
}

result<void> may(const call& c, action what, webhook_id id, workspace_id in) {
  auto owner = owner_of(c, in);
  if (!owner)
    return owner.error();
  return allowed(c, what, {thing::webhook, id ? to_string(id) : std::string(), *owner});
}

/// The list of webhooks. Those of all workspaces are shown to everybody; others to users who may change them,
/// or whose roles let them see them.
result<value> list(const call& c) {
  auto all = all_webhooks(*c.parts->storage);
  if (!all)
    return all.error();
  std::sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  value shaped = value::array();
  for (const auto& one : *all) {
    const bool by_roles = c.by.roles && !c.by.is_task(); // then storage shows those that the caller may see
    const bool changes = by_roles ? c.by.roles->holds(authority::permission::edit_webhooks, one.workspace)
                                  : bool(may(c, action::change, one.id, one.workspace));
    if (one.workspace && !changes && !by_roles)
      continue;
    shaped.push_back(shape(one));
    if (!changes) // the rest of the address may hold a secret of the receiver
      shaped.back()["url"] = one.url.substr(0, one.url.find_first_of("/?#", one.url.find("//") + 2));
  }
  return value{{"webhooks", std::move(shaped)}};
}

result<webhook_changed> named(const call& c) {
  const auto text = c.named("webhookId");
  const auto id = parse_id<webhook_id>(text);
  auto all = all_webhooks(*c.parts->storage);
  if (!all)
    return all.error();
  for (const auto& one : *all)
    if (one.id == id)
      return one;
  return error{errc::not_found, "webhook '" + std::string(text.substr(0, 30)) + "' not found"};
}

result<value> trigger_in(const value& one, std::size_t number) {
  if (!one.is_object())
    return error{errc::invalid, "triggers[" + std::to_string(number) + "]: has to be an object"};
  fields f{one, "triggers[" + std::to_string(number) + "]"};
  auto type = f.text("triggerType");
  const auto condition = f.object("condition");
  if (f.bad())
    return *f.bad();
  if (!type.starts_with(trigger_prefix))
    return error{errc::invalid, "triggers[" + std::to_string(number) +
                                  "].triggerType: has to be TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE, "
                                  "TRIGGER_TYPE_TASK_LOG or TRIGGER_TYPE_CUSTOM"};
  return value{{"type", type.substr(trigger_prefix.size())}, {"condition", condition}};
}

void create(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::webhook_create with;
  with.name = f.text("name");
  if (f.has("name") && with.name.empty())
    f.fault("name", "has to be a name, or left out");
  with.url = f.text("url");
  const auto type = f.text("webhookType", "WEBHOOK_TYPE_DEFAULT"),
             mode = f.text("mode", "WEBHOOK_MODE_WORKSPACE");
  with.workspace = f.id<workspace_id>("workspaceId");
  if (type != "WEBHOOK_TYPE_DEFAULT" && type != "WEBHOOK_TYPE_SLACK")
    f.fault("webhookType", "has to be WEBHOOK_TYPE_DEFAULT or WEBHOOK_TYPE_SLACK");
  if (mode != "WEBHOOK_MODE_WORKSPACE" && mode != "WEBHOOK_MODE_SPECIFIC")
    f.fault("mode", "has to be WEBHOOK_MODE_WORKSPACE or WEBHOOK_MODE_SPECIFIC");
  with.slack = type == "WEBHOOK_TYPE_SLACK";
  with.specific = mode == "WEBHOOK_MODE_SPECIFIC";
  for (const auto& one : f.list("triggers")) {
    auto read = trigger_in(one, with.triggers.size());
    if (!read)
      return back(failure(read.error()));
    with.triggers.push_back(std::move(*read));
  }
  if (f.bad())
    return back(failure(*f.bad()));
  if (auto fine = may(*c, action::create, {}, with.workspace); !fine)
    return back(failure(fine.error()));
  auto as_made = with;
  command(c, back, std::move(with), [made = std::move(as_made)](value got) -> result<value> {
    webhook_changed x;
    x.id = {got.at("id").get<std::uint64_t>()};
    x.name = made.name;
    x.url = made.url;
    x.slack = made.slack;
    x.specific = made.specific;
    x.workspace = made.workspace;
    x.triggers = made.triggers;
    return value{{"webhook", shape(x)}};
  });
}

/// The handler of an order on a webhook, if the caller may change it.
template <class Make>
handler on_webhook(action what, Make make) {
  return [what, make](const call_ptr& c, const reply& back) {
    auto at = named(*c);
    if (!at)
      return back(failure(at.error()));
    if (auto fine = may(*c, what, at->id, at->workspace); !fine)
      return back(failure(at->workspace && !may(*c, action::change, at->id, at->workspace)
                            ? error{errc::not_found, "webhook '" + to_string(at->id) + "' not found"}
                            : fine.error()));
    make(c, back, *at);
  };
}

void patch(const call_ptr& c, const reply& back, const webhook_changed& at) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  f.need("url");
  const auto url = f.text("url");
  if (f.bad())
    return back(failure(*f.bad()));
  command(c, back, commands::webhook_change{at.id, url});
}
void remove(const call_ptr& c, const reply& back, const webhook_changed& at) {
  command(c, back, commands::webhook_remove{at.id});
}
void test(const call_ptr& c, const reply& back, const webhook_changed& at) {
  command(c, back, commands::webhook_test{at.id}, as_it_is);
}

/// Sends an event that the caller makes. A task may do so for its own experiment, a user for each experiment
/// that the user may change.
void alert(const call_ptr& c, const reply& back) {
  auto body = parse_object(c->body);
  if (!body)
    return back(failure(body.error()));
  fields f{*body};
  commands::webhook_alert with;
  f.need("experimentId");
  with.experiment = f.id<experiment_id>("experimentId");
  with.trial = f.id<trial_id>("trialId");
  fields data{f.object("data"), "data"};
  with.title = data.text("title");
  with.description = data.text("description");
  with.level = data.text("level", "LOG_LEVEL_INFO");
  if (with.level.starts_with("LOG_LEVEL_"))
    with.level.erase(0, std::string_view("LOG_LEVEL_").size());
  if (f.bad() || data.bad())
    return back(failure(f.bad() ? *f.bad() : *data.bad()));
  auto row = c->parts->storage->experiment(with.experiment);
  if (!row)
    return back(failure({errc::not_found, "experiment '" + to_string(with.experiment) + "' not found"}));
  if (c->by.is_task() && c->by.experiment != with.experiment)
    return back(failure({errc::denied, "a task tells of events of its own experiment alone"}));
  if (with.trial) {
    auto trial = c->parts->storage->trial(with.trial);
    if (!trial || trial->experiment != with.experiment)
      return back(failure({errc::not_found, "trial '" + to_string(with.trial) + "' not found"}));
  }
  if (!c->by.is_task())
    if (auto fine = allowed(*c, action::change, {thing::experiment, to_string(with.experiment), row->owner});
        !fine)
      return back(failure(fine.error()));
  command(c, back, std::move(with));
}

} // namespace

std::vector<route> webhook_routes() {
  const authority::need view{action::view, thing::webhook}, make{action::create, thing::webhook},
    change{action::change, thing::webhook}, end{action::remove, thing::webhook},
    tell{action::report, thing::webhook};
  return {
    {"GET", "/api/v1/webhooks", view, answer_with(list), "", "v1GetWebhooksResponse",
     "Receivers of events: those of all workspaces, and those of one's own."},
    asks_again({"POST", "/api/v1/webhooks", make, create, "v1Webhook", "v1PostWebhookResponse",
                "Adds a receiver of events."}),
    asks_again({"PATCH", "/api/v1/webhooks/{webhookId}", change, on_webhook(action::change, patch),
                "v1PatchWebhook", "Empty", "Gives a receiver another address."}),
    asks_again({"DELETE", "/api/v1/webhooks/{webhookId}", end, on_webhook(action::remove, remove), "",
                "Empty", "Deletes a receiver."}),
    asks_again({"POST", "/api/v1/webhooks/{webhookId}/test", change, on_webhook(action::change, test), "",
                "v1TestWebhookResponse", "Sends one event for test; 400 where it does not arrive."}),
    asks_again({"POST", "/api/v1/webhooks/custom", tell, alert, "v1PostWebhookEventDataRequest", "Empty",
                "Tells the receivers that an experiment names of an event of its own."}),
  };
}

} // namespace troupe::api
