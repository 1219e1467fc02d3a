// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/support/other_user.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kAtOnce{0};

class PrivateFolderTest : public ::testing::Test {
 protected:
  std::string Refusal() const {
    try {
      PrivateFolder folder(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_OSERR);
      return error.what();
    }
    return "";
  }

  static std::string ReadFrom(const PrivateFolder& folder, const std::string& name,
                              std::uint64_t max_bytes = 100) {
    const auto bytes = folder.Read(name, max_bytes);
    return bytes ? std::string(bytes->begin(), bytes->end()) : "nothing";
  }

  TempDir dir_;
  const std::string path_ = dir_ / "own";
};

TEST_F(PrivateFolderTest, IsMadeForThisUserAlone) {
  const mode_t before = ::umask(0);
  PrivateFolder folder(path_);
  folder.Write("a", "one");
  ::umask(before);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(path_ + "/a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(ReadFrom(PrivateFolder(path_), "a"), "one");
}

TEST_F(PrivateFolderTest, IsRefusedWhereOthersMayHaveBeen) {
  fs::create_directory(path_);
  ::chmod(path_.c_str(), 0755);
  EXPECT_THAT(Refusal(), HasSubstr(path_ + ": it is open to others: chmod 700"));
  ::chmod(path_.c_str(), 0701);
  EXPECT_THAT(Refusal(), HasSubstr("open to others"));
  ::chmod(path_.c_str(), 0700);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(PrivateFolderTest, IsRefusedWhereItIsAnotherUsers) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can give a folder to another user";
  fs::create_directory(path_);
  ::chmod(path_.c_str(), 0700);
  ASSERT_EQ(::chown(path_.c_str(), tests::kNobody, tests::kNobody), 0);
  EXPECT_THAT(Refusal(), HasSubstr(path_ + ": it is of another user"));
}

TEST_F(PrivateFolderTest, IsNoLinkAndNoFile) {
  fs::create_directory(dir_ / "elsewhere");
  ::chmod((dir_ / "elsewhere").c_str(), 0700);
  fs::create_directory_symlink(dir_ / "elsewhere", path_);
  EXPECT_THAT(Refusal(), HasSubstr("cannot open the folder " + path_));
  fs::remove(path_);
  WriteText(path_, "a file");
  EXPECT_THAT(Refusal(), HasSubstr("cannot open the folder " + path_));
}

TEST_F(PrivateFolderTest, NeedsTheFolderAbove) {
  EXPECT_EQ(::access(path_.c_str(), F_OK), -1);
  const std::string deep = path_ + "/deeper";
  EXPECT_THROW(PrivateFolder folder(deep), Error);
}

TEST_F(PrivateFolderTest, ReadsPlainFilesOfThisUserUpToALimit) {
  const PrivateFolder folder(path_);
  EXPECT_EQ(ReadFrom(folder, "none"), "nothing");
  folder.Write("a", "12345");
  EXPECT_EQ(ReadFrom(folder, "a", 5), "12345");
  EXPECT_EQ(ReadFrom(folder, "a", 4), "nothing");
  fs::create_symlink("a", path_ + "/link");
  EXPECT_EQ(ReadFrom(folder, "link"), "nothing");
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFrom(folder, "pipe"), "nothing");
  fs::create_directory(path_ + "/folder");
  EXPECT_EQ(ReadFrom(folder, "folder"), "nothing");
  if (tests::HasOtherUsers()) {
    ASSERT_EQ(::chown((path_ + "/a").c_str(), tests::kNobody, tests::kNobody), 0);
    EXPECT_EQ(ReadFrom(folder, "a"), "nothing");
  }
}

TEST_F(PrivateFolderTest, WritesWhole) {
  const PrivateFolder folder(path_);
  folder.Write("a", "old and long");
  WriteText(path_ + "/.a.tmp", "of a process that was killed");
  folder.Write("a", "new");
  EXPECT_EQ(ReadFrom(folder, "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
  // Where it cannot have its name, nothing is left.
  fs::create_directory(path_ + "/b");
  EXPECT_THROW(folder.Write("b", "x"), Error);
  EXPECT_FALSE(fs::exists(path_ + "/.b.tmp"));
}

TEST_F(PrivateFolderTest, KeepsTheNewestFiles) {
  const PrivateFolder folder(path_);
  const auto now = fs::file_time_type::clock::now();
  int age = 0;
  for (const char* name : {"x-new", "x-older", "x-oldest", "other"}) {
    folder.Write(name, name);
    fs::last_write_time(path_ + "/" + name, now - std::chrono::hours(++age));
  }
  folder.Prune("x-", 3);
  EXPECT_TRUE(fs::exists(path_ + "/x-oldest"));
  folder.Prune("x-", 2);
  EXPECT_FALSE(fs::exists(path_ + "/x-oldest"));
  EXPECT_TRUE(fs::exists(path_ + "/x-older"));
  EXPECT_TRUE(fs::exists(path_ + "/other"));
}

TEST_F(PrivateFolderTest, HasLocksOfWhichOneHolderHasEach) {
  const PrivateFolder folder(path_);
  auto held = folder.Lock("lock-1", kAtOnce);
  ASSERT_TRUE(held);
  EXPECT_FALSE(folder.Lock("lock-1", kAtOnce));
  EXPECT_TRUE(folder.Lock("lock-2", kAtOnce));
  held.reset();
  EXPECT_TRUE(folder.Lock("lock-1", kAtOnce));
}

TEST_F(PrivateFolderTest, HasNoLockInPlaceOfALink) {
  const PrivateFolder folder(path_);
  fs::create_symlink(dir_ / "target", path_ + "/lock-1");
  EXPECT_FALSE(folder.Lock("lock-1", kAtOnce));
  EXPECT_FALSE(fs::exists(dir_ / "target"));
}

}  // namespace
}  // namespace trainer
