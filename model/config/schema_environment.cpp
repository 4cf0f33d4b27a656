// What a task finds around it: image, variables, ports, mounts, devices.

#include "model/config/shapes.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::config {
namespace {

void give_to_all(value& x) {
  auto all = value::object();
  for (auto device : {"cpu", "cuda", "rocm"})
    all[device] = x;
  x = std::move(all);
}

/// Turns an image or list of variables for all device types into a map; `gpu` is the old name of `cuda`.
void spread_image(value& x) {
  if (x.is_string())
    give_to_all(x);
  else if (x.is_object() && x.contains("gpu")) {
    if (!x.contains("cuda") || x["cuda"].is_null())
      x["cuda"] = x["gpu"];
    x.erase("gpu");
  }
}

void spread_variables(value& x) {
  if (x.is_array()) {
    give_to_all(x);
    return;
  }
  spread_image(x);
  for (auto device : {"cpu", "cuda", "rocm"})
    if (!x.contains(device) || x[device].is_null())
      x[device] = value::array();
}

bool is_absolute(std::string_view path) { return path.starts_with('/'); }
bool is_not_dot(std::string_view path) { return path != "."; }
bool names_a_variable(std::string_view text) { return !text.starts_with('='); }

/// /host:/container or /host:/container:rwm
bool is_device(std::string_view text) {
  auto colon = text.find(':');
  return text.starts_with('/') && colon != std::string_view::npos &&
         text.substr(colon + 1).starts_with('/') && std::count(text.begin(), text.end(), ':') <= 2;
}

void split_device(value& x) {
  if (!x.is_string())
    return;
  std::string text = x.get<std::string>();
  auto first = text.find(':');
  if (first == std::string::npos)
    return;
  auto second = text.find(':', first + 1);
  x = {{"host_path", text.substr(0, first)},
       {"container_path", text.substr(first + 1, second == std::string::npos ? second : second - first - 1)}};
  if (second != std::string::npos)
    x["mode"] = text.substr(second + 1);
}

shape_ref fitting(schema_table& t, bool (*fits)(std::string_view), std::string pattern, std::string says) {
  auto& s = t.make();
  s.kinds = text_bit;
  s.fits = fits;
  s.pattern = std::move(pattern);
  s.pattern_says = std::move(says);
  return &s;
}

void add_mounts(schema_table& t) {
  auto& mount = t.make("bind-mount");
  mount.kinds = map_bit;
  mount.doc = "A directory of the host that tasks see.";
  mount.keys = {required("host_path", fitting(t, is_absolute, "^/", "an absolute path"),
                         "The directory on the host; absolute."),
                required("container_path", fitting(t, is_not_dot, R"(^(?!\.$))", "another path than '.'"),
                         "Path at which tasks see it; a relative path begins at the working directory."),
                given("read_only", boolean(t), false, "Whether tasks may only read it."),
                given("propagation", text(t), "rprivate", "The mount propagation.")};
  auto& mounts = t.make("bind-mounts");
  mounts.kinds = list_bit;
  mounts.items = &mount;
  mounts.doc = "Directories of the host that tasks see.";
  mounts.merge = merging::by_container_path;

  auto& device = t.make("device");
  device.kinds = map_bit;
  device.doc = "A device of the host that tasks see.";
  device.keys = {
    required("host_path", text(t), "The device on the host."),
    required("container_path", text(t), "Path at which tasks see it."),
    given("mode", text(t), "mrw", "Rights of tasks: r (read), w (write), m (make device nodes).")};
  auto& devices = t.make("devices");
  auto& one = t.make();
  one.kinds = map_bit | text_bit;
  one.alternatives = {
    &device, fitting(t, is_device, "^/[^:]*:/[^:]*(:[rwm]*)?", "a device as /host:/container[:rwm]")};
  one.shim = split_device;
  devices.kinds = list_bit;
  devices.items = &one;
  devices.doc = "Devices of the host that tasks see.";
  devices.merge = merging::by_container_path;
}

void add_images(schema_table& t) {
  auto image_of = [&](const char* device, bool run) {
    value usual =
      std::string_view(device) == "rocm" ? "determinedai/pytorch-rocm-dev" : "determinedai/pytorch-ngc-dev";
    auto doc = std::string("The image for ") + device + " slots.";
    return run ? to_run(given(device, text(t), usual, doc)) : quiet(unset(device, text(t), doc));
  };
  auto& map = t.make("environment-image-map");
  map.kinds = map_bit;
  map.doc = "An image by device type.";
  map.keys = {image_of("cpu", true), image_of("cuda", true), image_of("rocm", true), image_of("gpu", false)};
  map.keys[3].doc = "The old name of cuda.";
  map.merge = merging::by_key;
  map.shim = spread_image;
  auto& image = t.make("environment-image");
  image.kinds = map_bit | text_bit;
  image.alternatives = {&map, text(t)};
  image.shim = spread_image;
  image.merge = merging::by_key;
  image.doc =
    "The container image, or one by device type (cpu, cuda, rocm). Tasks of the process runtime ignore it.";

  const auto variable = fitting(t, names_a_variable, "^($|[^=])", "NAME=VALUE, or NAME alone");
  auto strings = list_of(t, variable);
  auto& lists = t.make("environment-variables-map");
  lists.kinds = map_bit;
  lists.doc = "Variables by device type.";
  for (auto device : {"cpu", "cuda", "rocm"})
    lists.keys.push_back(
      given(device, strings, value::array(), std::string("Variables on ") + device + " slots."));
  lists.keys.push_back(quiet(unset("gpu", strings, "The old name of cuda.")));
  lists.merge = merging::by_key;
  lists.shim = spread_variables;
  for (auto& k : lists.keys) {
    auto& appended = t.make();
    appended.kinds = list_bit;
    appended.items = variable;
    appended.merge = merging::variables_last;
    k.what = &appended;
  }
  auto& variables = t.make("environment-variables");
  variables.kinds = map_bit | list_bit;
  variables.alternatives = {&lists, strings};
  variables.shim = spread_variables;
  variables.merge = merging::by_key;
  variables.doc = "NAME=VALUE, or NAME alone: a list, or one by device type (cpu, cuda, rocm).";
}

void add_ports(schema_table& t) {
  auto& port = t.make("proxy-port");
  port.kinds = map_bit;
  port.doc = "A port of the task that the master forwards.";
  port.keys = {
    required("proxy_port", integer(t, {.least = 1, .most = 65535}), "The port."),
    given("proxy_tcp", boolean(t), false, "Whether the port is forwarded as TCP, not as HTTP."),
    given("unauthenticated", boolean(t), false, "Whether the port may be used without login."),
    given("default_service_id", boolean(t), false, "Whether the task's own address means this port.")};
  auto& ports = t.make("proxy-ports");
  ports.kinds = list_bit;
  ports.items = &port;
  ports.doc = "Ports of the task that the master forwards.";
  ports.merge = merging::by_port;
  auto& auth = t.make("registry-auth");
  auth.kinds = map_bit;
  auth.doc = "The login of the image registry.";
  auth.merge = merging::by_key;
  for (auto [name, doc] : {std::pair{"username", "The user."},
                           {"password", "The password."},
                           {"auth", "User and password as base64."},
                           {"email", "The address of the user."},
                           {"serveraddress", "The registry."},
                           {"identitytoken", "A token in place of a password."},
                           {"registrytoken", "A bearer token."}})
    auth.keys.push_back(quiet(unset(name, text(t), doc)));
}

/// A key that must not be given, with the reason.
key forbidden(schema_table& t, std::string name, std::string why) {
  auto& s = t.make();
  s.kinds = bit(kind::null);
  s.pattern_says = std::move(why);
  auto k = quiet(unset(std::move(name), &s, "Not configurable."));
  k.nullable = false;
  k.fallback.reset();
  return k;
}

/// Keys of the task's own container, with the reason why nobody may set them.
constexpr std::pair<const char*, const char*> our_parts[] = {
  {"image", "container Image is not configurable, set it in the experiment config"},
  {"command", "container Command is not configurable"},
  {"args", "container Args are not configurable"},
  {"working_dir", "container WorkingDir is not configurable"},
  {"ports", "container Ports are not configurable"},
  {"liveness_probe", "container LivenessProbe is not configurable"},
  {"readiness_probe", "container ReadinessProbe is not configurable"},
  {"startup_probe", "container StartupProbe is not configurable"},
  {"lifecycle", "container Lifecycle is not configurable"},
  {"termination_message_path", "container TerminationMessagePath is not configurable"},
  {"termination_message_policy", "container TerminationMessagePolicy is not configurable"},
  {"image_pull_policy", "container ImagePullPolicy is not configurable, set it in the experiment config"},
  {"security_context", "container SecurityContext is not configurable, set it in the experiment config"},
};

bool has_a_name_or_sets_nothing_of_ours(const node& container) {
  return container.find("name") || std::none_of(std::begin(our_parts), std::end(our_parts),
                                                [&](const auto& part) { return container.find(part.first); });
}

shape_ref pod_spec(schema_table& t) {
  auto& own = t.make();
  own.kinds = map_bit;
  own.open = true;
  for (auto [name, why] : our_parts)
    own.keys.push_back(forbidden(t, name, why));
  own.keys.push_back(quiet(unset("name", anything(t), "The name of the container.")));
  auto& container = t.make();
  container.doc = "A container of the pod; 'determined-container' is the task's own.";
  container.kinds = map_bit;
  container.discriminator = "name";
  container.open = true;
  container.members = {{"determined-container", &own}};
  container.rules.push_back(
    {"a container without a name is the task's own, whose image, command and the like are not configurable",
     has_a_name_or_sets_nothing_of_ours, "", need::always, nullptr, "give the container a name"});
  auto& spec = t.make();
  spec.kinds = map_bit;
  spec.open = true;
  spec.merge = merging::pod;
  spec.keys.push_back(quiet(unset("containers", list_of(t, &container), "The containers of the pod.")));
  auto& pod = t.make();
  pod.kinds = map_bit;
  pod.open = true;
  pod.merge = merging::pod;
  pod.doc = "A Kubernetes pod, merged over the one that the platform makes.";
  pod.keys = {forbidden(t, "name", "pod Name is not a configurable option"),
              forbidden(t, "name_space", "pod NameSpace is not a configurable option"),
              quiet(unset("spec", &spec, "The specification of the pod."))};
  return &pod;
}

} // namespace

void add_environment(schema_table& t) {
  add_mounts(t);
  add_images(t);
  add_ports(t);
  auto& e = t.make("environment");
  e.kinds = map_bit;
  e.doc = "Surroundings of a task: variables, image, ports.";
  e.merge = merging::by_key;
  auto strings = list_of(t, text(t));
  e.keys = {
    to_run(given("image", t.at("environment-image"), value::object(), t.at("environment-image")->doc)),
    given("environment_variables", t.at("environment-variables"), value::array(),
          t.at("environment-variables")->doc),
    given("proxy_ports", t.at("proxy-ports"), value::array(), t.at("proxy-ports")->doc),
    given("ports", map_of(t, integer(t)), value::object(), "Ports of the container by name."),
    given("force_pull_image", boolean(t), false, "Whether the image is fetched anew for each task."),
    unset("registry_auth", t.at("registry-auth"), t.at("registry-auth")->doc),
    given("add_capabilities", strings, value::array(), "Linux capabilities to add."),
    given("drop_capabilities", strings, value::array(), "Linux capabilities to take away."),
    unset("pod_spec", pod_spec(t), "A Kubernetes pod, merged over the one that the platform makes."),
  };
}

} // namespace troupe::config
