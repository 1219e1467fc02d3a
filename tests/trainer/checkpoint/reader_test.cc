// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>

#include "tests/support/other_user.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCheckpointFiles[] = {kModelFile, kOptimizerFile, kManifestFile};

std::string RefusalOfCheckpoint(const fs::path& directory) {
  try {
    ReadCheckpoint(directory);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    return error.what();
  }
  return "";
}

TEST(ListCheckpoints, RefusesAFileInPlaceOfTheFolderOfARun) {
  const ScratchDirectory scratch;
  for (const char* name : {"weights.pth", "model.safetensors", "empty"}) {
    const fs::path file = scratch.path() / name;
    Spill(file.string(), "x");
    try {
      ListCheckpoints(file);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_USAGE);
      EXPECT_THAT(error.what(), HasSubstr("'" + file.string() + "' is a file, not the folder of"));
      EXPECT_THAT(error.what(), HasSubstr("--init_from"));
    }
  }
  EXPECT_TRUE(ListCheckpoints(scratch.path() / "absent").empty());
}

TEST(ReadCheckpoint, NoticesEveryFlippedBit) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const std::string whole = Slurp(directory / name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      Spill(directory / name, flipped);
      EXPECT_THAT(RefusalOfCheckpoint(directory), HasSubstr(name)) << "byte " << i;
    }
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NamesTheTensorThatIsDamaged) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  std::string bytes = Slurp(directory / kModelFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Spill(directory / kModelFile, bytes);
  EXPECT_EQ(RefusalOfCheckpoint(directory),
            (directory / kModelFile).string() +
                ": damaged: tensor 'conv1.weight' has the wrong checksum");
}

TEST(ReadCheckpoint, NoticesAFileThatIsCutShortOrTooLong) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : kCheckpointFiles) {
    const std::string whole = Slurp(directory / name);
    for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
      Spill(directory / name, whole.substr(0, length));
      EXPECT_THAT(RefusalOfCheckpoint(directory), HasSubstr(name)) << length;
    }
    Spill(directory / name, whole + "x");
    EXPECT_THAT(RefusalOfCheckpoint(directory), HasSubstr(name));
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NoticesAMissingFile) {
  for (const char* name : kCheckpointFiles) {
    const ScratchDirectory scratch;
    const fs::path directory = SampleRun(3).Write(scratch.path());
    fs::remove(directory / name);
    EXPECT_THAT(RefusalOfCheckpoint(directory),
                HasSubstr(std::string(name) + ": No such file or directory"));
  }
}

TEST(ReadCheckpoint, NoticesFilesOfAnotherCheckpoint) {
  const ScratchDirectory scratch;
  const fs::path three = SampleRun(3).Write(scratch.path());
  const fs::path four = SampleRun(4).Write(scratch.path());
  fs::copy_file(three / kModelFile, four / kModelFile, fs::copy_options::overwrite_existing);
  EXPECT_THAT(RefusalOfCheckpoint(four), HasSubstr("wrong checksum"));
  for (const char* name : kCheckpointFiles) {
    fs::copy_file(three / name, four / name, fs::copy_options::overwrite_existing);
  }
  EXPECT_THAT(RefusalOfCheckpoint(four), HasSubstr("its manifest is of step 3"));
}

TEST(ReadNewestCheckpoint, FindsNoneInANewDirectory) {
  const ScratchDirectory scratch;
  EXPECT_FALSE(ReadNewest(scratch.path()).has_value());
  EXPECT_FALSE(ReadNewest(scratch.path() / "nonexistent").has_value());
}

TEST(ReadNewestCheckpoint, TakesTheHighestStep) {
  const ScratchDirectory scratch;
  for (const int step : {9, 100, 20}) SampleRun(step).Write(scratch.path());
  fs::create_directory(CheckpointsDirectory(scratch.path()) / "step-0000000200.bak");
  ExpectSampleRun(*ReadNewest(scratch.path()), 100);
}

TEST(ReadNewestCheckpoint, FallsBackAndSaysSo) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  fs::remove(SampleRun(2).Write(scratch.path()) / kManifestFile);
  fs::resize_file(SampleRun(3).Write(scratch.path()) / kOptimizerFile, 0);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("step-0000000003/optimizer.safetensors: damaged"),
                                    HasSubstr("step-0000000002/manifest.json: No such file")));
  EXPECT_THAT(warnings[0], HasSubstr("passed over"));
}

// A read(2) of `count` bytes gives `error` from now on: a bad block, in a file of a size of its
// own. False where this cannot be had.
bool RefuseReadsOf(std::uint32_t count, std::uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, count, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A checkpoint of step 2, newer than that of step 1, whose model file has a size of its own.
fs::path WriteAnOldAndANewOne(const ScratchDirectory& scratch) {
  SampleRun(1).Write(scratch.path());
  SampleRun run(2);
  run.model.push_back({"more", DType::kFloat32, {48}, run.weight.data()});
  return run.Write(scratch.path());
}

TEST(ReadNewestCheckpoint, FallsBackFromABadDiskAndALostServer) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    const ScratchDirectory scratch;
    const fs::path newest = WriteAnOldAndANewOne(scratch);
    const auto size = static_cast<std::uint32_t>(fs::file_size(newest / kModelFile));
    EXPECT_TRUE(HoldsInChild([&] {
      if (!RefuseReadsOf(size, static_cast<std::uint32_t>(error))) return true;  // QEMU
      std::vector<std::string> warnings;
      const auto found = ReadNewest(scratch.path(), &warnings);
      return found && found->manifest.state.step == 1 && warnings.size() == 1 &&
             warnings[0].starts_with("cannot read " + (newest / kModelFile).string()) &&
             found->passed_over == std::vector<fs::path>{newest};
    })) << error;
  }
}

TEST(ReadNewestCheckpoint, FallsBackFromWhatItMayNotRead) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const ScratchDirectory scratch;
  const fs::path newest = WriteAnOldAndANewOne(scratch);
  fs::permissions(scratch.path(), fs::perms::all);
  fs::permissions(newest / kOptimizerFile, fs::perms::owner_read);
  EXPECT_TRUE(HoldsInChild([&] {
    if (::setuid(tests::kNobody) != 0) return false;
    return ReadNewest(scratch.path())->manifest.state.step == 1;
  }));
}

TEST(ReadNewestCheckpoint, FallsBackFromWhatIsNoDirectory) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const fs::path parent = CheckpointsDirectory(scratch.path());
  Spill(parent / "step-0000000002", "a plain file");
  fs::create_symlink("step-0000000003", parent / "step-0000000003");
  fs::create_symlink("nowhere", parent / "step-0000000004");
  fs::create_directories(parent / "step-0000000005" / kManifestFile);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("not a regular file"), HasSubstr("No such file"),
                                    HasSubstr("symbolic links"), HasSubstr("Not a directory")));
}

TEST(ReadNewestCheckpoint, FallsBackFromAManifestThatNoMemoryHolds) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  constexpr std::uintmax_t kSize = 200'000'000'000;
  fs::resize_file(SampleRun(2).Write(scratch.path()) / kManifestFile, kSize);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("manifest.json has 200000000000 bytes")));
}

// The checkpoint is good: an older one would only lose work.
TEST(ReadNewestCheckpoint, DoesNotFallBackForALackOfDescriptors) {
  const ScratchDirectory scratch;
  for (const int step : {1, 2}) SampleRun(step).Write(scratch.path());
  EXPECT_TRUE(HoldsInChild([&] {
    // The listing needs one; it is closed before the files are opened, by which time none is left.
    const int first_free = ::dup(0);
    ::close(first_free);
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit one_more{static_cast<rlim_t>(first_free) + 1, usual.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &one_more);
    const std::vector<CheckpointPath> listed = ListCheckpoints(scratch.path());
    if (listed.size() != 2 || ::dup(0) < 0) return false;
    try {
      ReadCheckpoint(listed[0].directory);
    } catch (const Error& error) {
      ::setrlimit(RLIMIT_NOFILE, &usual);  // UBSan needs descriptors to look at an object's type
      return error.exit_code() == EX_OSERR && !IsUnusable(error);
    }
    return false;
  }));
}

TEST(ReadNewestCheckpoint, SaysThatALaterTryMaySucceedWhereNoneCanBeRead) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  fs::create_symlink("step-0000000003", parent / "step-0000000003");
  try {
    ReadNewest(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("none of its 1 checkpoints can be read"));
  }
}

TEST(ReadNewestCheckpoint, RefusesToStartAnewOverDamagedOnes) {
  const ScratchDirectory scratch;
  fs::remove(SampleRun(2).Write(scratch.path()) / kManifestFile);
  try {
    ReadNewest(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr("none of its 1 checkpoints is valid"));
  }
}

}  // namespace
}  // namespace trainer
