// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/line_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <ostream>
#include <vector>

namespace trainer {
namespace {

using ::testing::ElementsAre;

TEST(LineOutput, TellsOnceWhatAFullDiskLosesAndCounts) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  std::vector<int> told;
  LineOutput buffer(full, /*is_own=*/true, [&](int error) { told.push_back(error); });
  std::ostream out(&buffer);
  for (int line = 0; line < 3; ++line) out << "line " << line << "\n" << std::flush;
  EXPECT_TRUE(out.good());
  EXPECT_THAT(told, ElementsAre(ENOSPC));
  EXPECT_EQ(buffer.lost_lines(), 3);
  ::close(full);
}

TEST(LineOutput, SaysBeforeItWritesLines) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  LineOutput buffer(
      pipe[1], /*is_own=*/true, [](int) {}, [&] { ASSERT_EQ(::write(pipe[1], "\n", 1), 1); });
  std::ostream out(&buffer);
  out << std::flush;  // nothing to write
  out << "a\nb\n" << std::flush;
  char seen[16] = "";
  EXPECT_EQ(::read(pipe[0], seen, sizeof seen), 5);
  EXPECT_STREQ(seen, "\na\nb\n");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

void LimitFiles(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

// What is in a file after four lines of ten bytes, the second and third of which find no room: the
// second that for five bytes.  A limit on the size of files stands for the disk.
std::string AfterAFullDisk(bool is_own) {
  std::string path = "/tmp/line-output-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_APPEND | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    int told = 0;
    LineOutput buffer(fd, is_own, [&](int) { ++told; });
    std::ostream out(&buffer);
    out << "line one.\n" << std::flush;
    LimitFiles(15);
    out << "line two.\n" << std::flush;
    out << "line 3...\n" << std::flush;
    LimitFiles(RLIM_INFINITY);
    out << "line four\n" << std::flush;
    ::_exit(told == 1 && buffer.lost_lines() == 2 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  ::close(fd);
  ::unlink(path.c_str());
  return text;
}

TEST(LineOutput, GoesOnWithWholeLinesWhenThereIsRoomAgain) {
  EXPECT_EQ(AfterAFullDisk(/*is_own=*/true), "line one.\nline four\n");
}

TEST(LineOutput, CutsNothingOffAFileThatOthersMayWriteTo) {
  EXPECT_EQ(AfterAFullDisk(/*is_own=*/false), "line one.\nline \nline four\n");
}

}  // namespace
}  // namespace trainer
