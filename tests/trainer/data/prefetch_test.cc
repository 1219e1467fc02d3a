// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/core/few_threads.h"
#include "trainer/core/error.h"
#include "trainer/data/files/parallel_for.h"

namespace trainer {
namespace {

constexpr std::int64_t kEndless = std::int64_t{1} << 60;

// A ring whose item i of step s is the number 100 s + i, plus what the last Seek has told.
class Numbers {
 public:
  explicit Numbers(Prefetcher::Options options)
      : items_(static_cast<std::size_t>(options.items)),
        values_(static_cast<std::size_t>(options.slots) * items_),
        prefetcher_(options, [this](std::int64_t step, int slot, std::int64_t item, int) {
          if (step == bad_step_ && item >= bad_item_) {
            throw std::runtime_error("item " + std::to_string(item));
          }
          ++under_way_;
          values_[static_cast<std::size_t>(slot) * items_ + static_cast<std::size_t>(item)] =
              100 * step + item + told_;
          ++made_;
          --under_way_;
        }) {}

  // The step and a check of its items; -1 at the end.
  std::int64_t Next() {
    const int slot = prefetcher_.Next();
    if (slot < 0) return -1;
    for (std::size_t i = 0; i < items_; ++i) {
      EXPECT_EQ(values_[static_cast<std::size_t>(slot) * items_ + i],
                100 * prefetcher_.step() + static_cast<std::int64_t>(i) + told_);
    }
    return prefetcher_.step();
  }
  void Seek(std::int64_t step) {
    prefetcher_.Seek(step, [this, step] {
      EXPECT_EQ(under_way_, 0);
      told_ = 7 * step;
    });
  }
  std::int64_t made() const { return made_; }

  std::atomic<std::int64_t> bad_step_ = -1;
  std::atomic<std::int64_t> bad_item_ = 0;

 private:
  std::size_t items_;
  std::vector<std::int64_t> values_;
  std::int64_t told_ = 0;  // not atomic: nothing is made when it changes
  std::atomic<int> under_way_ = 0;
  std::atomic<std::int64_t> made_ = 0;
  Prefetcher prefetcher_;
};

TEST(Prefetcher, GivesAllStepsInOrder) {
  for (const int threads : {1, 4}) {
    for (const int slots : {2, 3, 5}) {
      Numbers numbers({.threads = threads, .slots = slots, .items = 7, .end = 50});
      for (std::int64_t step = 0; step < 50; ++step) ASSERT_EQ(numbers.Next(), step);
      EXPECT_EQ(numbers.Next(), -1);
      EXPECT_EQ(numbers.Next(), -1);
      EXPECT_EQ(numbers.made(), 350);
    }
  }
}

TEST(Prefetcher, SeeksForthAndBack) {
  Numbers numbers({.threads = 3, .slots = 3, .items = 5, .end = kEndless});
  for (const std::int64_t target : {0, 1000, 3, 4, 77}) {
    numbers.Seek(target);
    for (std::int64_t step = target; step < target + 4; ++step) ASSERT_EQ(numbers.Next(), step);
  }
}

TEST(Prefetcher, StaysWithinItsSlots) {
  Numbers numbers({.threads = 4, .slots = 3, .items = 2, .end = kEndless});
  for (std::int64_t step = 0; step < 20; ++step) {
    numbers.Next();
    EXPECT_LE(numbers.made(), (step + 3) * 2);  // this batch and two ahead
  }
}

TEST(Prefetcher, ThrowsTheFirstItemsErrorInItsTurn) {
  Numbers numbers({.threads = 4, .slots = 3, .items = 8, .end = kEndless});
  numbers.bad_item_ = 3;
  numbers.bad_step_ = 4;
  numbers.Seek(0);
  for (std::int64_t step = 0; step < 4; ++step) ASSERT_EQ(numbers.Next(), step);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      numbers.Next();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "item 3");
    }
  }
  numbers.bad_step_ = -1;
  numbers.Seek(4);
  EXPECT_EQ(numbers.Next(), 4);
}

TEST(Prefetcher, EndsWhileItemsAreUnderWay) {
  for (int i = 0; i < 50; ++i) {
    Numbers numbers({.threads = 4, .slots = 4, .items = 16, .end = kEndless});
    if (i % 2 == 0) numbers.Next();
  }
}

TEST(Prefetcher, EndsTheThreadsItHasWhereOneCannotBeHad) {
  EXPECT_EXIT(WithFewThreads([] {
                try {
                  const Numbers numbers({.threads = 1000, .slots = 3, .items = 5, .end = kEndless});
                } catch (const Error& error) {
                  return error.exit_code() == EX_OSERR &&
                         std::string(error.what()).starts_with("cannot start input thread ");
                }
                return false;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(ParallelFor, DoesWithTheThreadsThatItGets) {
  EXPECT_EXIT(WithFewThreads([] {
                std::atomic<int> calls = 0;
                ParallelFor(1000, 2000, [&](std::int64_t) { ++calls; });
                return calls == 2000;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(ParallelFor, CallsEachIndexOnce) {
  std::vector<std::atomic<int>> calls(100);
  ParallelFor(4, 100, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
  ParallelFor(4, 0, [](std::int64_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsTheErrorOfTheSmallestIndex) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    try {
      ParallelFor(4, 100, [](std::int64_t i) {
        if (i >= 10) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "10");
    }
  }
}

TEST(Prefetcher, TellsWhenEachItemWasMadeAndByWhichThread) {
  SpanRecorder spans(100);
  spans.Start();
  {
    Numbers numbers({.threads = 2, .slots = 2, .items = 3, .end = 4, .spans = &spans});
    while (numbers.Next() >= 0) {
    }
  }
  std::map<std::int64_t, int> items;  // by step, from 1
  for (const Span& span : spans.Spans()) {
    EXPECT_EQ(span.kind, SpanKind::kImage);
    EXPECT_GE(span.thread, 0);
    EXPECT_LT(span.thread, 2);
    EXPECT_LE(span.begin, span.end);
    ++items[span.number];
  }
  EXPECT_EQ(items, (std::map<std::int64_t, int>{{1, 3}, {2, 3}, {3, 3}, {4, 3}}));
}

}  // namespace
}  // namespace trainer
