// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/background_thread.h"

#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {

BackgroundThread::BackgroundThread(const std::string& what)
    : thread_(StartThread(what, [this] { Run(); })) {}

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundThread::Start(std::function<void()> work) {
  DDL_CHECK(!has_work_);
  has_work_ = true;
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool BackgroundThread::Done() {
  DDL_CHECK(has_work_);
  {
    const std::lock_guard lock(mutex_);
    if (!is_done_) return false;
  }
  TakeBack();
  return true;
}

void BackgroundThread::Wait() {
  DDL_CHECK(has_work_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
  }
  TakeBack();
}

// The thread waits for more by now, so nothing is shared.
void BackgroundThread::TakeBack() {
  has_work_ = false;
  is_done_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundThread::Run() {
  LowerOwnPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || work_; });
    if (!work_) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = std::move(failure);
    is_done_ = true;
    changed_.notify_all();
  }
}

}  // namespace trainer
