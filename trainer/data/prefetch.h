// SPDX-License-Identifier: Apache-2.0
//
// The input pipeline: a ring of batches that threads fill ahead of their reader (why not oneTBB:
// doc/decisions/0003-data-loader-threads.md).

#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/core/span_recorder.h"

namespace trainer {

// Threads: all public functions from one thread.
class Prefetcher {
 public:
  struct Options {
    int threads = 1;
    int slots = 2;                  // batches in memory, the reader's among them; at least 2
    std::int64_t items = 1;         // per batch
    std::int64_t end = 0;           // first step that is not made
    SpanRecorder* spans = nullptr;  // told of each item; may be null
  };
  // Makes item `item` of step `step` in slot `slot`; called from thread number `thread`, several at
  // once, for each item once, earlier steps first.
  using Make = std::function<void(std::int64_t step, int slot, std::int64_t item, int thread)>;

  // Starts at step 0.  Throws Error(EX_OSERR) where a thread cannot be had.
  Prefetcher(const Options& options, Make make);
  // Waits for items under way, starts no others.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next step to return.  Batches made ahead are dropped; `at_rest` is called after the last
  // item of them and before the first of `step`.
  void Seek(std::int64_t step, const std::function<void()>& at_rest);

  // Waits for the next step's batch and returns its slot, which stays as it is until the next call;
  // -1 after the last step.  If items of the batch threw, throws the exception of the first of
  // them, again at each call until Seek.
  int Next();
  // The step that the last Next returned.  REQUIRES: there was one.
  std::int64_t step() const { return next_step_ - 1; }

 private:
  struct Slot {
    std::int64_t left = 0;  // items not made yet
    std::int64_t failed_item = 0;
    std::exception_ptr failure;
  };

  void Work(int thread);
  void Stop();
  void Reset(std::int64_t step);
  Slot FreshSlot() const { return {options_.items, 0, nullptr}; }
  Slot& SlotOf(std::int64_t step);
  bool HasWork() const;

  const Options options_;
  const Make make_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable work_ready_;
  std::condition_variable progress_;  // a batch is whole, or no item is under way any more
  std::vector<Slot> slots_;
  std::int64_t next_step_ = 0;   // that Next returns; written by the reader's thread alone
  std::int64_t limit_step_ = 0;  // steps below may be made: their slots are free
  std::int64_t make_step_ = 0;   // the next item to start
  std::int64_t make_item_ = 0;
  int active_ = 0;  // items under way
  bool paused_ = false;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: the others must outlive them
};

}  // namespace trainer
