// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/read_ahead.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/core/few_threads.h"
#include "tests/trainer/data/fake_items.h"

namespace trainer {
namespace {

std::size_t SmallSize(std::int64_t item) { return static_cast<std::size_t>(item * 37 % 101); }

// Calls `work(item)` once for each item below `end`, in order of start, on `threads` threads.
void TakeAll(int threads, std::int64_t end, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (std::int64_t item = next++; item < end; item = next++) work(item);
    });
  }
}

struct Held {
  ReadAhead::Taken taken;
};

std::unique_ptr<Held> Hold(ReadAhead& ring, std::int64_t item) {
  return std::unique_ptr<Held>(new Held{ring.Take(item)});
}

// In 250 bytes there are two or three items at a time, some larger than all of it.
TEST(ReadAhead, GivesEachItemItsBytes) {
  const auto size = [](std::int64_t item) {
    return item % 50 == 7 ? std::size_t{1000} : SmallSize(item);
  };
  for (const bool is_slow : {false, true}) {
    const auto read = [&](std::int64_t item, std::span<std::uint8_t> bytes) {
      if (is_slow) Sleep();
      Fill(item, bytes);
    };
    for (const int threads : {1, 4}) {
      for (const std::int64_t items : {1, 2, 7, 64}) {
        for (const std::size_t bytes : {250, 1500}) {
          ReadAhead ring({.max_threads = threads, .items = items, .bytes = bytes, .end = 500},
                         {.size = size, .read = read});
          TakeAll(3, 500, [&](std::int64_t item) {
            const ReadAhead::Taken taken = ring.Take(item);
            EXPECT_EQ(taken.bytes().size(), size(item));
            EXPECT_TRUE(IsFilled(item, taken.bytes()));
          });
          EXPECT_LE(ring.threads(), threads);
        }
      }
    }
  }
}

TEST(ReadAhead, ReadsInOrderAndNothingWhereThereIsNothing) {
  std::vector<std::int64_t> read;
  {
    ReadAhead ring({.max_threads = 1, .items = 4, .bytes = 100, .end = 9},
                   {.size = [](std::int64_t item) { return item % 3 == 1 ? 0U : 10U; },
                    .read = [&](std::int64_t item, auto) { read.push_back(item); }});
    for (std::int64_t item = 0; item < 9; ++item) ring.Take(item);
  }
  EXPECT_EQ(read, (std::vector<std::int64_t>{0, 2, 3, 5, 6, 8}));
}

// Whoever has read it.
TEST(ReadAhead, ThrowsAnErrorAtItsItemAlone) {
  for (const bool is_slow : {false, true}) {
    const auto read = [&](std::int64_t item, std::span<std::uint8_t> bytes) {
      if (is_slow) Sleep();
      if (item % 10 == 3) throw std::runtime_error(std::to_string(item));
      Fill(item, bytes);
    };
    ReadAhead ring({.max_threads = 3, .items = 8, .bytes = 1000, .end = 40},
                   {.size = [](std::int64_t) { return 10U; }, .read = read});
    for (std::int64_t item = 0; item < 40; ++item) {
      const ReadAhead::Taken taken = ring.Take(item);
      if (item % 10 != 3) {
        EXPECT_TRUE(IsFilled(item, taken.bytes()));
        continue;
      }
      for (int attempt = 0; attempt < 2; ++attempt) {
        EXPECT_EQ(tests::Rejection<std::runtime_error>([&] { taken.bytes(); }),
                  std::to_string(item));
      }
    }
    EXPECT_EQ(ring.threads() > 0, is_slow);
  }
}

// What is held: from the start of an item's read until it is given back.
TEST(ReadAhead, StaysWithinItsItemsAndBytes) {
  constexpr std::size_t kLarge = 500;
  struct Bounds {
    std::int64_t items;
    std::size_t bytes;
    std::size_t max_bytes;
  };
  for (const Bounds& bounds : {Bounds{6, 10000, 10000}, Bounds{64, 300, 300 + kLarge}}) {
    std::atomic<std::size_t> held_bytes = 0;
    std::atomic<std::int64_t> held_items = 0;
    ReadAhead ring({.max_threads = 4, .items = bounds.items, .bytes = bounds.bytes, .end = 400},
                   {.size = [](std::int64_t item) { return item % 20 == 19 ? kLarge : 50; },
                    .read =
                        [&](std::int64_t, std::span<std::uint8_t> bytes) {
                          EXPECT_LE(held_bytes += bytes.size(), bounds.max_bytes);
                          EXPECT_LE(++held_items, bounds.items);
                          Sleep();
                        }});
    const auto take = [&](std::int64_t item) {
      const ReadAhead::Taken taken = ring.Take(item);
      held_bytes -= taken.bytes().size();
      --held_items;
    };
    take(0);
    while (held_items < 6) std::this_thread::yield();  // it is full
    TakeAll(2, 399, [&](std::int64_t item) { take(item + 1); });
  }
}

TEST(ReadAhead, WaitsWithALargeItemUntilNothingElseIsHeld) {
  std::atomic<std::int64_t> last_read = -1;
  ReadAhead ring({.max_threads = 4, .items = 8, .bytes = 100, .end = 8},
                 {.size = [](std::int64_t item) { return item == 2 ? 101U : 10U; },
                  .read =
                      [&](std::int64_t item, auto) {
                        Sleep();
                        last_read = item;
                      }});
  {
    const ReadAhead::Taken first = ring.Take(0);
    const ReadAhead::Taken second = ring.Take(1);
    EXPECT_GT(ring.threads(), 0);
    EXPECT_EQ(last_read, 1);  // 2 has no room, and nothing is read before it
  }
  for (std::int64_t item = 2; item < 8; ++item) {
    EXPECT_EQ(ring.Take(item).bytes().size(), item == 2 ? 101U : 10U);
  }
}

TEST(ReadAheadFor, HasItsShareForEachWorkerAndABoundForAll) {
  const ReadAhead::Options one = ReadAheadFor(1, 77);
  EXPECT_EQ(one.end, 77);
  EXPECT_EQ(one.items, 128);
  EXPECT_EQ(one.bytes, 16U << 20);
  EXPECT_EQ(one.max_threads, 64);
  const ReadAhead::Options many = ReadAheadFor(1000, 77);
  EXPECT_EQ(many.items, 2048);
  EXPECT_EQ(many.bytes, 256U << 20);
  EXPECT_EQ(many.max_threads, 512);
}

TEST(ReadAhead, SeeksWhileItReads) {
  std::int64_t logged = 0;  // not atomic: nothing is read when it changes
  std::atomic<int> under_way = 0;
  ReadAhead ring({.max_threads = 4, .items = 16, .bytes = 1000, .end = kNoLastItem},
                 {.size = [&](std::int64_t item) { return SmallSize(item + logged); },
                  .read =
                      [&](std::int64_t item, std::span<std::uint8_t> bytes) {
                        ++under_way;
                        Sleep();
                        Fill(item + logged, bytes);
                        --under_way;
                      }});
  for (int i = 0; i < 50; ++i) {
    const std::int64_t target = i * 7919 % 1000;
    ring.Seek(target, [&] {
      EXPECT_EQ(under_way, 0);
      logged = i;
    });
    for (std::int64_t item = target; item < target + i % 5; ++item) {
      const ReadAhead::Taken taken = ring.Take(item);
      EXPECT_EQ(taken.bytes().size(), SmallSize(item + logged));
      EXPECT_TRUE(IsFilled(item + logged, taken.bytes()));
    }
  }
  EXPECT_GT(ring.threads(), 0);
}

TEST(ReadAhead, StartsAnewBehindItsEnd) {
  ReadAhead ring({.max_threads = 2, .items = 4, .bytes = 1000, .end = 10},
                 {.size = SmallSize, .read = Fill});
  for (int pass = 0; pass < 3; ++pass) {
    for (std::int64_t item = 0; item < 10; ++item) {
      EXPECT_TRUE(IsFilled(item, ring.Take(item).bytes()));
    }
    ring.Seek(0, [] {});
  }
}

// One that lies before what is wanted is read by who wants that.
TEST(ReadAhead, ReadsWhatOthersWantBeforeItsOwn) {
  ReadAhead ring({.max_threads = 1, .items = 10, .bytes = 1000, .end = 10},
                 {.size = [](std::int64_t) { return 10U; }, .read = Fill});
  EXPECT_TRUE(IsFilled(3, ring.Take(3).bytes()));
  for (const std::int64_t item : {1, 0, 2, 4}) {
    EXPECT_TRUE(IsFilled(item, ring.Take(item).bytes()));
  }
}

// Two of ten bytes are held at a time, of 1,600: within the first 100 there is room for all.
TEST(ReadAhead, StaysInTheSameMemoryWhileLittleIsHeld) {
  std::set<const std::uint8_t*> places;
  ReadAhead ring({.max_threads = 1, .items = 64, .bytes = 1600, .end = 1000},
                 {.size = [](std::int64_t) { return 10U; },
                  .read = [&](std::int64_t, auto bytes) { places.insert(bytes.data()); }});
  std::unique_ptr<Held> last;
  for (std::int64_t item = 0; item < 1000; ++item) last = Hold(ring, item);
  EXPECT_EQ(*places.rbegin() - *places.begin(), 90);
}

// In 100 bytes; which of the items that are held is given back before the next is taken.
TEST(ReadAhead, UsesItsMemoryToTheLastByte) {
  struct Step {
    std::size_t size;
    std::vector<std::size_t> freed;
    std::ptrdiff_t begin;
  };
  const std::vector<Step> steps = {{40, {}, 0},   {30, {}, 40},    {30, {}, 70},    {40, {0}, 0},
                                   {30, {1}, 40}, {31, {2, 3}, 0}, {50, {4, 5}, 0}, {20, {}, 50}};
  std::vector<const std::uint8_t*> begins;
  ReadAhead ring(
      {.max_threads = 1, .items = 8, .bytes = 100, .end = std::ssize(steps)},
      {.size = [&](std::int64_t item) { return steps[static_cast<std::size_t>(item)].size; },
       .read = [&](std::int64_t, auto bytes) { begins.push_back(bytes.data()); }});
  std::vector<std::unique_ptr<Held>> held;
  for (const Step& step : steps) {
    for (const std::size_t item : step.freed) held[item].reset();
    held.push_back(Hold(ring, std::ssize(held)));
    EXPECT_EQ(begins.back() - begins.front(), step.begin) << "item " << held.size() - 1;
  }
}

// When ReadAhead has threads, how many, and when they work.

// Storage whose reads wait until they are let go.
class ReluMask {
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
  ReadAhead ring({.max_threads = 8, .items = 10, .bytes = 1000, .end = 101},
                 {.size = [](std::int64_t) { return 10U; }, .read = Fill});
  for (std::int64_t item = 0; item < 100; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), 0);
}

TEST(ReadAheadThreads, AddsNoThreadWhereThereIsNoRoom) {
  ReadAhead ring(
      {.max_threads = 4, .items = 1, .bytes = 100, .end = 10},
      {.size = [](std::int64_t) { return 10U; }, .read = [](std::int64_t, auto) { Sleep(); }});
  for (std::int64_t item = 0; item < 10; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), 0);
}

TEST(ReadAheadThreads, AddsThreadsForThoseWhoWaitUpToItsMost) {
  constexpr int kMax = 4;
  ReluMask relu_mask;
  ReadAhead ring({.max_threads = kMax, .items = 20, .bytes = 1000, .end = 20},
                 {.size = [](std::int64_t) { return 10U; },
                  .read =
                      [&](std::int64_t item, auto) {
                        if (item > 0) relu_mask.Pass();
                        Sleep();
                      }});
  ring.Take(0);
  relu_mask.WaitUntilArrived(1);
  EXPECT_EQ(ring.threads(), 1);
  std::vector<std::jthread> workers;
  for (int item = 1; item < 10; ++item) {
    workers.emplace_back([&, item] { ring.Take(item); });
    // Each who waits adds one at most; what is left when there are enough is read by who wants it.
    relu_mask.WaitUntilArrived(std::max(item, std::min(item + 1, kMax)));
    EXPECT_EQ(ring.threads(), std::min(item + 1, kMax));
  }
  EXPECT_EQ(relu_mask.arrived(), 9);
  relu_mask.Open();
  workers.clear();
  for (std::int64_t item = 10; item < 20; ++item) ring.Take(item);
  EXPECT_EQ(ring.threads(), kMax);
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
        {.max_threads = 1, .items = bounds.items, .bytes = bounds.bytes, .end = kNoLastItem},
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
                ReadAhead ring({.max_threads = 1000, .items = 2000, .bytes = 20000, .end = 2000},
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
    ReadAhead ring({.max_threads = 2, .items = 1000, .bytes = 10000, .end = kNoLastItem},
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
