// A libcudart for tests without a GPU: device memory is memory that fake_cuda_malloc gave, a stream is a
// thread that runs in order.
#include <condition_variable>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace {

struct stream {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool closing = false;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock held(lock);
    for (;;) {
      changed.wait(held, [this] { return closing || !queue.empty(); });
      if (queue.empty())
        return;
      auto next = std::move(queue.front());
      queue.pop_front();
      held.unlock();
      next();
      held.lock();
    }
  }
  void add(std::function<void()> x) {
    std::lock_guard held(lock);
    queue.push_back(std::move(x));
    changed.notify_all();
  }
};
struct event {
  std::mutex lock;
  bool done = true;
};

std::mutex memory_lock;
std::map<const char*, std::size_t> memory;

} // namespace

extern "C" {

void* fake_cuda_malloc(std::size_t bytes) {
  char* at = static_cast<char*>(std::calloc(1, bytes + 1));
  std::lock_guard held(memory_lock);
  memory[at] = bytes + 1;
  return at;
}
void fake_cuda_enqueue(void* on, void (*what)(void*), void* with) {
  static_cast<stream*>(on)->add([=] { what(with); });
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) {
  *n = std::getenv("FAKE_CUDA_NO_DEVICE") ? 0 : 1;
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* to) {
  *to = reinterpret_cast<cudaStream_t>(new stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t of) {
  auto* s = reinterpret_cast<stream*>(of);
  {
    std::lock_guard held(s->lock);
    s->closing = true;
    s->changed.notify_all();
  }
  s->thread.join();
  delete s;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned) {
  *to = reinterpret_cast<cudaEvent_t>(new event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t of, cudaStream_t on) {
  auto* e = reinterpret_cast<event*>(of);
  {
    std::lock_guard held(e->lock);
    e->done = false;
  }
  reinterpret_cast<stream*>(on)->add([e] {
    std::lock_guard held(e->lock);
    e->done = true;
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t of) {
  auto* e = reinterpret_cast<event*>(of);
  std::lock_guard held(e->lock);
  return e->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; } // a queue may still name it
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* at) {
  std::lock_guard held(memory_lock);
  auto it = memory.upper_bound(static_cast<const char*>(at));
  const bool ours =
    it != memory.begin() && static_cast<const char*>(at) < std::prev(it)->first + std::prev(it)->second;
  to->type = ours ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "a fake error"; }
}
