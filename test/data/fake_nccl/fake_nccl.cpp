// A libnccl for tests without a GPU: ranks are threads of one process. Reductions are sums of f32; an abort
// ends what is pending.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <vector>

extern "C" void fake_cuda_enqueue(void* on, void (*what)(void*), void* with);

namespace {

struct group {
  std::mutex lock;
  std::condition_variable changed;
  int size = 0, joined = 0, waiting = 0;
  unsigned turn = 0;
  std::vector<bool> aborted; // by rank: the others go on waiting, as with the real one
  std::vector<const void*> in;

  bool meet(int rank) { // false: aborted
    std::unique_lock held(lock);
    const unsigned mine = turn;
    if (++waiting == size) {
      waiting = 0;
      ++turn;
      changed.notify_all();
      return true;
    }
    changed.wait(held, [&] { return turn != mine || aborted[std::size_t(rank)]; });
    if (turn != mine)
      return true;
    --waiting;
    return false;
  }
};

std::mutex groups_lock;
std::map<unsigned, std::shared_ptr<group>> groups;
unsigned last_id = 0;
unsigned long bytes_of(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclFloat16 || type == ncclBfloat16 ? 2 : 8;
}

} // namespace

struct ncclComm {
  std::shared_ptr<group> of;
  int rank = 0;
};

namespace {

ncclResult_t run(ncclComm_t comm, cudaStream_t on, const void* in,
                 std::function<void(const std::vector<const void*>&)> make, std::function<void()> store) {
  auto* x = new std::function<void()>(
    [of = comm->of, rank = comm->rank, in, make = std::move(make), store = std::move(store)] {
      {
        std::lock_guard held(of->lock);
        of->in[std::size_t(rank)] = in;
      }
      if (!of->meet(rank))
        return;
      make(of->in);
      if (of->meet(rank))
        store();
    });
  fake_cuda_enqueue(
    on,
    [](void* p) {
      auto* f = static_cast<std::function<void()>*>(p);
      (*f)();
      delete f;
    },
    x);
  if (std::getenv("FAKE_NCCL_CALL_HANGS")) { // like the first operation, when another rank does not answer
    const auto of = comm->of;
    const auto rank = std::size_t(comm->rank);
    std::unique_lock held(of->lock);
    of->changed.wait(held, [&] { return bool(of->aborted[rank]); });
    return ncclInternalError;
  }
  return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* to) {
  *to = std::getenv("FAKE_NCCL_OLD") ? 21003 : 23200;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* to) {
  std::lock_guard held(groups_lock);
  std::memset(to, 0, sizeof *to);
  const unsigned id = ++last_id;
  std::memcpy(to, &id, sizeof id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int size, ncclUniqueId of, int rank, ncclConfig_t* how) {
  unsigned id = 0;
  std::memcpy(&id, &of, sizeof id);
  std::unique_lock held(groups_lock);
  auto& made = groups[id];
  if (!made)
    made = std::make_shared<group>();
  const auto g = made;
  held.unlock();
  std::unique_lock inner(g->lock);
  g->size = size;
  g->in.resize(std::size_t(size));
  g->aborted.resize(std::size_t(size));
  ++g->joined;
  g->changed.notify_all();
  if (how->blocking != 1 || std::getenv("FAKE_NCCL_FAILS"))
    return ncclInvalidArgument;
  g->changed.wait(inner, [&] { return g->joined == size && !std::getenv("FAKE_NCCL_INIT_HANGS"); });
  *to = new ncclComm{g, rank};
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* to) {
  *to = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard held(comm->of->lock);
    comm->of->aborted[std::size_t(comm->rank)] = true;
    comm->of->changed.notify_all();
  }
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* in, void* out, size_t n, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t on) {
  auto sums = std::make_shared<std::vector<float>>(n);
  return run(
    comm, on, in,
    [=](const auto& all) {
      for (const void* one : all)
        for (size_t i = 0; i < n; ++i)
          (*sums)[i] += static_cast<const float*>(one)[i];
    },
    [=] { std::memcpy(out, sums->data(), n * 4); });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t n, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t on) {
  auto sums = std::make_shared<std::vector<float>>(n);
  return run(
    comm, on, in,
    [=, from = n * size_t(comm->rank)](const auto& all) {
      for (const void* one : all)
        for (size_t i = 0; i < n; ++i)
          (*sums)[i] += static_cast<const float*>(one)[from + i];
    },
    [=] { std::memcpy(out, sums->data(), n * 4); });
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t n, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t on) {
  auto copy = std::make_shared<std::vector<char>>(n * bytes_of(type));
  return run(
    comm, on, in, [=](const auto& all) { std::memcpy(copy->data(), all[size_t(root)], copy->size()); },
    [=] { std::memcpy(out, copy->data(), copy->size()); });
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t on) {
  const size_t bytes = n * bytes_of(type);
  auto copy = std::make_shared<std::vector<char>>(bytes * size_t(comm->of->size));
  return run(
    comm, on, in,
    [=](const auto& all) {
      for (size_t r = 0; r < all.size(); ++r)
        std::memcpy(copy->data() + r * bytes, all[r], bytes);
    },
    [=] { std::memcpy(out, copy->data(), copy->size()); });
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "a fake error of NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
}
