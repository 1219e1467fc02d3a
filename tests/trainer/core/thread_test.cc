// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "tests/trainer/core/few_threads.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(StartThread, RunsTheBody) {
  std::atomic<int> ran = 0;
  StartThread("a thread", [&] { ++ran; }).join();
  EXPECT_EQ(ran, 1);
}

TEST(TryThreads, LeavesNoneBehind) {
  for (int i = 0; i < 20; ++i) TryThreads("threads", 3);
}

TEST(TryThreads, SaysWhatCouldNotBeStartedAndWhichLimitsThereAre) {
  EXPECT_EXIT(WithFewThreads([] {
                try {
                  TryThreads("100 threads of the back end", 100);
                } catch (const Error& error) {
                  EXPECT_EQ(error.exit_code(), EX_OSERR);
                  EXPECT_THAT(error.what(),
                              AllOf(HasSubstr("cannot start 100 threads of the back "
                                              "end: Resource temporarily unavailable"),
                                    HasSubstr("--data_threads"), HasSubstr("ulimit -u")));
                  return !testing::Test::HasFailure();
                }
                return false;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(LowerOwnPriority, IsOfTheCallingThreadAlone) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, 0); };
  const int before = niceness();
  int of_thread = before;
  StartThread("a thread", [&] {
    LowerOwnPriority();
    of_thread = niceness();
  }).join();
  EXPECT_EQ(of_thread, std::min(before + 10, 19));
  EXPECT_EQ(niceness(), before);
}

}  // namespace
}  // namespace trainer
