#include "workers/slot_devices.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <fstream>
#include <mutex>

namespace troupe::workers {
namespace {

// The part of NVML's interface that is used, as its documentation gives it. 0 means success.
using nvml_device = void*;
struct nvml_memory {
  unsigned long long total = 0, free = 0, used = 0; // bytes
};
struct nvml_rates {
  unsigned gpu = 0, memory = 0; // percent of the last sampling period
};
constexpr int temperature_of_gpu = 0, uncorrected_errors = 1, since_driver_load = 0;

struct nvml {
  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, nvml_device*) = nullptr;
  int (*name)(nvml_device, char*, unsigned) = nullptr;
  int (*uuid)(nvml_device, char*, unsigned) = nullptr;
  int (*memory)(nvml_device, nvml_memory*) = nullptr;
  int (*rates)(nvml_device, nvml_rates*) = nullptr;
  int (*temperature)(nvml_device, int, unsigned*) = nullptr;
  int (*ecc_errors)(nvml_device, int, int,
                    unsigned long long*) = nullptr; // these two are absent in old drivers
  const char* (*text)(int) = nullptr;
};

class nvidia_devices final : public slot_devices {
public:
  struct device {
    nvml_device handle;
    std::string name, uuid;
  };
  nvidia_devices(void* library, const nvml& calls) : library_(library), nvml_(calls) {}
  ~nvidia_devices() override {
    nvml_.shut_down();
    dlclose(library_);
  }

  bool find(const std::optional<std::string>& visible) {
    unsigned n = 0;
    if (nvml_.count(&n) != 0)
      return false;
    std::vector<device> all;
    for (unsigned i = 0; i < n; ++i) {
      device d{};
      char name[96] = "", uuid[96] = "";
      if (nvml_.by_index(i, &d.handle) != 0 || nvml_.uuid(d.handle, uuid, sizeof uuid) != 0)
        continue; // a lost GPU is not a slot
      nvml_.name(d.handle, name, sizeof name);
      d.name = name;
      d.uuid = uuid;
      all.push_back(std::move(d));
    }
    if (!visible) {
      devices_ = std::move(all);
      return !devices_.empty();
    }
    for (std::size_t at = 0; at < visible->size();) { // CUDA, too, reads up to the first that does not exist
      const auto end = std::min(visible->find(',', at), visible->size());
      const auto word = visible->substr(at, end - at);
      at = end + 1;
      const bool index =
        !word.empty() && word.size() < 4 && word.find_first_not_of("0123456789") == word.npos;
      const auto it =
        index ? all.begin() + std::min<std::ptrdiff_t>(std::stoi(word), std::ptrdiff_t(all.size()))
              : std::find_if(all.begin(), all.end(),
                             [&](const device& d) { return !word.empty() && d.uuid.starts_with(word); });
      if (it == all.end())
        break;
      devices_.push_back(*it);
    }
    return !devices_.empty();
  }

  std::size_t count() const override { return devices_.size(); }

  std::vector<slot_look> look() override {
    std::lock_guard held(lock_);
    std::vector<slot_look> looks;
    for (const auto& d : devices_) {
      slot_look x;
      x.kind = "cuda";
      x.name = d.name;
      x.uuid = d.uuid;
      nvml_memory memory;
      if (const int why = nvml_.memory(d.handle, &memory); why == 0) {
        x.memory_bytes = memory.total;
        x.memory_used_bytes = memory.used;
      } else {
        x.fault = nvml_.text ? nvml_.text(why) : "NVML error " + std::to_string(why);
      }
      if (nvml_rates rates; nvml_.rates(d.handle, &rates) == 0)
        x.utilization_percent = rates.gpu;
      if (unsigned celsius = 0; nvml_.temperature(d.handle, temperature_of_gpu, &celsius) == 0)
        x.temperature_celsius = celsius;
      if (unsigned long long errors = 0;
          nvml_.ecc_errors && nvml_.ecc_errors(d.handle, uncorrected_errors, since_driver_load, &errors) == 0)
        x.errors = errors;
      looks.push_back(std::move(x));
    }
    return looks;
  }

private:
  void* library_;
  nvml nvml_;
  std::vector<device> devices_;
  std::mutex lock_;
};

template <class F>
bool load(void* library, const char* name, F& into) {
  into = reinterpret_cast<F>(dlsym(library, name));
  return into != nullptr;
}

} // namespace

std::unique_ptr<slot_devices> find_nvidia_devices(const std::optional<std::string>& visible,
                                                  std::string* why) {
  const auto none = [&](const std::string& text) {
    if (why)
      *why = text;
    return nullptr;
  };
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return none("there is no libnvidia-ml.so.1");
  nvml x;
  const bool whole = load(library, "nvmlInit_v2", x.init) & load(library, "nvmlShutdown", x.shut_down) &
                     load(library, "nvmlDeviceGetCount_v2", x.count) &
                     load(library, "nvmlDeviceGetHandleByIndex_v2", x.by_index) &
                     load(library, "nvmlDeviceGetName", x.name) & load(library, "nvmlDeviceGetUUID", x.uuid) &
                     load(library, "nvmlDeviceGetMemoryInfo", x.memory) &
                     load(library, "nvmlDeviceGetUtilizationRates", x.rates) &
                     load(library, "nvmlDeviceGetTemperature", x.temperature);
  load(library, "nvmlDeviceGetTotalEccErrors", x.ecc_errors);
  load(library, "nvmlErrorString", x.text);
  if (!whole) {
    dlclose(library);
    return none("libnvidia-ml.so.1 lacks a call that Troupe needs: a newer driver has it");
  }
  if (const int fault = x.init(); fault != 0) {
    const std::string text = x.text ? x.text(fault) : std::to_string(fault);
    dlclose(library);
    return none("NVML does not start: " + text);
  }
  auto devices = std::make_unique<nvidia_devices>(library, x);
  if (!devices->find(visible))
    return none("NVML sees no GPU" + std::string(visible ? " that CUDA_VISIBLE_DEVICES names" : ""));
  return devices;
}

std::string processor_name() {
  static const auto name = []() -> std::string {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("model name"))
        if (const auto colon = line.find(": "); colon != line.npos)
          return line.substr(colon + 2);
    return "CPU";
  }();
  return name;
}

} // namespace troupe::workers
