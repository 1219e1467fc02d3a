// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ostream>
#include <thread>

#include "tests/support/test.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {
namespace {

TEST(LineOutput, TellsOnceWhatAFullDiskLosesAndCounts) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  std::vector<int> logged;
  LineOutput buffer(full, /*is_own=*/true, [&](int error) { logged.push_back(error); });
  std::ostream out(&buffer);
  for (int line = 0; line < 3; ++line) out << "line " << line << "\n" << std::flush;
  EXPECT_TRUE(out.good());
  EXPECT_THAT(logged, ElementsAre(ENOSPC));
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
    int logged = 0;
    LineOutput buffer(fd, is_own, [&](int) { ++logged; });
    std::ostream out(&buffer);
    out << "line one.\n" << std::flush;
    LimitFiles(15);
    out << "line two.\n" << std::flush;
    out << "line 3...\n" << std::flush;
    LimitFiles(RLIM_INFINITY);
    out << "line four\n" << std::flush;
    ::_exit(logged == 1 && buffer.lost_lines() == 2 ? 0 : 1);
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

TEST(RedrawnLine, OtherLinesBeginBehindIt) {
  std::ostringstream out;
  RedrawnLine line(out);
  line.Write("a\n");
  line.Draw("1");
  line.Draw("2");
  line.Write("b\nc\n");
  line.Write("d\n");
  line.Draw("3");
  line.End();
  line.End();
  EXPECT_EQ(out.str(), "a\n\r1\x1b[K\r2\x1b[K\nb\nc\nd\n\r3\x1b[K\n");
}

TEST(RedrawnLine, LinesOfTheLogDo) {
  std::ostringstream out;
  RedrawnLine line(out);
  const Logger log = MakeLogger(line, 2, "info");
  line.Draw("1");
  log->warn("late");
  log->debug("never");
  EXPECT_THAT(out.str(), MatchesRegex("\r1\x1b\\[K\n20[^ ]* \\[rank 2\\] warning: late\n"));
}

// A disk that was full, or a terminal that answers EIO once.
TEST(RedrawnLine, GoesOnBehindWhatWasLost) {
  struct FailsOnce : std::stringbuf {
    bool has_failed = false;
    int sync() override { return std::exchange(has_failed, true) ? 0 : -1; }
  };
  FailsOnce buffer;
  std::ostream out(&buffer);
  RedrawnLine line(out);
  line.Write("a\n");
  EXPECT_FALSE(out);
  line.Write("b\n");
  EXPECT_TRUE(out);
  EXPECT_THAT(buffer.str(), EndsWith("b\n"));
}

// Whoever writes meanwhile.
TEST(RedrawnLine, IsWholeAndAloneWithManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 1000;
  std::ostringstream out;
  RedrawnLine line(out);
  const Logger log = MakeLogger(line, 0, "info");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int time = 0; time < kTimes; ++time) {
        if (i % 2 == 0) {
          line.Draw("bar");
        } else {
          log->info("text");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  line.End();
  int logged = 0;
  std::istringstream text(out.str());
  for (std::string found; std::getline(text, found);) {
    const bool is_bar = found.find("bar") != std::string::npos;
    const bool is_log = found.find("text") != std::string::npos;
    ASSERT_NE(is_bar, is_log) << found;
    logged += is_log ? 1 : 0;
  }
  EXPECT_EQ(logged, kThreads / 2 * kTimes);
}

}  // namespace
}  // namespace trainer
