// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <functional>
#include <limits>

#include "tests/support/refused_calls.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

std::vector<fs::path> Prune(const ScratchDirectory& scratch, const fs::path& durable,
                            const Retention& retention,
                            std::vector<std::string>* warnings = nullptr) {
  return PruneCheckpoints(scratch.path(), durable, retention, [&](const std::string& line) {
    if (warnings != nullptr) warnings->push_back(line);
  });
}
std::vector<fs::path> Prune(const ScratchDirectory& scratch, const fs::path& durable, int newest,
                            std::vector<std::string>* warnings = nullptr) {
  return Prune(scratch, durable, Retention{.newest = newest}, warnings);
}

fs::path WriteSteps(const ScratchDirectory& scratch, const std::vector<int>& steps) {
  fs::path last;
  for (const int step : steps) last = SampleRun(step).Write(scratch.path());
  return last;
}

TEST(PruneCheckpoints, KeepsTheNewest) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
  const fs::path parent = CheckpointsDirectory(scratch.path());
  EXPECT_THAT(Prune(scratch, last, 2),
              ElementsAre(parent / "step-0000000002", parent / "step-0000000001"));
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000003", "step-0000000004"));
}

// Due are 2, 4, 6, ...; 3 and 9 were asked for.
TEST(PruneCheckpoints, KeepsEveryMthOfThoseThatAreDueForEver) {
  const ScratchDirectory scratch;
  const Retention retention = {.newest = 2, .checkpoint_every = 2, .keep_every = 3};
  for (const int step : {2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 18, 20}) {
    Prune(scratch, WriteSteps(scratch, {step}), retention);
  }
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000006", "step-0000000012",
                                                   "step-0000000018", "step-0000000020"));
}

void WriteEvaluated(const ScratchDirectory& scratch, const std::vector<std::pair<int, double>>& all,
                    int newest) {
  for (const auto& [step, top1] : all) {
    SampleRun run(step);
    if (top1 > 0) run.state.top1 = top1;
    Prune(scratch, run.Write(scratch.path()), newest);
  }
}

TEST(PruneCheckpoints, KeepsTheBestUntilABetterOneIsThere) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.25}, {2, 0.5}, {3, 0}, {4, 0.5}, {5, 0.25}, {6, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002", "step-0000000006"));
  WriteEvaluated(scratch, {{7, 0.75}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000007"));
}

TEST(PruneCheckpoints, TakesNoDamagedOneForTheBest) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.5}, {2, 0.75}, {3, 0}}, 9);
  fs::resize_file(CheckpointsDirectory(scratch.path()) / "step-0000000002" / kModelFile, 5);
  WriteEvaluated(scratch, {{4, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000001", "step-0000000004"));
}

// A file system that fails for a moment must not cost the best checkpoint.
TEST(PruneCheckpoints, LeavesWhatCannotBeReadAndMayBeTheBest) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.5}, {2, 0.75}, {3, 0}}, 9);
  const fs::path manifest =
      CheckpointsDirectory(scratch.path()) / "step-0000000002" / kManifestFile;
  const fs::path elsewhere = scratch.path() / "manifest.json";
  fs::rename(manifest, elsewhere);
  fs::create_symlink(kManifestFile, manifest);  // a loop
  WriteEvaluated(scratch, {{4, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000001", "step-0000000002", "step-0000000004"));
  fs::remove(manifest);
  fs::rename(elsewhere, manifest);
  WriteEvaluated(scratch, {{5, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002", "step-0000000005"));
}

TEST(PruneCheckpoints, KeepsForEverByTheStepAlone) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  struct Case {
    std::int64_t step, checkpoint_every, keep_every;
    bool is_kept;
  };
  for (const Case& test : std::vector<Case>{{6, 2, 0, false},
                                            {6, 0, 3, false},
                                            {6, kMost, kMost, false},
                                            {6, 2, kMost, false},
                                            {6, 6, 1, true},
                                            {0, 6, 1, false},
                                            {1, 1, 1, true},
                                            {7, 6, 1, false},
                                            {11, 6, 1, false},
                                            {12, 2, 3, true},
                                            {10, 2, 3, false}}) {
    EXPECT_EQ(IsKeptForEver(test.step, {.newest = 1,
                                        .checkpoint_every = test.checkpoint_every,
                                        .keep_every = test.keep_every}),
              test.is_kept)
        << test.step << " " << test.checkpoint_every << " " << test.keep_every;
  }
}

TEST(PruneCheckpoints, RemovesNothingWhenThereAreFew) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2});
  EXPECT_TRUE(Prune(scratch, last, 5).empty());
  EXPECT_EQ(Listing(scratch.path()).size(), 2U);
}

TEST(PruneCheckpoints, DoesNotCountDamagedOnes) {
  const std::vector<std::function<void(const fs::path&)>> damages = {
      [](const fs::path& checkpoint) { fs::resize_file(checkpoint / kModelFile, 5); },
      [](const fs::path& checkpoint) { fs::remove(checkpoint / kModelFile); },
      [](const fs::path& checkpoint) {
        fs::remove(checkpoint / kManifestFile);
        fs::create_symlink(kManifestFile, checkpoint / kManifestFile);  // a loop
      }};
  for (const auto& damage : damages) {
    const ScratchDirectory scratch;
    const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
    damage(CheckpointsDirectory(scratch.path()) / "step-0000000003");
    Prune(scratch, last, 2);
    EXPECT_THAT(Listing(scratch.path()),
                ElementsAre("step-0000000002", "step-0000000003", "step-0000000004"));
  }
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
  Prune(scratch, last, 1);
  ExpectSampleRun(ReadCheckpoint(last), 5);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000005", "step-0000000009"));
}

TEST(PruneCheckpoints, SaysWhatItCannotRemoveAndGoesOn) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3});
#ifdef SYS_rename
  constexpr std::uint32_t kRename = SYS_rename;
#else
  constexpr std::uint32_t kRename = SYS_renameat;
#endif
  EXPECT_TRUE(HoldsInChild([&] {
    if (!tests::RefuseCalls(kRename, kRename, EACCES)) return true;  // QEMU
    std::vector<std::string> warnings;
    return !SetAside(last) && Prune(scratch, last, 1, &warnings).empty() && warnings.size() == 2 &&
           warnings[0] == "cannot remove " + last.parent_path().string() +
                              "/step-0000000002: Permission denied";
  }));
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000001", "step-0000000002", "step-0000000003"));
}

TEST(PruneCheckpoints, SaysWhereItCannotLook) {
  const ScratchDirectory scratch;
  Spill(scratch.path() / "checkpoints", "a plain file");
  std::vector<std::string> warnings;
  EXPECT_TRUE(Prune(scratch, scratch.path() / "checkpoints/step-0000000001", 1, &warnings).empty());
  EXPECT_THAT(warnings,
              ElementsAre(::testing::AllOf(::testing::HasSubstr("cannot read the directory"),
                                           ::testing::EndsWith(": old checkpoints stay there"))));
  EXPECT_THROW(Prune(scratch, {}, 0), Error);
}

TEST(PruneCheckpoints, RemovesOldOnesThatWereSetAside) {
  const ScratchDirectory scratch;
  WriteSteps(scratch, {1, 2, 3, 4});
  const fs::path parent = CheckpointsDirectory(scratch.path());
  EXPECT_EQ(SetAside(parent / "step-0000000001"), parent / "step-0000000001.unusable");
  EXPECT_EQ(SetAside(parent / "step-0000000004"), parent / "step-0000000004.unusable");
  SetAside(parent / "step-0000000003");
  const fs::path last = WriteSteps(scratch, {3, 4, 5});
  EXPECT_EQ(SetAside(parent / "step-0000000004"), parent / "step-0000000004.unusable-2");
  Prune(scratch, last, 2);  // 3 and 5: what is as old as 3 stays
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000003", "step-0000000003.unusable", "step-0000000004.unusable",
                          "step-0000000004.unusable-2", "step-0000000005"));
}

TEST(SetAside, TakesWhateverIsThere) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  EXPECT_EQ(SetAside(parent / "step-0000000001"), std::nullopt);
  fs::create_symlink("step-0000000002", parent / "step-0000000002");
  EXPECT_EQ(SetAside(parent / "step-0000000002"), parent / "step-0000000002.unusable");
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002.unusable"));
  for (int count = 2; count <= 10; ++count) {
    fs::create_directory(parent / "step-0000000002");
    EXPECT_EQ(SetAside(parent / "step-0000000002").has_value(), count <= 9) << count;
  }
}

}  // namespace
}  // namespace trainer
