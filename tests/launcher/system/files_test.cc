// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/error.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

std::string NewFolder() {
  std::string path = testing::TempDir() + "/files.XXXXXX";
  return mkdtemp(path.data());
}

int ExitCodeOf(void (*action)(const std::string&), const std::string& path) {
  try {
    action(path);
    return 0;
  } catch (const LaunchError& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.exit_code();
  }
}

void Read(const std::string& path) { ReadFile(path); }

TEST(Files, AreReadWhole) {
  const std::string folder = NewFolder();
  std::ofstream(folder + "/hosts") << "n1\nn2 slots=2";
  EXPECT_EQ(ReadFile(folder + "/hosts"), "n1\nn2 slots=2");
  fs::remove_all(folder);
}

TEST(Files, AreRefusedWhereTheyAreNone) {
  const std::string folder = NewFolder();
  EXPECT_EQ(ExitCodeOf(Read, folder + "/missing"), EX_DATAERR);
  EXPECT_EQ(ExitCodeOf(Read, folder), EX_DATAERR);
  std::ofstream(folder + "/large") << "";
  fs::resize_file(folder + "/large", 16777217);
  EXPECT_EQ(ExitCodeOf(Read, folder + "/large"), EX_DATAERR);
  fs::remove_all(folder);
}

TEST(Directories, AreMadeWithThoseAboveThem) {
  const std::string folder = NewFolder();
  MakeDirectory(folder + "/a/b");
  MakeDirectory(folder + "/a/b");
  EXPECT_TRUE(fs::is_directory(folder + "/a/b"));
  std::ofstream(folder + "/file") << "";
  EXPECT_EQ(ExitCodeOf(MakeDirectory, folder + "/file"), EX_OSERR);
  EXPECT_EQ(ExitCodeOf(MakeDirectory, folder + "/file/below"), EX_OSERR);
  fs::remove_all(folder);
}

TEST(CurrentDirectory, HasTheNameThatTheShellGivesItWhereThatIsRight) {
  const std::string folder = fs::canonical(NewFolder()).string();
  fs::create_directory(folder + "/place");
  fs::create_directory(folder + "/other");
  fs::create_directory_symlink("place", folder + "/link");
  ASSERT_EQ(chdir((folder + "/place").c_str()), 0);
  EXPECT_EQ(CurrentDirectory({{"PWD", folder + "/link"}}), folder + "/link");
  for (const std::string& wrong :
       {std::string(), std::string("."), folder + "/other", folder + "/missing"}) {
    EXPECT_EQ(CurrentDirectory({{"PWD", wrong}}), folder + "/place") << wrong;
  }
  EXPECT_EQ(CurrentDirectory({}), folder + "/place");
  EXPECT_EQ(AbsolutePath("a/b"), folder + "/place/a/b");
  EXPECT_EQ(AbsolutePath("/a/b"), "/a/b");
  ASSERT_EQ(chdir("/"), 0);
  fs::remove_all(folder);
}

TEST(CurrentDirectory, ThatWasRemovedIsSaidToBe) {
  const std::string folder = NewFolder();
  ASSERT_EQ(chdir(folder.c_str()), 0);
  fs::remove_all(folder);
  EXPECT_THROW(CurrentDirectory({{"PWD", folder}}), LaunchError);
  EXPECT_EQ(ExitCodeOf([](const std::string& path) { AbsolutePath(path); }, "a"), EX_OSERR);
  EXPECT_EQ(ExitCodeOf([](const std::string& path) { AbsolutePath(path); }, "."), EX_OSERR);
  EXPECT_EQ(AbsolutePath("/a"), "/a");
  ASSERT_EQ(chdir("/"), 0);
}

}  // namespace
}  // namespace launcher
