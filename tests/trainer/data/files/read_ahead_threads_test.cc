// SPDX-License-Identifier: Apache-2.0
//
// When ReadAhead has threads, how many, and when they work.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/core/few_threads.h"
#include "tests/trainer/data/made_up_items.h"
#include "trainer/data/files/read_ahead.h"

namespace trainer {
namespace {

// Storage whose reads wait until they are let go.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void WaitUntilArrived(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  int arrived() {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool is_open_ = false;
};

TEST(ReadAheadThreads, HasNoThreadAsLongAsNoReadSleeps) {
  ReadAhead ring({.most_threads = 8, .items = 10, .bytes = 1000, .end = 101},
                 {.size = [](std::int64_t) { return 10U; }, .read = Fill});
  for (std::int64_t item = 0; item < 100; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), 0);
}

TEST(ReadAheadThreads, AddsNoThreadWhereThereIsNoRoom) {
  ReadAhead ring(
      {.most_threads = 4, .items = 1, .bytes = 100, .end = 10},
      {.size = [](std::int64_t) { return 10U; }, .read = [](std::int64_t, auto) { Sleep(); }});
  for (std::int64_t item = 0; item < 10; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), 0);
}

TEST(ReadAheadThreads, AddsThreadsForThoseWhoWaitUpToItsMost) {
  constexpr int kMost = 4;
  Gate gate;
  ReadAhead ring({.most_threads = kMost, .items = 20, .bytes = 1000, .end = 20},
                 {.size = [](std::int64_t) { return 10U; },
                  .read =
                      [&](std::int64_t item, auto) {
                        if (item > 0) gate.Pass();
                        Sleep();
                      }});
  ring.Take(0);
  gate.WaitUntilArrived(1);
  EXPECT_EQ(ring.threads(), 1);
  std::vector<std::jthread> workers;
  for (int item = 1; item < 10; ++item) {
    workers.emplace_back([&, item] { ring.Take(item); });
    // Each who waits adds one at most; what is left when there are enough is read by who wants it.
    gate.WaitUntilArrived(std::max(item, std::min(item + 1, kMost)));
    EXPECT_EQ(ring.threads(), std::min(item + 1, kMost));
  }
  EXPECT_EQ(gate.arrived(), 9);
  gate.Open();
  workers.clear();
  for (std::int64_t item = 10; item < 20; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), kMost);
}

// Whether this thread of the process sleeps, as the kernel says.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.find(") S") != std::string::npos;
}

// All are asleep when the ring is full, and wake without anybody having to wait.
TEST(ReadAheadThreads, FillsUpAgainWhenHalfOfItIsFree) {
  struct Bounds {
    std::int64_t items;
    std::size_t bytes;
  };
  for (const Bounds& bounds : {Bounds{8, 1000}, Bounds{100, 80}}) {
    std::atomic<std::int64_t> begun = -1;
    std::atomic<pid_t> thread = 0;
    ReadAhead ring(
        {.most_threads = 1, .items = bounds.items, .bytes = bounds.bytes, .end = kNoLastItem},
        {.size = [](std::int64_t) { return 10U; },
         .read =
             [&](std::int64_t item, auto) {
               if (item == 0) Sleep();
               thread = static_cast<pid_t>(syscall(SYS_gettid));  // gettid is of glibc 2.30
               begun = item;
             }});
    {
      const ReadAhead::Taken first = ring.Take(0);
      while (begun < 7 || !Sleeps(thread)) std::this_thread::yield();
    }
    for (std::int64_t item = 1; item < 4; ++item) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(begun, 7);
      ring.Take(item);
    }
    while (begun < 11) std::this_thread::yield();
  }
}

TEST(ReadAheadThreads, GoesOnWithTheThreadsThatItGets) {
  EXPECT_EXIT(WithFewThreads([] {
                ReadAhead ring({.most_threads = 1000, .items = 2000, .bytes = 20000, .end = 2000},
                               {.size = [](std::int64_t) { return 10U; },
                                .read =
                                    [](std::int64_t item, std::span<std::uint8_t> bytes) {
                                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                      Fill(item, bytes);
                                    }});
                bool is_right = true;
                for (std::int64_t item = 0; item < 2000; ++item) {
                  is_right = is_right && IsFilled(item, ring.Take(item).bytes());
                }
                return is_right && ring.threads() > 1 && ring.threads() < 100;
              }),
              testing::ExitedWithCode(0), "");
}

// The end waits for the reads under way, 100 ms each, and for none of the many that could follow.
TEST(ReadAheadThreads, EndsWhileReadsHang) {
  std::atomic<int> begun = 0;
  {
    ReadAhead ring({.most_threads = 2, .items = 1000, .bytes = 10000, .end = kNoLastItem},
                   {.size = [](std::int64_t) { return 1U; },
                    .read =
                        [&](std::int64_t, auto) {
                          ++begun;
                          std::this_thread::sleep_for(std::chrono::milliseconds(100));
                        }});
    ring.Take(0);
    while (begun < 2) std::this_thread::yield();
  }
  const int at_the_end = begun;
  EXPECT_LT(at_the_end, 100);
  EXPECT_EQ(begun, at_the_end);
}

}  // namespace
}  // namespace trainer
