// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/span_recorder.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace trainer {
namespace {

using Clock = SpanRecorder::Clock;
using std::chrono::milliseconds;

TEST(SpanRecorder, HasWhatIsAddedWhileItIsOn) {
  SpanRecorder recorder(10);
  const auto early = Clock::now();
  recorder.Add(SpanKind::kImage, 1, 1, early, early);
  EXPECT_FALSE(recorder.is_on());
  recorder.Start();
  EXPECT_TRUE(recorder.is_on());
  const auto begin = Clock::now();
  recorder.Add(SpanKind::kImage, 2, 7, begin, begin + milliseconds(250));
  recorder.Add(SpanKind::kImage, 3, 7, early, begin);  // began before Start
  recorder.Stop();
  recorder.Add(SpanKind::kImage, 4, 7, begin, begin);
  const std::vector<Span> spans = recorder.Spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].kind, SpanKind::kImage);
  EXPECT_EQ(spans[0].thread, 2);
  EXPECT_EQ(spans[0].number, 7);
  EXPECT_GE(spans[0].begin, 0);
  EXPECT_NEAR(spans[0].end - spans[0].begin, 0.25, 1e-9);
  EXPECT_EQ(recorder.dropped(), 0);
}

TEST(SpanRecorder, CountsWhatDoesNotFit) {
  SpanRecorder recorder(2);
  recorder.Start();
  for (int i = 0; i < 5; ++i) {
    recorder.Add(SpanKind::kImage, 0, i, Clock::now(), Clock::now());
  }
  EXPECT_EQ(recorder.Spans().size(), 2U);
  EXPECT_EQ(recorder.dropped(), 3);
}

TEST(SpanRecorder, LosesNothingOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 1000;
  SpanRecorder recorder(kThreads * kEach);
  recorder.Start();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&recorder, thread] {
        for (int i = 0; i < kEach; ++i) {
          const SpanOfScope span(&recorder, SpanKind::kImage, thread, i);
        }
      });
    }
  }
  recorder.Stop();
  std::set<std::pair<int, std::int64_t>> found;
  for (const Span& span : recorder.Spans()) {
    EXPECT_LE(span.begin, span.end);
    found.emplace(span.thread, span.number);
  }
  EXPECT_EQ(found.size(), std::size_t{kThreads * kEach});
  EXPECT_EQ(recorder.dropped(), 0);
}

TEST(SpanOfScope, NeedsNoRecorder) { const SpanOfScope span(nullptr, SpanKind::kStep, 0, 0); }

}  // namespace
}  // namespace trainer
