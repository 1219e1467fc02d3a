// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "tests/support/refused_calls.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kStep1 = "step-0000000001";
constexpr const char* kStep2 = "step-0000000002";

int CountCalls() {
  const ScratchDirectory scratch;
  int calls = 0;
  SampleRun(1).Write(scratch.path());
  SampleRun(2).Write(scratch.path(), [&](std::string_view) { ++calls; });
  return calls;
}

TEST(WriteCheckpoint, WritesWhatReadsBack) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1234).Write(scratch.path() / "new" / "model");
  EXPECT_EQ(written, scratch.path() / "new/model/checkpoints/step-0000001234");
  ExpectSampleRun(ReadCheckpoint(written), 1234);
  EXPECT_THAT(Listing(scratch.path() / "new/model"), ElementsAre("step-0000001234"));
}

TEST(WriteCheckpoint, KeepsOneThatIsThereAlready) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat((written / kManifestFile).c_str(), &before), 0);
  EXPECT_EQ(SampleRun(1).Write(scratch.path()), written);
  ASSERT_EQ(::stat((written / kManifestFile).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(WriteCheckpoint, KeepsOneThatWasEvaluatedSinceAndNotesWhatIsNew) {
  const ScratchDirectory scratch;
  SampleRun run(1);
  const fs::path written = run.Write(scratch.path());
  run.state.top1 = 0.5;
  EXPECT_EQ(run.Write(scratch.path()), written);
  EXPECT_EQ(ReadCheckpoint(written).manifest.state.top1, 0.5);
  run.state.top1.reset();
  EXPECT_EQ(run.Write(scratch.path()), written);
  EXPECT_EQ(ReadCheckpoint(written).manifest.state.top1, 0.5);
}

TEST(WriteCheckpoint, ReplacesADamagedOne) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  fs::resize_file(written / kModelFile, 10);
  SampleRun(1).Write(scratch.path());
  ExpectSampleRun(ReadCheckpoint(written), 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1, "step-0000000001.unusable"));
}

TEST(WriteCheckpoint, TakesThePlaceOfWhatIsNoDirectory) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  Spill(parent / kStep1, "a plain file");
  ExpectSampleRun(ReadCheckpoint(SampleRun(1).Write(scratch.path())), 1);
  EXPECT_EQ(Slurp(parent / "step-0000000001.unusable"), "a plain file");
  fs::create_symlink(kStep2, parent / kStep2);
  ExpectSampleRun(ReadCheckpoint(SampleRun(2).Write(scratch.path())), 2);
}

// FUSE and CIFS have such file systems.
TEST(WriteCheckpoint, GoesOnWhereFsyncIsNotKnownButNotWhereItFails) {
  const auto writes = [](int error) {
    const ScratchDirectory scratch;
    return HoldsInChild([&] {
      if (!tests::RefuseCalls(SYS_fsync, SYS_fsync, static_cast<std::uint32_t>(error))) {
        return error != EIO;  // QEMU
      }
      try {
        SampleRun(1).Write(scratch.path());
      } catch (const Error&) {
        return false;
      }
      return true;
    });
  };
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) EXPECT_TRUE(writes(error)) << error;
  EXPECT_FALSE(writes(EIO));
}

TEST(WriteCheckpoint, RefusesTheDirectoryOfAnotherRun) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  SampleRun other(1);
  other.weight[0] += 1;
  try {
    other.Write(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr("a checkpoint of another run is there"));
  }
  ExpectSampleRun(ReadCheckpoint(written), 1);
}

TEST(WriteCheckpoint, SyncsFilesThenRenamesThenSyncsTheParent) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  std::vector<std::string> calls;
  SampleRun(2).Write(scratch.path(), [&](std::string_view call) {
    if (call != "write") calls.emplace_back(call);
  });
  EXPECT_THAT(calls, ElementsAre("mkdir", "open", "fsync", "close", "open", "fsync", "close",
                                 "open", "fsync", "close", "fsync", "rename", "fsync"));
}

TEST(WriteCheckpoint, LeavesNothingWhenACallFails) {
  const int calls = CountCalls();
  // The last call is the sync behind the rename: then the new one is whole, and stays.
  for (int failing = 0; failing + 1 < calls; ++failing) {
    const ScratchDirectory scratch;
    SampleRun(1).Write(scratch.path());
    int call = 0;
    EXPECT_THROW(SampleRun(2).Write(scratch.path(),
                                    [&](std::string_view) {
                                      if (call++ == failing) throw Error(EX_OSERR, "injected");
                                    }),
                 Error);
    EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1)) << "call " << failing;
    ExpectSampleRun(*ReadNewest(scratch.path()), 1);
  }
}

TEST(WriteCheckpoint, SurvivesAKillBeforeEachSystemCall) {
  const int calls = CountCalls();
  ASSERT_GT(calls, 15);
  for (int fatal = 0; fatal < calls; ++fatal) {
    const ScratchDirectory scratch;
    SampleRun(1).Write(scratch.path());
    const int status = RunInChild([&] {
      int call = 0;
      SampleRun(2).Write(scratch.path(), [&](std::string_view) {
        if (call++ == fatal) ::raise(SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    std::vector<std::string> warnings;
    const auto newest = ReadNewest(scratch.path(), &warnings);
    ASSERT_TRUE(newest.has_value());
    ExpectSampleRun(*newest, fatal + 1 < calls ? 1 : 2);
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    RemoveStaleCheckpoints(scratch.path());
    for (const std::string& name : Listing(scratch.path())) EXPECT_EQ(name.substr(0, 5), "step-");
    SampleRun(2).Write(scratch.path());  // and the run goes on
    ExpectSampleRun(*ReadNewest(scratch.path()), 2);
  }
}

TEST(WriteCheckpoint, SurvivesAKillAtAnyTime) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  std::int64_t newest = 1;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = newest + 1;; ++step) SampleRun(step).Write(scratch.path());
    }
    ::usleep(static_cast<useconds_t>(1000 + round * 1717 % 9000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    RemoveStaleCheckpoints(scratch.path());
    const auto found = ReadNewest(scratch.path());
    ASSERT_TRUE(found.has_value());
    ExpectSampleRun(*found, found->manifest.state.step);
    EXPECT_GE(found->manifest.state.step, newest);
    newest = found->manifest.state.step;
  }
}

TEST(WriteCheckpoint, SaysWhatToDoWhenAFileMayNotGrow) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const int status = RunInChild([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300, 300};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      SampleRun(2).Write(scratch.path());
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool good = error.exit_code() == EX_OSERR && text.find(kModelFile) != text.npos &&
                        text.find("File too large; make room there") != text.npos;
      ::_exit(good ? 7 : 8);
    }
  });
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1));
}

TEST(WriteCheckpoint, SaysWhatToDoWhenTheDiskIsFull) {
  const ScratchDirectory scratch;
  if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root: " << std::strerror(errno);
  }
  struct Unmount {
    const fs::path& path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } unmount{scratch.path()};

  SampleRun(1).Write(scratch.path());
  SampleRun big(2);
  const std::vector<float> large(400'000);
  big.model.push_back({"large", DType::kFloat32, {400'000}, large.data()});
  try {
    big.Write(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors: No space left on device; make room"));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1));
  ExpectSampleRun(*ReadNewest(scratch.path()), 1);
}

// Quotas of files, and small file systems; a new folder, its first file, its second one.
TEST(WriteCheckpoint, SaysWhereThereMayBeNoMoreFiles) {
  for (const char* options : {"nr_inodes=2", "nr_inodes=3", "nr_inodes=4"}) {
    const ScratchDirectory scratch;
    if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, options) != 0) {
      GTEST_SKIP() << "mounting a small tmpfs needs root: " << std::strerror(errno);
    }
    try {
      SampleRun(1).Write(scratch.path());
      ADD_FAILURE() << options;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left on device (for no more files: df -i); "
                                          "make room there or give another"));
    }
    ::umount2(scratch.path().c_str(), MNT_DETACH);
  }
}

TEST(WriteCheckpoint, NamesTheDirectoryItMayNotWriteTo) {
  try {
    SampleRun(1).Write("/proc/self/model");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("cannot create /proc/self/model"));
    EXPECT_THAT(error.what(), HasSubstr("--model_dir"));
  }
}

TEST(RemoveStaleCheckpoints, RemovesThoseOfTheDeadOnly) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const fs::path parent = CheckpointsDirectory(scratch.path());
  const int dead = 1 << 30;  // larger than any process number the kernel gives
  const std::string prefix = ".tmp-step-0000000002-";
  const std::string of_dead = prefix + HostName() + "-" + std::to_string(dead);
  const std::string of_living = prefix + HostName() + "-" + std::to_string(::getppid());
  const std::string elsewhere = prefix + "other-host-1-77";
  const std::string old_elsewhere = prefix + "other-host-2-77";
  for (const auto& name : {of_dead, of_living, elsewhere, old_elsewhere}) {
    fs::create_directory(parent / name);
    Spill(parent / name / kModelFile, "half");
  }
  const auto two_hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(parent / old_elsewhere / kModelFile, two_hours_ago);
  fs::last_write_time(parent / old_elsewhere, two_hours_ago);

  EXPECT_EQ(RemoveStaleCheckpoints(scratch.path()), 2);
  const auto left = Listing(scratch.path());
  EXPECT_EQ(left.size(), 3U);
  EXPECT_THAT(left, ::testing::Contains(of_living));
  EXPECT_THAT(left, ::testing::Contains(elsewhere));
  EXPECT_THAT(left, ::testing::Contains(std::string(kStep1)));
}

TEST(RemoveStaleCheckpoints, DoesNothingWithoutADirectory) {
  EXPECT_EQ(RemoveStaleCheckpoints("/nonexistent"), 0);
}

TEST(CheckpointNames, ParseTheirOwnAndNothingElse) {
  EXPECT_EQ(CheckpointName(1234), "step-0000001234");
  EXPECT_EQ(ParseCheckpointName("step-0000001234"), 1234);
  EXPECT_EQ(ParseCheckpointName("step-12345678901"), 12345678901);
  for (const char* name : {"step-1234", "step-", "step-00000012x4", "step--000001234", "x", "",
                           "step-99999999999999999999", ".tmp-step-0000001234-h-1"}) {
    EXPECT_EQ(ParseCheckpointName(name), std::nullopt) << name;
  }
  const auto owner = ParseTemporaryName(TemporaryName(5));
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->host, HostName());
  EXPECT_EQ(owner->pid, ::getpid());
  EXPECT_EQ(ParseTemporaryName(".tmp-step-0000000005-only"), std::nullopt);
  EXPECT_EQ(ParseTemporaryName("step-0000000005"), std::nullopt);
}

}  // namespace
}  // namespace trainer
