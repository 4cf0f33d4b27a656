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
  std::unique_lock held(lock_);
  if (running_ || !queue_.empty()) {
    held.unlock();
    return start(x).wait();
  }
  running_ = true;
  held.unlock();
  auto outcome = duties_.execute(x);
  held.lock();
  running_ = false;
  if (!queue_.empty())
    changed_.notify_all();
  return outcome;
}

pending operation_queue::start(operation x) {
  auto handle = std::make_shared<pending::state>();
  std::lock_guard held(lock_);
  queue_.push_back({std::move(x), handle});
  changed_.notify_all();
  return pending{handle};
}

void operation_queue::run() {
  duties_.begin();
  std::unique_lock held(lock_);
  begun_ = true;
  changed_.notify_all();
  while (!closing_ || !queue_.empty()) {
    if (running_ || queue_.empty()) {
      changed_.wait_for(held, duties_.pause);
    } else {
      entry next = std::move(queue_.front());
      queue_.pop_front();
      running_ = true;
      held.unlock();
      next.handle->end(duties_.execute(next.what));
      held.lock();
      running_ = false;
    }
    held.unlock();
    duties_.tick();
    held.lock();
  }
  held.unlock();
  duties_.end();
}

} // namespace troupe
