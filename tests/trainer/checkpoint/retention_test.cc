// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

fs::path WriteSteps(const ScratchDirectory& scratch, const std::vector<int>& steps) {
  fs::path last;
  for (const int step : steps) last = SampleRun(step).Write(scratch.path());
  return last;
}

TEST(PruneCheckpoints, KeepsTheNewest) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
  const fs::path parent = CheckpointsDirectory(scratch.path());
  EXPECT_THAT(PruneCheckpoints(scratch.path(), last, 2),
              ElementsAre(parent / "step-0000000002", parent / "step-0000000001"));
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000003", "step-0000000004"));
}

TEST(PruneCheckpoints, RemovesNothingWhenThereAreFew) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2});
  EXPECT_TRUE(PruneCheckpoints(scratch.path(), last).empty());
  EXPECT_EQ(Listing(scratch.path()).size(), 2U);
}

TEST(PruneCheckpoints, DoesNotCountDamagedOnes) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
  fs::resize_file(CheckpointsDirectory(scratch.path()) / "step-0000000003" / kModelFile, 5);
  PruneCheckpoints(scratch.path(), last, 2);
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000002", "step-0000000003", "step-0000000004"));
}

TEST(PruneCheckpoints, DoesNotCountIncompleteOnes) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3});
  fs::remove(CheckpointsDirectory(scratch.path()) / "step-0000000002" / kModelFile);
  PruneCheckpoints(scratch.path(), last, 2);
  EXPECT_EQ(Listing(scratch.path()).size(), 3U);
}

TEST(PruneCheckpoints, NeverRemovesTheOneJustWritten) {
  // Steps 8 and 9 are damaged inside, so the run went back to an older one and has now written 5.
  const ScratchDirectory scratch;
  for (const fs::path& damaged : {WriteSteps(scratch, {8}), WriteSteps(scratch, {9})}) {
    std::string bytes = Slurp(damaged / kModelFile);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    Spill(damaged / kModelFile, bytes);
  }
  const fs::path last = WriteSteps(scratch, {4, 5});
  PruneCheckpoints(scratch.path(), last, 1);
  ExpectSampleRun(ReadCheckpoint(last), 5);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000005", "step-0000000009"));
}

}  // namespace
}  // namespace trainer
