// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/evaluated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

fs::path WriteEvaluated(const ScratchDirectory& scratch, int step, double top1) {
  SampleRun run(step);
  run.state.top1 = top1;
  return run.Write(scratch.path());
}

std::vector<std::string> FilesIn(const fs::path& checkpoint) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(ListEvaluated, HasThoseThatWereAndAreWhole) {
  const ScratchDirectory scratch;
  EXPECT_THAT(ListEvaluated(scratch.path()).known, IsEmpty());
  WriteEvaluated(scratch, 1, 0.5);
  SampleRun(2).Write(scratch.path());
  WriteEvaluated(scratch, 3, 0.25);
  fs::remove(WriteEvaluated(scratch, 4, 0.75) / kModelFile);
  const auto [evaluated, unreadable] = ListEvaluated(scratch.path());
  EXPECT_THAT(unreadable, IsEmpty());
  ASSERT_EQ(evaluated.size(), 2U);
  EXPECT_EQ(evaluated[0].step, 3);
  EXPECT_EQ(evaluated[0].top1, 0.25);
  EXPECT_EQ(evaluated[1].directory, CheckpointsDirectory(scratch.path()) / "step-0000000001");
}

TEST(ListEvaluated, NamesThoseThatCannotBeRead) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = WriteEvaluated(scratch, 1, 0.5);
  fs::remove(checkpoint / kManifestFile);
  fs::create_symlink(kManifestFile, checkpoint / kManifestFile);
  const auto [evaluated, unreadable] = ListEvaluated(scratch.path());
  EXPECT_THAT(evaluated, IsEmpty());
  EXPECT_THAT(unreadable, ElementsAre(checkpoint));
}

TEST(BestOf, IsTheHighestOfEqualOnesTheOldest) {
  EXPECT_FALSE(BestOf({}).has_value());
  EXPECT_EQ(BestOf({{9, "", 0.5}, {7, "", 0.75}, {5, "", 0.75}, {3, "", 0.25}})->step, 5);
  EXPECT_EQ(BestOf({{5, "", 0.75}, {7, "", 0.75}})->step, 5);
}

TEST(NoteTop1, ChangesNothingElse) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = SampleRun(1).Write(scratch.path());
  NoteTop1(checkpoint, 0.1234567890123);
  Checkpoint read = ReadCheckpoint(checkpoint);
  EXPECT_EQ(read.manifest.state.top1, 0.1234567890123);
  read.manifest.state.top1.reset();
  ExpectSampleRun(read, 1);
  NoteTop1(checkpoint, 0.5);
  EXPECT_EQ(ReadManifest(checkpoint).state.top1, 0.5);
  EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
}

TEST(NoteTop1, WritesNothingThatIsThere) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = WriteEvaluated(scratch, 1, 0.5);
  NoteTop1(checkpoint, 0.5, [](std::string_view call) { ADD_FAILURE() << call; });
}

TEST(NoteTop1, RefusesWhatIsNoCheckpoint) {
  const ScratchDirectory scratch;
  EXPECT_THROW(NoteTop1(scratch.path(), 0.5), Error);
}

TEST(NoteTop1, LeavesTheManifestAsItWasWhereACallFails) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = SampleRun(1).Write(scratch.path());
  for (const std::string failing : {"open", "write", "rename"}) {
    const WriteHook hook = [&](std::string_view call) {
      if (call == failing) throw Error(EX_OSERR, "no");
    };
    EXPECT_THROW(NoteTop1(checkpoint, 0.5, hook), Error);
    ExpectSampleRun(ReadCheckpoint(checkpoint), 1);
    EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
  }
}

TEST(NoteTop1, SurvivesAKillBeforeEachSystemCall) {
  int calls = 0;
  {
    const ScratchDirectory scratch;
    NoteTop1(SampleRun(1).Write(scratch.path()), 0.5, [&](std::string_view) { ++calls; });
  }
  ASSERT_GT(calls, 3);
  for (int fatal = 0; fatal < calls; ++fatal) {
    const ScratchDirectory scratch;
    const fs::path checkpoint = SampleRun(1).Write(scratch.path());
    const int status = RunInChild([&] {
      int call = 0;
      NoteTop1(checkpoint, 0.5, [&](std::string_view) {
        if (call++ == fatal) ::raise(SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::optional<double> noted = ReadCheckpoint(checkpoint).manifest.state.top1;
    EXPECT_TRUE(!noted || noted == 0.5);
    NoteTop1(checkpoint, 0.75);
    EXPECT_EQ(ReadCheckpoint(checkpoint).manifest.state.top1, 0.75);
    EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
  }
}

}  // namespace
}  // namespace trainer
