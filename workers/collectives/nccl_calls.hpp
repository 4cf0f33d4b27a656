#pragma once
// The calls of NCCL and of the CUDA runtime that the member `nccl` makes, found at run time. Only their
// headers are needed to build.

#include "model/result.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace troupe {

struct nccl_calls {
  decltype(&::ncclGetUniqueId) nccl_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) nccl_init = nullptr;
  decltype(&::ncclCommGetAsyncError) nccl_async_error = nullptr;
  decltype(&::ncclCommFinalize) nccl_finalize = nullptr;
  decltype(&::ncclCommAbort) nccl_abort = nullptr;
  decltype(&::ncclAllReduce) nccl_all_reduce = nullptr;
  decltype(&::ncclBroadcast) nccl_broadcast = nullptr;
  decltype(&::ncclAllGather) nccl_all_gather = nullptr;
  decltype(&::ncclReduceScatter) nccl_reduce_scatter = nullptr;
  decltype(&::ncclGroupStart) nccl_group_start = nullptr;
  decltype(&::ncclGroupEnd) nccl_group_end = nullptr;
  decltype(&::ncclGetErrorString) nccl_text = nullptr;
  decltype(&::ncclGetLastError) nccl_last_error = nullptr;
  decltype(&::ncclGetVersion) nccl_version = nullptr;

  cudaError_t (*set_device)(int) = nullptr;
  cudaError_t (*stream_create)(cudaStream_t*) = nullptr;
  cudaError_t (*stream_destroy)(cudaStream_t) = nullptr;
  cudaError_t (*event_create)(cudaEvent_t*, unsigned) = nullptr;
  cudaError_t (*event_record)(cudaEvent_t, cudaStream_t) = nullptr;
  cudaError_t (*event_query)(cudaEvent_t) = nullptr;
  cudaError_t (*event_destroy)(cudaEvent_t) = nullptr;
  cudaError_t (*pointer_attributes)(cudaPointerAttributes*, const void*) = nullptr;
  cudaError_t (*last_error)() = nullptr;
  cudaError_t (*device_count)(int*) = nullptr;
  const char* (*cuda_text)(cudaError_t) = nullptr;
  int devices = 0; ///< number of GPUs that this process may use
};

/// Loads both libraries, once for the process; they stay loaded. Fails with `unsupported` where one is
/// missing or older, or sees no device.
result<const nccl_calls*> load_nccl(const std::string& library);

} // namespace troupe
