// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/trainer/data/record_source_fixture.h"

namespace trainer {
namespace {

TEST(PlanOpenFiles, RaisesTheLimitByWhatIsNeeded) {
  EXPECT_EQ(PlanOpenFiles({1024, 524288, 20}, 1024), (OpenFilePlan{20 + 1024 + 1024, 1024}));
  // Of a second data set, with the first one's files open.
  EXPECT_EQ(PlanOpenFiles({2068, 524288, 1044}, 128), (OpenFilePlan{1044 + 128 + 1024, 128}));
}

TEST(PlanOpenFiles, LeavesAHighLimitAlone) {
  EXPECT_EQ(PlanOpenFiles({524288, 1048576, 20}, 1024), (OpenFilePlan{524288, 1024}));
  EXPECT_EQ(PlanOpenFiles({2068, 4096, 20}, 1024), (OpenFilePlan{2068, 1024}));
}

TEST(PlanOpenFiles, NeverPassesTheHardLimit) {
  EXPECT_EQ(PlanOpenFiles({1024, 1500, 20}, 1024), (OpenFilePlan{1500, 730}));
  EXPECT_EQ(PlanOpenFiles({1024, 1024, 20}, 1024), (OpenFilePlan{1024, 492}));
  EXPECT_EQ(PlanOpenFiles({1024, 1024, 600}, 100), (OpenFilePlan{1024, 0}));
}

rlimit FileLimits() {
  rlimit limits{};
  ::getrlimit(RLIMIT_NOFILE, &limits);
  return limits;
}

// Ends this process: with 0 if `holds` returns true under these limits.
[[noreturn]] void WithFileLimits(rlim_t soft, rlim_t hard, const std::function<bool()>& holds) {
  const rlimit limits{soft, hard};
  ::_exit(::setrlimit(RLIMIT_NOFILE, &limits) == 0 && holds() ? 0 : 1);
}

TEST_F(RecordSourceTest, RaisesTheLimitOnOpenFilesWhereItMay) {
  const rlim_t hard = FileLimits().rlim_max;
  if (hard < 2048) GTEST_SKIP() << "the hard limit on open files is below 2048";
  EXPECT_EXIT(WithFileLimits(64, hard,
                             [&] {
                               const std::string note = MakeRecordSource(options_)->note();
                               const rlimit limits = FileLimits();
                               return note.empty() && limits.rlim_cur > 1024 &&
                                      limits.rlim_cur < 1200 && limits.rlim_max == hard;
                             }),
              testing::ExitedWithCode(0), "");
}

// With room for one of the three files: the others are opened for each record.
TEST_F(RecordSourceTest, ReadsFilesThatCannotStayOpenAndSaysSo) {
  const auto expected = Take(options_, 0, 8);
  EXPECT_EXIT(WithFileLimits(200, 200,
                             [&] {
                               // What else is open depends on who runs the test.
                               for (rlim_t limit = 200; MakeRoomForOpenFiles(3) > 1; --limit) {
                                 const rlimit limits{limit, limit};
                                 ::setrlimit(RLIMIT_NOFILE, &limits);
                               }
                               const std::string note = MakeRecordSource(options_)->note();
                               return note.starts_with(dir_.path() + ": 1 of 3 data files stay") &&
                                      Take(options_, 0, 8) == expected;
                             }),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace trainer
