// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/attachment.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/test.h"

namespace launcher {
namespace {

class AttachmentTest : public testing::Test {
 protected:
  ~AttachmentTest() override { fs::remove(path_); }

  const std::string path_ = "/dev/shm/ddlrun-attached." + std::to_string(getpid());
};

TEST_F(AttachmentTest, LastsUntilTheLastOneIsGone) {
  EXPECT_FALSE(IsAttached(getpid()));
  const int first = AttachToRank(getpid(), getpid());
  const int second = AttachToRank(getpid(), getpid());
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  EXPECT_TRUE(IsAttached(getpid()));
  close(first);
  EXPECT_TRUE(IsAttached(getpid()));
  close(second);
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_FALSE(IsAttached(getpid()));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(AttachmentTest, LeavesNoFileWhereNobodyLooksAnyMore) {
  const int first = AttachToRank(getpid(), getpid());
  const int second = AttachToRank(getpid(), getpid());
  DetachFromRank(first, getpid(), getpid());
  EXPECT_TRUE(IsAttached(getpid()));
  constexpr pid_t kGone = 1 << 30;  // the parent
  DetachFromRank(second, kGone, getpid());
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(AttachmentTest, EndsWithAProcessThatIsKilled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t rank = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const char byte = AttachToRank(rank, rank) >= 0 ? '1' : '0';
    if (write(ends[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  char byte = ' ';
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, '1');
  EXPECT_TRUE(IsAttached(rank));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsAttached(rank));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(AttachmentTest, LeavesAloneWhatIsNoFileOfThisUser) {
  fs::create_symlink("/etc/hostname", path_);
  EXPECT_FALSE(IsAttached(getpid()));
  EXPECT_LT(AttachToRank(getpid(), getpid()), 0);
  EXPECT_TRUE(fs::is_symlink(path_));
}

}  // namespace
}  // namespace launcher
