#include "workers/collectives/operation_queue.hpp"

namespace troupe {

operation_queue::operation_queue(duties of) : duties_(std::move(of)), thread_([this] { run(); }) {
  std::unique_lock held(lock_);
  changed_.wait(held, [this] { return begun_; });
}

operation_queue::~operation_queue() {
  {
    std::lock_guard held(lock_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

result<void> operation_queue::perform(const operation& x) {
  int none = 0;
  if (!under_way_.compare_exchange_strong(none, 1, std::memory_order_acquire))
    return start(x).wait();
  auto outcome = duties_.execute(x);
  if (under_way_.fetch_sub(1, std::memory_order_release) != 1) { // other operations were queued meanwhile
    std::lock_guard held(lock_);
    changed_.notify_all();
  }
  return outcome;
}

pending operation_queue::start(operation x) {
  auto handle = std::make_shared<pending::state>();
  std::lock_guard held(lock_);
  queue_.push_back({std::move(x), handle});
  under_way_.fetch_add(1, std::memory_order_relaxed);
  changed_.notify_all();
  return pending{handle};
}

void operation_queue::run() {
  duties_.begin();
  std::unique_lock held(lock_);
  begun_ = true;
  changed_.notify_all();
  while (!closing_ || !queue_.empty()) {
    if (queue_.empty() || under_way_.load(std::memory_order_acquire) !=
                            int(queue_.size())) { // otherwise no caller executes or begins one
      changed_.wait_for(held, duties_.pause);
    } else {
      entry next = std::move(queue_.front());
      queue_.pop_front();
      held.unlock();
      auto outcome = duties_.execute(next.what);
      under_way_.fetch_sub(1, std::memory_order_release); // before the operation's caller can go on
      next.handle->end(std::move(outcome));
      held.lock();
    }
    held.unlock();
    duties_.tick();
    held.lock();
  }
  held.unlock();
  duties_.end();
}

} // namespace troupe
