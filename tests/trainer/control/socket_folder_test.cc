// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/socket_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "tests/trainer/temporary_folder.h"
#include "trainer/control/unix_socket.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

class SocketFolderTest : public testing::Test {
 protected:
  SocketFolderTest() { fs::create_directory(base()); }
  fs::path base() const { return folder_.path() / "base"; }
  fs::path MakeFolder(const std::string& name, mode_t mode) const {
    const fs::path path = base() / name;
    fs::create_directory(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  const TemporaryFolder folder_;
};

TEST_F(SocketFolderTest, TakesTheRunDirectoryAndLeavesItThere) {
  const fs::path run = MakeFolder("ddlrun.abcdef", 0700);
  {
    const SocketFolder folder({run, {base()}});
    EXPECT_EQ(folder.path(), run);
    EXPECT_EQ(folder.socket().parent_path(), run);
  }
  EXPECT_TRUE(exists(run));
}

TEST_F(SocketFolderTest, MakesOneWhereTheRunDirectoryIsNotHereOrNotPrivate) {
  const fs::path open = MakeFolder("open", 0750);
  const fs::path target = MakeFolder("target", 0700);
  fs::create_directory_symlink(target, base() / "link");
  for (const fs::path& run : {fs::path(), base() / "none", open, base() / "link"}) {
    fs::path made;
    {
      const SocketFolder folder({run, {base()}});
      made = folder.path();
      EXPECT_THAT(made.string(), StartsWith((base() / "ddltraind.").string())) << run;
      EXPECT_EQ(ModeOf(made), 0700);
    }
    EXPECT_FALSE(exists(made));
  }
}

TEST_F(SocketFolderTest, TakesTheFirstPlaceThatIsOne) {
  const fs::path deep = base() / std::string(100, 'd');
  fs::create_directory(deep);
  const SocketFolder folder({"", {"relative", base() / "none", deep, base()}});
  EXPECT_EQ(folder.path().parent_path(), base());
  EXPECT_THROW(SocketFolder({"", {base() / "none"}}), Error);
  EXPECT_THROW(SocketFolder({"", {}}), Error);
}

TEST_F(SocketFolderTest, RemovesWhatKilledTrainingsHaveLeftAndNothingElse) {
  const fs::path left = MakeFolder("ddltraind.left", 0700);
  { const support::Descriptor gone = ListenAt((left / "1.socket").string()); }
  const fs::path living = MakeFolder("ddltraind.living", 0700);
  const support::Descriptor listener = ListenAt((living / "2.socket").string());
  const fs::path empty = MakeFolder("ddltraind.empty", 0700);
  const fs::path with_file = MakeFolder("ddltraind.file", 0700);
  std::ofstream(with_file / "3.socket") << "text";
  const fs::path open = MakeFolder("ddltraind.open", 0755);
  { const support::Descriptor gone = ListenAt((open / "4.socket").string()); }
  const fs::path other = MakeFolder("other", 0700);
  { const support::Descriptor gone = ListenAt((other / "5.socket").string()); }
  const SocketFolder folder({"", {base()}});
  EXPECT_FALSE(exists(left));
  for (const fs::path& path : {living / "2.socket", empty, with_file / "3.socket",
                               open / "4.socket", other / "5.socket"}) {
    EXPECT_TRUE(exists(path)) << path;
  }
}

}  // namespace
}  // namespace trainer
