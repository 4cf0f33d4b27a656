#ifdef TROUPE_WITH_NCCL

#include "workers/collectives/nccl_calls.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <vector>

namespace troupe {
namespace {

error lacking(const std::string& what) { return {errc::unsupported, "collective nccl: " + what}; }

// Prefers a library that the program has loaded already, such as PyTorch's, to one of the system.
void* open(const std::vector<std::string>& names) {
  for (const int how : {RTLD_NOLOAD | RTLD_NOW, RTLD_NOW | RTLD_GLOBAL})
    for (const auto& name : names)
      if (!name.empty())
        if (void* found = dlopen(name.c_str(), how))
          return found;
  return nullptr;
}

template <class F>
void find(void* in, const char* name, F& into, std::string& missing) {
  into = reinterpret_cast<F>(dlsym(in, name));
  if (!into)
    missing += std::string(missing.empty() ? "" : ", ") + name;
}

result<nccl_calls> load(const std::string& library) {
  nccl_calls x;
  std::string missing;
  const std::string runtime =
    "libcudart.so." + std::to_string(CUDART_VERSION / 1000); // its structs depend on the first number
  void* cuda = open({runtime});
  if (!cuda)
    return lacking("there is no " + runtime + " (LD_LIBRARY_PATH)");
  find(cuda, "cudaSetDevice", x.set_device, missing);
  find(cuda, "cudaStreamCreate", x.stream_create, missing);
  find(cuda, "cudaStreamDestroy", x.stream_destroy, missing);
  find(cuda, "cudaEventCreateWithFlags", x.event_create, missing);
  find(cuda, "cudaEventRecord", x.event_record, missing);
  find(cuda, "cudaEventQuery", x.event_query, missing);
  find(cuda, "cudaEventDestroy", x.event_destroy, missing);
  find(cuda, "cudaPointerGetAttributes", x.pointer_attributes, missing);
  find(cuda, "cudaGetLastError", x.last_error, missing);
  find(cuda, "cudaGetDeviceCount", x.device_count, missing);
  find(cuda, "cudaGetErrorString", x.cuda_text, missing);
  const char* named = std::getenv("TROUPE_NCCL_LIBRARY");
  const std::string chosen = !library.empty() ? library : named ? named : "";
  void* nccl = open({chosen, chosen.empty() ? "libnccl.so.2" : ""});
  if (!nccl)
    return lacking("there is no " +
                   (chosen.empty() ? "libnccl.so.2 (TROUPE_NCCL_LIBRARY names one)" : chosen));
  find(nccl, "ncclGetUniqueId", x.nccl_unique_id, missing);
  find(nccl, "ncclCommInitRankConfig", x.nccl_init, missing);
  find(nccl, "ncclCommGetAsyncError", x.nccl_async_error, missing);
  find(nccl, "ncclCommFinalize", x.nccl_finalize, missing);
  find(nccl, "ncclCommAbort", x.nccl_abort, missing);
  find(nccl, "ncclAllReduce", x.nccl_all_reduce, missing);
  find(nccl, "ncclBroadcast", x.nccl_broadcast, missing);
  find(nccl, "ncclAllGather", x.nccl_all_gather, missing);
  find(nccl, "ncclReduceScatter", x.nccl_reduce_scatter, missing);
  find(nccl, "ncclGroupStart", x.nccl_group_start, missing);
  find(nccl, "ncclGroupEnd", x.nccl_group_end, missing);
  find(nccl, "ncclGetErrorString", x.nccl_text, missing);
  find(nccl, "ncclGetLastError", x.nccl_last_error, missing);
  find(nccl, "ncclGetVersion", x.nccl_version, missing);
  if (!missing.empty())
    return lacking("the libraries lack " + missing + ": newer ones have it");
  int version = 0;
  if (x.nccl_version(&version) != ncclSuccess || version < 21400)
    return lacking("NCCL " + std::to_string(version) + " is too old: 2.14 or newer is needed");
  if (const auto why = x.device_count(&x.devices); why != cudaSuccess || x.devices == 0) {
    x.last_error();
    return lacking(why == cudaSuccess ? "CUDA sees no device"
                                      : std::string("CUDA sees no device: ") + x.cuda_text(why));
  }
  return x;
}

} // namespace

result<const nccl_calls*> load_nccl(const std::string& library) {
  static std::mutex lock;
  static std::optional<result<nccl_calls>> loaded;
  std::lock_guard held(lock);
  if (!loaded)
    loaded = load(library);
  if (!*loaded)
    return loaded->error();
  return const_cast<const nccl_calls*>(&**loaded);
}

} // namespace troupe

#endif
