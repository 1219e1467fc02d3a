// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launcher/error.h"
#include "launcher/spawn/master_port.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

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
    std::ifstream file(path + "/log");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one\ntwo\n");
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

TEST(RunDirectory, FollowsNoLinkWhenItWrites) {
  const RunDirectory directory(testing::TempDir(), false);
  fs::create_symlink("/dev/null", directory.path() + "/log");
  EXPECT_THROW(directory.Append("log", "text"), LaunchError);
}

TEST(RunDirectory, NamesABaseThatCannotBeUsed) {
  try {
    const RunDirectory directory("/nonexistent", false);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_NE(std::string(error.what()).find("/nonexistent"), std::string::npos);
  }
}

TEST(RunDirectoryBase, IsTheFirstUsableOfTheKnownVariables) {
  const std::string usable = fs::path(testing::TempDir()).string();
  EXPECT_EQ(RunDirectoryBase({}), "/tmp");
  EXPECT_EQ(RunDirectoryBase({{"TMPDIR", usable}, {"XDG_RUNTIME_DIR", "/"}}), usable);
  EXPECT_EQ(RunDirectoryBase({{"SLURM_TMPDIR", "/nonexistent"}, {"TMPDIR", usable}}), usable);
  EXPECT_EQ(RunDirectoryBase({{"TMPDIR", "relative"}}), "/tmp");
}

TEST(MasterPort, IsAboveTheEphemeralRangeAndDependsOnTheSeed) {
  for (const unsigned long seed : {0UL, 4535UL, 4536UL, 123456789UL}) {
    EXPECT_GE(ChooseMasterPort(seed), 61000);
    EXPECT_LE(ChooseMasterPort(seed), 65535);
  }
  EXPECT_NE(ChooseMasterPort(1000), ChooseMasterPort(2000));
}

}  // namespace
}  // namespace launcher
