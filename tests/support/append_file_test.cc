// SPDX-License-Identifier: Apache-2.0
//
// Files in directories that other users may write, too.

#include "support/append_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/descriptor.h"
#include "support/file.h"
#include "tests/support/other_user.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace support {
namespace {

TEST(OpenToAppend, RefusesWhatIsNoFileOfThisUser) {
  const tests::TemporaryDirectory directory;
  const auto in = [&](const char* name) { return (directory.path() / name).string(); };
  const auto error_of = [](const std::string& path, OwnLinks links = OwnLinks::kReject) {
    const Descriptor file(OpenToAppend(path.c_str(), 0666, links));
    return file.is_open() ? 0 : errno;
  };
  EXPECT_EQ(error_of(in("new")), 0);
  EXPECT_EQ(error_of(in("new")), 0);
  std::filesystem::create_symlink(in("victim"), in("link"));
  EXPECT_EQ(error_of(in("link")), ELOOP);
  EXPECT_FALSE(std::filesystem::exists(in("victim")));
  for (const mode_t mode : {0777, 01777, 0775}) {
    ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0);
    EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), ELOOP) << std::oct << mode;
  }
  EXPECT_FALSE(std::filesystem::exists(in("victim")));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), 0);
  EXPECT_TRUE(std::filesystem::exists(in("victim")));
  EXPECT_EQ(error_of("/dev/stdout", OwnLinks::kFollow), 0);
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0666), 0);
  EXPECT_EQ(error_of(in("fifo")), EMEDIUMTYPE);
  const Descriptor reader(::open(in("fifo").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_EQ(error_of(in("fifo")), EMEDIUMTYPE);
  EXPECT_EQ(error_of("/dev/null"), 0);
  for (const int error : {ELOOP, EMEDIUMTYPE, EOWNERDEAD})
    EXPECT_NE(ReasonNotToAppend(error), nullptr);
  EXPECT_EQ(ReasonNotToAppend(ENOSPC), nullptr);
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "another user's file is made by root alone";
  std::ofstream(in("other")) << "x";
  ASSERT_EQ(::chown(in("other").c_str(), 12345, 12345), 0);
  EXPECT_EQ(error_of(in("other")), EOWNERDEAD);
  ASSERT_EQ(::chown(directory.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(error_of(in("link"), OwnLinks::kFollow), ELOOP);
}

TEST(AtomicFile, NeverWritesToAFileThatIsThere) {
  const tests::TemporaryDirectory directory;
  const std::filesystem::path hidden = directory.path() / ".file.tmp";
  std::ofstream(hidden) << "of another";
  std::filesystem::create_hard_link(hidden, directory.path() / "kept");
  EXPECT_EQ(ReplaceFile(directory.path() / "file", "text"), 0);
  std::string kept;
  std::getline(std::ifstream(directory.path() / "kept") >> std::ws, kept);
  EXPECT_EQ(kept, "of another");
  // Where it cannot be removed another name is taken.
  std::filesystem::create_directory(hidden);
  EXPECT_EQ(ReplaceFile(directory.path() / "file", "more"), 0);
  EXPECT_FALSE(std::filesystem::exists(hidden.string() + "-" + std::to_string(::getpid())));
}

}  // namespace
}  // namespace support
