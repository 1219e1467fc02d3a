// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/prefetch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {

Prefetcher::Prefetcher(const Options& options, Make make)
    : options_(options), make_(std::move(make)), slots_(static_cast<std::size_t>(options.slots)) {
  DDL_CHECK(options.threads > 0 && options.slots > 1 && options.items > 0);
  Reset(0);
  try {
    for (int i = 0; i < options.threads; ++i) {
      const std::string name =
          "input thread " + std::to_string(i + 1) + " of " + std::to_string(options.threads);
      threads_.push_back(StartThread(name, [this, i] { Work(i); }));
    }
  } catch (...) {
    Stop();
    throw;
  }
}

Prefetcher::~Prefetcher() { Stop(); }

void Prefetcher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
}

void Prefetcher::Seek(std::int64_t step, const std::function<void()>& at_rest) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  progress_.wait(lock, [this] { return active_ == 0; });
  at_rest();
  Reset(step);
  paused_ = false;
  work_ready_.notify_all();
}

int Prefetcher::Next() {
  std::unique_lock lock(mutex_);
  if (next_step_ >= options_.end) return -1;
  // The slot of the batch before this one is free now.
  const std::int64_t limit =
      std::min(next_step_ + static_cast<std::int64_t>(slots_.size()), options_.end);
  if (limit > limit_step_) {
    limit_step_ = limit;
    SlotOf(limit - 1) = FreshSlot();
    work_ready_.notify_all();
  }
  Slot& slot = SlotOf(next_step_);
  progress_.wait(lock, [&] { return slot.left == 0; });
  if (slot.failure) std::rethrow_exception(slot.failure);
  ++next_step_;
  return static_cast<int>(&slot - slots_.data());
}

void Prefetcher::Work(int thread) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [this] { return stopping_ || HasWork(); });
    if (stopping_) return;
    const std::int64_t step = make_step_;
    const std::int64_t item = make_item_;
    if (++make_item_ == options_.items) {
      make_item_ = 0;
      ++make_step_;
    }
    ++active_;
    Slot& slot = SlotOf(step);
    std::exception_ptr failure;
    lock.unlock();
    try {
      const SpanOfScope span(options_.spans, SpanKind::kImage, thread, step + 1);
      make_(step, static_cast<int>(&slot - slots_.data()), item, thread);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && (!slot.failure || item < slot.failed_item)) {
      slot.failure = std::move(failure);
      slot.failed_item = item;
    }
    --active_;
    if (--slot.left == 0 || active_ == 0) progress_.notify_all();
  }
}

// One slot stays with the reader, even before its first Next.
void Prefetcher::Reset(std::int64_t step) {
  next_step_ = make_step_ = step;
  make_item_ = 0;
  limit_step_ =
      std::max(step, std::min(step + static_cast<std::int64_t>(slots_.size()) - 1, options_.end));
  for (std::int64_t s = step; s < limit_step_; ++s) SlotOf(s) = FreshSlot();
}

Prefetcher::Slot& Prefetcher::SlotOf(std::int64_t step) {
  return slots_[static_cast<std::size_t>(step) % slots_.size()];
}

bool Prefetcher::HasWork() const { return !paused_ && make_step_ < limit_step_; }

}  // namespace trainer
