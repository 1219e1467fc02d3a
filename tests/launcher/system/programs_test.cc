// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/programs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/error.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() {
    std::string path = testing::TempDir() + "/programs.XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ProgramsTest() override { fs::remove_all(folder_); }

  std::string Make(const std::string& name, fs::perms permissions) const {
    const fs::path path = fs::path(folder_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "";
    fs::permissions(path, permissions);
    return path;
  }

  std::string folder_;
};

TEST_F(ProgramsTest, AreFoundInTheFirstFolderOfPathThatHasThem) {
  const std::string in_second = Make("second/program", fs::perms::owner_all);
  const std::string path = folder_ + "/first:" + folder_ + "/second:" + folder_ + "/third";
  Make("third/program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram("program", {{"PATH", path}}), in_second);
  const std::string in_first = Make("first/program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram("program", {{"PATH", path}}), in_first);
  EXPECT_EQ(FindProgram("other", {{"PATH", path}}), "");
  EXPECT_EQ(FindProgram("program", {}), "");
}

TEST_F(ProgramsTest, AFolderOrARelativeEntryOfPathIsNone) {
  fs::create_directories(folder_ + "/bin/program");
  EXPECT_EQ(FindProgram("program", {{"PATH", folder_ + "/bin"}}), "");
  EXPECT_EQ(FindProgram("sh", {{"PATH", "bin:./bin:"}}), "");
}

TEST_F(ProgramsTest, APathIsTakenAsItIs) {
  const std::string program = Make("program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram(program, {}), program);
  EXPECT_EQ(FindProgram(folder_ + "/other", {}), "");
}

TEST_F(ProgramsTest, HelpersAreInLibexecBesideTheFolderOfPrograms) {
  const std::string helper = Make("libexec/ddlrun/helper", fs::perms::owner_all);
  EXPECT_EQ(RequireHelper("helper", folder_ + "/bin"), helper);
  try {
    RequireHelper("other", folder_ + "/bin");
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    EXPECT_NE(std::string(error.what()).find(folder_ + "/libexec/ddlrun/other is missing"),
              std::string::npos);
  }
}

TEST(ProgramDirectory, IsThatOfThisTest) {
  EXPECT_TRUE(fs::exists(ProgramDirectory() + "/launcher_system_test"));
}

}  // namespace
}  // namespace launcher
