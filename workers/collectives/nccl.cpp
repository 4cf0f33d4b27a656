#include "workers/collectives/nccl.hpp"

#ifndef TROUPE_WITH_NCCL

namespace troupe {

bool has_nccl_member() { return false; }

result<std::unique_ptr<collective>> join_nccl(std::unique_ptr<collective> host, const nccl_group& group) {
  if (!group.needed)
    return host;
  return error{errc::unsupported,
               "collective nccl: this build has no NCCL: configure it where nccl.h and the CUDA toolkit are"};
}

} // namespace troupe

#else

#include "workers/collectives/nccl_calls.hpp"
#include "workers/collectives/operation_mark.hpp"
#include "workers/collectives/operation_queue.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto grace = 500ms; // for an operation that its last partner has finished before it left

ncclDataType_t type_of(element x) {
  switch (x) {
  case element::f16:
    return ncclFloat16;
  case element::bf16:
    return ncclBfloat16;
  case element::f32:
    return ncclFloat32;
  case element::f64:
    return ncclFloat64;
  case element::i32:
    return ncclInt32;
  case element::i64:
    return ncclInt64;
  }
  return ncclFloat32;
}

ncclRedOp_t operation_of(reduce x) {
  switch (x) {
  case reduce::sum:
    return ncclSum;
  case reduce::average:
    return ncclAvg;
  case reduce::min:
    return ncclMin;
  case reduce::max:
    return ncclMax;
  }
  return ncclSum;
}

error failed(errc code, const std::string& what) { return {code, "collective nccl: " + what}; }

const void* memory_of(const operation& x) {
  if (x.first.count > 0)
    return x.first.out;
  for (const auto& b : x.more)
    if (b.count > 0)
      return b.out;
  return nullptr;
}

class nccl final : public collective {
public:
  nccl(std::unique_ptr<collective> host, std::unique_ptr<collective> watch, const nccl_group& group,
       const nccl_calls& calls)
      : host_(std::move(host)), watch_(std::move(watch)), group_(group), calls_(calls) {}

  // Whoever comes first ends the communicator; the streams end after it.
  ~nccl() override {
    const auto until = clock::now() + 2s;
    while (comm_ && !broken_ && !idle() && clock::now() < until)
      std::this_thread::yield();
    closing_ = true;
    watch_->abort("rank " + std::to_string(rank()) + " of " + std::to_string(size()) + " left the group");
    if (watcher_.joinable())
      watcher_.join();
    if (comm_ && !broken_ && idle())
      calls_.nccl_finalize(comm_);
    if (comm_)
      calls_.nccl_abort(comm_);
    for (auto event : events_)
      calls_.event_destroy(event);
    if (stream_)
      calls_.stream_destroy(stream_);
  }

  result<void> join() {
    if (auto ok = cuda(calls_.set_device(group_.device), "device " + std::to_string(group_.device)); !ok)
      return ok;
    if (auto ok = cuda(calls_.stream_create(&stream_), "a stream"); !ok)
      return ok;
    watcher_ = std::thread([this] { watch(); });
    ncclUniqueId id{};
    if (rank() == 0)
      if (const auto why = calls_.nccl_unique_id(&id); why != ncclSuccess)
        return failed(errc::io, calls_.nccl_text(why));
    std::vector<std::int32_t> words(sizeof id / 4);
    std::memcpy(words.data(), &id, sizeof id);
    if (auto ok = host_->broadcast(words, 0); !ok)
      return ok;
    std::memcpy(&id, words.data(), sizeof id);
    return make_communicator(id);
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const char* member() const override { return "nccl"; }

  void abort(const std::string& why) override {
    note_broken(failed(errc::unreachable, why));
    host_->abort(why);
    watch_->abort(why);
  }

  result<std::unique_ptr<collective>> group(std::span<const int> ranks) override {
    auto inner = host_->group(ranks);
    if (!inner)
      return inner;
    return join_nccl(std::move(*inner), group_);
  }

  // Makes memory of processors only; the user allocates memory of a device.
  result<std::shared_ptr<std::byte>> memory(std::size_t bytes) override { return host_->memory(bytes); }

  result<void> perform(const operation& x) override {
    if (!on_device(x))
      return host_->perform(x);
    auto event = enqueue(x);
    return event ? finish(*event, mark_of(x)) : event.error();
  }

  pending start(operation x) override {
    if (!on_device(x))
      return host_->start(std::move(x));
    auto handle = std::make_shared<state>();
    handle->of = this;
    handle->mark = mark_of(x);
    if (auto event = enqueue(x))
      handle->event = *event;
    else
      handle->end(event.error());
    return pending{handle};
  }

private:
  struct state final : pending::state {
    nccl* of = nullptr;
    cudaEvent_t event = nullptr; ///< null: the operation has ended
    operation_mark mark;
    bool done() override {
      return pending::state::done() || of->calls_.event_query(event) != cudaErrorNotReady;
    }
    result<void> wait() override {
      if (event)
        end(of->finish(std::exchange(event, nullptr), mark));
      return pending::state::wait();
    }
  };

  result<void> cuda(cudaError_t why, const std::string& what) const {
    return why == cudaSuccess ? result<void>{} : failed(errc::io, what + ": " + calls_.cuda_text(why));
  }

  bool on_device(const operation& x) const {
    const void* at = memory_of(x);
    cudaPointerAttributes about{};
    if (!at || calls_.pointer_attributes(&about, at) != cudaSuccess) {
      calls_.last_error(); // otherwise the error stays, and the user's next call fails with it
      return false;
    }
    return about.type == cudaMemoryTypeDevice || about.type == cudaMemoryTypeManaged;
  }

  struct making {
    std::mutex lock;
    std::condition_variable changed;
    bool done = false, abandoned = false;
    ncclComm_t comm = nullptr;
    ncclResult_t outcome = ncclSuccess;
  };

  // The communicator blocks: for one that does not, NCCL starts a thread for each operation, which costs 50
  // to 100 us. Making it may never return where a rank dies meanwhile, so another thread makes it, and is
  // then left behind.
  result<void> make_communicator(const ncclUniqueId& id) {
    auto work = std::make_shared<making>();
    std::thread([work, id, &calls = calls_, device = group_.device, size = size(), rank = rank()] {
      calls.set_device(device);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 1;
      ncclComm_t comm = nullptr;
      const auto outcome = calls.nccl_init(&comm, size, id, rank, &config);
      std::lock_guard held(work->lock);
      if (work->abandoned && comm)
        calls.nccl_abort(comm);
      work->comm = comm;
      work->outcome = outcome;
      work->done = true;
      work->changed.notify_all();
    }).detach();
    const auto until = clock::now() + group_.join_within;
    std::unique_lock held(work->lock);
    while (!work->changed.wait_for(held, 20ms, [&] { return work->done; })) {
      auto ok = unbroken();
      if (ok && clock::now() > until)
        ok = failed(errc::timeout,
                    "NCCL made no group within " + std::to_string(group_.join_within.count()) + " ms");
      if (!ok) {
        work->abandoned = true;
        return break_group(ok.error());
      }
    }
    if (work->outcome != ncclSuccess)
      return failed(errc::io, std::string("cannot make the group: ") + calls_.nccl_text(work->outcome) +
                                ": " + calls_.nccl_last_error(nullptr));
    comm_ = work->comm;
    return {};
  }

  bool idle() const {
    return std::none_of(events_.begin(), events_.end(),
                        [this](cudaEvent_t x) { return calls_.event_query(x) == cudaErrorNotReady; });
  }

  result<cudaEvent_t> enqueue(const operation& x) {
    if (auto ok = unbroken(); !ok)
      return ok.error();
    if (auto ok = cuda(calls_.set_device(group_.device), "device " + std::to_string(group_.device)); !ok)
      return ok.error();
    const auto type = type_of(x.type);
    ncclResult_t told = ncclSuccess;
    const auto note = [&](ncclResult_t why) {
      if (told == ncclSuccess)
        told = why;
    };
    const auto one = [&](const operation_buffer& b) {
      switch (x.what) {
      case operation_kind::all_reduce:
        return note(calls_.nccl_all_reduce(b.in, b.out, b.count, type, operation_of(x.how), comm_, stream_));
      case operation_kind::broadcast:
        return note(calls_.nccl_broadcast(b.in, b.out, b.count, type, x.root, comm_, stream_));
      case operation_kind::all_gather:
        return note(calls_.nccl_all_gather(b.in, b.out, b.count, type, comm_, stream_));
      case operation_kind::reduce_scatter:
        return note(
          calls_.nccl_reduce_scatter(b.in, b.out, b.count, type, operation_of(x.how), comm_, stream_));
      case operation_kind::barrier:
        return;
      }
    };
    telling_since_ = clock::now().time_since_epoch().count();
    if (auto ok = unbroken(); !ok) { // checked again: from here on the watch ends the communicator
      telling_since_ = 0;
      return ok.error();
    }
    if (x.more.empty()) {
      one(x.first);
    } else {
      note(calls_.nccl_group_start());
      one(x.first);
      for (const auto& b : x.more)
        one(b);
      note(calls_.nccl_group_end());
    }
    telling_since_ = 0;
    if (comm_gone_)
      return unbroken().error();
    if (told != ncclSuccess)
      return break_group(
               failed(errc::io, std::string(calls_.nccl_text(told)) + ": " + calls_.nccl_last_error(comm_)))
        .error();
    cudaEvent_t event = nullptr;
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    } else if (auto ok = cuda(calls_.event_create(&event, cudaEventDisableTiming), "an event"); ok) {
      events_.push_back(event);
    } else {
      return ok.error();
    }
    if (auto ok = cuda(calls_.event_record(event, stream_), "an event"); !ok)
      return ok.error();
    return event;
  }

  result<void> finish(cudaEvent_t event, const operation_mark& mark) {
    const auto from = clock::now();
    for (int looks = 0;; ++looks) {
      const auto now = calls_.event_query(event);
      if (now == cudaSuccess) {
        free_.push_back(event);
        return comm_gone_ ? unbroken() : result<void>{}; // an aborted operation has ended as well
      }
      if (now != cudaErrorNotReady)
        return break_group(failed(errc::io, std::string(calls_.cuda_text(now)) + ", during " + show(mark)));
      if (looks < 4096 || looks % 64 != 0)
        continue;
      ncclResult_t why = ncclSuccess;
      if (!comm_gone_ && calls_.nccl_async_error(comm_, &why) == ncclSuccess && why != ncclSuccess &&
          why != ncclInProgress)
        return break_group(
          failed(errc::unreachable, std::string(calls_.nccl_text(why)) + ", during " + show(mark)));
      if (auto ok = unbroken(); !ok && clock::now() - from > grace)
        return break_group(error{ok.error().code, ok.error().what + ", during " + show(mark)});
      if (clock::now() - from > group_.limit)
        return break_group(failed(errc::timeout, show(mark) + " took longer than " +
                                                   std::to_string(group_.limit.count()) +
                                                   " ms: a rank did not come, or called something else"));
      if (looks > 100'000)
        std::this_thread::sleep_for(50us);
    }
  }

  // The ranks meet ten times a second on a thread of their own. The meeting fails when a rank has died or
  // left, or when somebody aborts. The thread also ends a call of NCCL that does not return, as one that
  // connects the ranks may not.
  void watch() {
    while (!closing_) {
      if (auto all = watch_->barrier(); !all && !closing_)
        note_broken(all.error());
      else if (told_for() > group_.limit)
        (void)break_group(failed(errc::timeout, "NCCL took no operation for " +
                                                  std::to_string(group_.limit.count()) + " ms"));
      if (broken_)
        break;
      std::this_thread::sleep_for(100ms);
    }
    const auto until = clock::now() + grace;
    while (!closing_ && told_for() > 0ns) {
      if (clock::now() > until)
        return (void)break_group(unbroken().error());
      std::this_thread::sleep_for(10ms);
    }
  }

  /// How long NCCL's call has taken for the newest operation so far; 0: it has returned.
  clock::duration told_for() const {
    const auto since = telling_since_.load();
    return since == 0 ? clock::duration{} : clock::now().time_since_epoch() - clock::duration(since);
  }

  void note_broken(const error& why) {
    std::lock_guard held(lock_);
    if (!broken_) {
      why_ = why;
      broken_ = true;
    }
  }
  result<void> unbroken() const {
    if (!broken_)
      return {};
    std::lock_guard held(lock_);
    return why_;
  }
  result<void> break_group(const error& why) {
    note_broken(why);
    watch_->abort(unbroken().error().what);
    host_->abort(unbroken().error().what);
    std::lock_guard held(abort_lock_);
    if (comm_ && !comm_gone_.exchange(true)) {
      calls_.nccl_abort(comm_); // ends its kernels, which frees the stream
      comm_ = nullptr;
    }
    return unbroken();
  }

  std::unique_ptr<collective> host_, watch_;
  nccl_group group_;
  const nccl_calls& calls_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_, free_;
  std::atomic<bool> broken_{false}, closing_{false}, comm_gone_{false};
  std::atomic<clock::rep> telling_since_{0}; ///< when NCCL's running call began; 0: none runs
  mutable std::mutex lock_;
  std::mutex abort_lock_;
  error why_;
  std::thread watcher_;
};

} // namespace

bool has_nccl_member() { return true; }

/// There may be more ranks than devices where they are started by hand. NCCL lets ranks share one where that
/// is asked for.
static result<int> device_of(int devices, int wanted) {
  const char* shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (wanted >= devices && (!shared || std::string_view(shared) != "1"))
    return error{errc::unsupported, "collective nccl: a rank has no GPU of its own: it would be device " +
                                      std::to_string(wanted) + " of " + std::to_string(devices) +
                                      "\nhint: fewer ranks, or NCCL_MULTI_RANK_GPU_ENABLE=1"};
  return wanted % devices;
}

result<std::unique_ptr<collective>> join_nccl(std::unique_ptr<collective> host, const nccl_group& asked) {
  auto group = asked;
  auto calls = load_nccl(group.library);
  const auto device = calls ? device_of((*calls)->devices, asked.device) : calls.error();
  if (device)
    group.device = *device;
  else
    calls = device.error();
  std::vector<std::int32_t> ready{calls ? 1 : 0};
  if (auto ok = host->all_reduce(ready, reduce::min); !ok)
    return ok.error();
  if (ready[0] == 0 && !group.needed)
    return host;
  if (ready[0] == 0)
    return calls ? failed(errc::unsupported, "another rank has no NCCL, or no GPU of its own")
                 : calls.error();
  std::vector<int> all(std::size_t(host->size()));
  std::iota(all.begin(), all.end(), 0);
  auto watch = host->group(all);
  if (!watch)
    return watch.error();
  auto made = std::make_unique<nccl>(std::move(host), std::move(*watch), group, **calls);
  if (auto ok = made->join(); !ok) {
    made->abort(ok.error().what); // other ranks may have succeeded
    return ok.error();
  }
  return std::unique_ptr<collective>(std::move(made));
}

} // namespace troupe

#endif
