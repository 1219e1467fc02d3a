// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/serial_executor.h"

#include <utility>

#include "trainer/core/thread.h"

namespace trainer {

OrderedWorker::OrderedWorker()
    : thread_(StartThread("the thread that talks to other ranks", [this] { Run(); })) {}

OrderedWorker::~OrderedWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OrderedWorker::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void OrderedWorker::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || (queue_.empty() && !busy_); });
  if (failure_) std::rethrow_exception(failure_);
}

void OrderedWorker::PostAndWait(std::function<void()> work) {
  Post(std::move(work));
  Wait();
}

void OrderedWorker::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure) {
      failure_ = failure;
      queue_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace trainer
