// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/run_directory.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "launcher/base/error.h"
#include "tests/support/other_user.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

TEST(RunDirectory, IsPrivateAndGoneAtTheEnd) {
  std::string path;
  {
    const RunDirectory directory(testing::TempDir(), false);
    path = directory.path();
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    directory.Append("log", "one\n");
    directory.Append("log", "two\n");
    EXPECT_EQ(tests::TextOf(path + "/log"), "one\ntwo\n");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(RunDirectory, StaysWhenItIsToBeKept) {
  std::string path;
  {
    const RunDirectory directory(testing::TempDir(), true);
    path = directory.path();
  }
  EXPECT_TRUE(fs::exists(path));
  fs::remove_all(path);
}

class LeftDirectories : public testing::Test {
 protected:
  // The directory of a process that was killed, with a file in it.
  std::string OfAKilledProcess(bool keep) {
    const pid_t child = fork();
    if (child == 0) {
      const RunDirectory directory(base_, keep);
      directory.Append("log", "text");
      raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
    for (const auto& entry : fs::directory_iterator(base_)) {
      if (!known_.contains(entry.path())) return *known_.insert(entry.path()).first;
    }
    return "";
  }

  static std::string MarkIn(const std::string& path) {
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().filename().string().starts_with("running-on-")) return entry.path();
    }
    return "";
  }

  const TemporaryDirectory temporary_;
  const std::string base_ = temporary_.path();
  std::set<std::string> known_;
};

TEST_F(LeftDirectories, OfAKilledProcessIsRemovedByTheNext) {
  const std::string left = OfAKilledProcess(false);
  ASSERT_TRUE(fs::exists(left + "/log"));
  { const RunDirectory next(base_, false); }
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(LeftDirectories, OfAProcessThatRunsIsLeftAlone) {
  const RunDirectory running(base_, false);
  { const RunDirectory next(base_, false); }
  EXPECT_TRUE(fs::exists(running.path()));
  EXPECT_NE(MarkIn(running.path()), "");
}

TEST_F(LeftDirectories, ThatIsToBeKeptIsKept) {
  const std::string kept = OfAKilledProcess(true);
  { const RunDirectory next(base_, false); }
  EXPECT_TRUE(fs::exists(kept + "/log"));
  // Nor does one that is kept look for others.
  const std::string left = OfAKilledProcess(false);
  { const RunDirectory next(base_, true); }
  EXPECT_TRUE(fs::exists(left + "/log"));
}

TEST_F(LeftDirectories, OfAnotherNodeIsLeftAlone) {
  const std::string left = OfAKilledProcess(false);
  fs::rename(MarkIn(left), left + "/running-on-another");
  { const RunDirectory next(base_, false); }
  EXPECT_TRUE(fs::exists(left + "/log"));
}

TEST_F(LeftDirectories, BehindALinkIsLeftAlone) {
  const std::string left = OfAKilledProcess(false);
  fs::rename(left, base_ + "/elsewhere");
  fs::create_directory_symlink(base_ + "/elsewhere", left);
  { const RunDirectory next(base_, false); }
  EXPECT_TRUE(fs::exists(base_ + "/elsewhere/log"));
}

TEST(RunDirectory, TakesTheSharedMemoryOfItsRanksWithIt) {
  for (const bool keep : {false, true}) {
    const TemporaryDirectory temporary;
    std::string shared;
    {
      const RunDirectory directory(temporary.path(), keep);
      shared = "/dev/shm/" + fs::path(directory.path()).filename().string();
      fs::create_directory(shared);
      std::ofstream(shared + "/vader_segment.n1.0.1.0") << "x";
    }
    EXPECT_FALSE(fs::exists(shared));
  }
  std::string kept;
  {
    const RunDirectory itself("/dev/shm", true);
    kept = itself.path();
  }
  EXPECT_TRUE(fs::exists(kept));
  fs::remove_all(kept);
}

TEST(RunDirectory, RemovesWhatItHasMadeAlone) {
  const TemporaryDirectory temporary;
  const std::string others = temporary.path().string() + "/others";
  fs::create_directories(others + "/results");
  std::string moved;
  {
    const RunDirectory directory(temporary.path(), false);
    directory.Append("log", "text");
    moved = temporary.path().string() + "/moved";
    fs::rename(directory.path(), moved);
    fs::rename(others, directory.path());
  }
  EXPECT_TRUE(fs::is_empty(moved));
  int found = 0;
  for (const auto& entry : fs::directory_iterator(temporary.path())) {
    found += fs::exists(entry.path() / "results") ? 1 : 0;
  }
  EXPECT_EQ(found, 1);
}

// mode, whether it is taken when it is named, and as a default.
TEST(RunDirectory, IsMadeOnlyWhereOthersCannotReplaceIt) {
  const struct {
    mode_t mode;
    bool is_taken;
    bool is_default;
  } rows[] = {{0700, true, true},   {0755, true, true},   {0775, true, false}, {01775, true, true},
              {0777, false, false}, {0757, false, false}, {01777, true, true}};
  const TemporaryDirectory temporary;
  const std::string base = temporary.path().string() + "/base";
  fs::create_directory(base);
  for (const auto& row : rows) {
    ASSERT_EQ(::chmod(base.c_str(), row.mode), 0);
    EXPECT_EQ(RunDirectoryBase({{"TMPDIR", base}}) == base, row.is_default) << std::oct << row.mode;
    if (row.is_taken) {
      EXPECT_NO_THROW(RunDirectory(base, false)) << std::oct << row.mode;
    } else {
      EXPECT_THAT(tests::Rejection<LaunchError>(EX_CONFIG, [&] { RunDirectory(base, false); }),
                  HasSubstr("base: every user may write there"));
    }
  }
  if (!tests::HasOtherUsers()) return;
  ASSERT_EQ(::chown(base.c_str(), 12345, 12345), 0);  // whose owner may replace what is in it
  EXPECT_THROW(RunDirectory(base, false), LaunchError);
  EXPECT_NE(RunDirectoryBase({{"TMPDIR", base}}), base);
}

TEST(RunDirectory, FollowsNoLinkWhenItWrites) {
  const RunDirectory directory(testing::TempDir(), false);
  fs::create_symlink("/dev/null", directory.path() + "/log");
  EXPECT_THROW(directory.Append("log", "text"), LaunchError);
}

TEST(RunDirectory, NamesABaseThatCannotBeUsed) {
  EXPECT_THAT(tests::Rejection<LaunchError>(
                  EX_OSERR, [&] { const RunDirectory directory("/nonexistent", false); }),
              HasSubstr("/nonexistent"));
}

TEST(RunDirectoryBase, IsTheFirstUsableOfTheKnownVariables) {
  const std::string usable = fs::path(testing::TempDir()).string();
  EXPECT_EQ(RunDirectoryBase({}), "/tmp");
  EXPECT_EQ(RunDirectoryBase({{"TMPDIR", usable}, {"XDG_RUNTIME_DIR", "/"}}), usable);
  EXPECT_EQ(RunDirectoryBase({{"SLURM_TMPDIR", "/nonexistent"}, {"TMPDIR", usable}}), usable);
  EXPECT_EQ(RunDirectoryBase({{"TMPDIR", "relative"}}), "/tmp");
}

}  // namespace
}  // namespace launcher
