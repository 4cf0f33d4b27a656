#pragma once
// The slots of a host: NVIDIA GPUs, found by NVML, which is loaded at run time, or processors.

#include "model/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::workers {

/// One slot at one moment. What a device does not report is absent.
struct slot_look {
  std::string kind; ///< "cuda" or "cpu"
  std::string name; ///< "NVIDIA H100 80GB HBM3", or the processor's
  std::string uuid; ///< UUID of a GPU, as CUDA_VISIBLE_DEVICES takes it; empty: not a GPU
  std::optional<double>
    utilization_percent; ///< of a CPU slot above 100 where its task uses several processors
  std::optional<std::uint64_t> memory_bytes, memory_used_bytes;
  std::optional<double> temperature_celsius;
  std::optional<std::uint64_t> errors; ///< uncorrected errors of its memory since the driver was loaded
  std::string fault;                   ///< why the device cannot be read, such as "GPU is lost"
};

/// Thread-safe. Calls may take milliseconds, the first one seconds.
class slot_devices {
public:
  virtual ~slot_devices() = default;
  virtual std::size_t count() const = 0;
  virtual std::vector<slot_look> look() = 0; ///< all slots in their order, `count()` of them
};

/// The GPUs of this host that `visible`, the value of CUDA_VISIBLE_DEVICES, names by index or by the
/// beginning of a UUID; all GPUs where it is absent. Null where the library is missing, does not start or
/// sees no GPU; `why`, where given, then says so.
std::unique_ptr<slot_devices> find_nvidia_devices(const std::optional<std::string>& visible,
                                                  std::string* why = nullptr);

/// The name of this host's processor.
std::string processor_name();

} // namespace troupe::workers
