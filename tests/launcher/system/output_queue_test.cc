// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/output_queue.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "launcher/system/signal_relay.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kMoment{20};

// A blocking pipe or pair of sockets whose reader does nothing unless it is told to.
class OutputQueueTest : public testing::TestWithParam<bool> {
 protected:
  OutputQueueTest() {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends = {};
    if (GetParam()) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    } else {
      EXPECT_EQ(pipe(ends.data()), 0);
    }
    reader_ = support::Descriptor(ends[0]);
    writer_ = support::Descriptor(ends[1]);
  }

  std::string ReadSome() const {
    std::string text(1 << 20, '\0');
    const ssize_t got = read(reader_.fd(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }

  support::Descriptor reader_, writer_;
};

TEST_P(OutputQueueTest, WritesWhatTheReaderTakesAndKeepsTheRest) {
  OutputQueue queue(writer_.fd());
  std::string sent;
  for (int i = 0; !queue.IsFull(); ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    sent += line;
    queue.Add(line);
  }
  std::string received;
  while (!queue.IsEmpty()) {
    EXPECT_TRUE(queue.Write());
    received += ReadSome();
  }
  while (received.size() < sent.size()) received += ReadSome();
  EXPECT_EQ(received, sent);
  EXPECT_EQ(queue.dropped_lines(), 0);
  // Other programs that write to it are to wait as before.
  EXPECT_EQ(fcntl(writer_.fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_P(OutputQueueTest, KnowsSinceWhenTheReaderHasTakenNothing) {
  OutputQueue queue(writer_.fd());
  const auto start = OutputQueue::Clock::now();
  queue.Add(std::string(OutputQueue::kMaxBytes, 'x'));
  const auto added = queue.taken_at();
  EXPECT_GE(added, start);
  queue.Add("more");
  EXPECT_EQ(queue.taken_at(), added);
  EXPECT_TRUE(queue.Write());
  const auto taken = queue.taken_at();
  EXPECT_GT(taken, added);  // the pipe took a part
  EXPECT_FALSE(queue.IsEmpty());
  EXPECT_TRUE(queue.Write());
  EXPECT_EQ(queue.taken_at(), taken);
}

TEST_P(OutputQueueTest, DropsAndCountsLinesOnlyWhenToldTo) {
  OutputQueue queue(writer_.fd());
  queue.Add(std::string(OutputQueue::kMaxBytes, '\n'));
  queue.Add("a\nb\n");
  EXPECT_EQ(queue.dropped_lines(), 0);
  queue.DropWhatDoesNotFit();
  queue.Add("c\nd\ne");
  EXPECT_EQ(queue.dropped_lines(), 2);
  queue.DropAll();
  EXPECT_TRUE(queue.IsEmpty());
  EXPECT_EQ(queue.dropped_lines(), static_cast<long>(OutputQueue::kMaxBytes) + 4);
  queue.Add("fits\n");
  EXPECT_TRUE(queue.Write());
  EXPECT_EQ(ReadSome(), "fits\n");
}

TEST_P(OutputQueueTest, SaysOnceThatNobodyCanRead) {
  OutputQueue queue(writer_.fd());
  reader_.Close();
  queue.Add("line\n");
  EXPECT_FALSE(queue.Write());
  queue.Add("line\n");
  EXPECT_TRUE(queue.IsEmpty());
  EXPECT_TRUE(queue.Write());
  EXPECT_EQ(queue.dropped_lines(), 0);
}

TEST_P(OutputQueueTest, AMessageIsGivenUpAfterAnOrderToStop) {
  const std::string much(1 << 20, 'x');
  WriteMessage(writer_.fd(), much, true, kMoment);
  SignalRelay signals;
  raise(SIGTERM);
  WriteMessage(writer_.fd(), much, false, kMoment);
  EXPECT_EQ(signals.Next(), SIGTERM);  // it is still there to be handled
}

TEST_P(OutputQueueTest, AMessageWaitsForASlowReaderWithoutAnOrderToStop) {
  const std::string much(1 << 20, 'x');
  std::thread reader([this, &much] {
    std::this_thread::sleep_for(kMoment);
    for (std::size_t got = 0; got < much.size();) got += ReadSome().size();
  });
  WriteMessage(writer_.fd(), much, false, std::chrono::milliseconds(0));
  reader.join();
}

TEST_P(OutputQueueTest, AMessageIsNotGivenUpWhileAReaderTakesIt) {
  const std::string much(4 << 20, 'x');
  std::size_t got = 0;
  std::thread reader([this, &got] {
    for (std::size_t size = 1; size > 0; got += size) size = ReadSome().size();
  });
  WriteMessage(writer_.fd(), much, true, std::chrono::seconds(5));
  writer_.Close();
  reader.join();
  EXPECT_EQ(got, much.size());
}

INSTANTIATE_TEST_SUITE_P(To, OutputQueueTest, testing::Values(false, true),
                         [](const auto& to) { return to.param ? "Socket" : "Pipe"; });

TEST(OutputQueue, GoesOnWhereADiskIsFull) {
  const support::Descriptor full(open("/dev/full", O_WRONLY));
  OutputQueue queue(full.fd());
  queue.Add("a\nb\n");
  EXPECT_TRUE(queue.Write());
  EXPECT_TRUE(queue.IsEmpty());
  EXPECT_EQ(queue.dropped_lines(), 2);
  EXPECT_EQ(queue.problem(), "No space left on device");
}

// As where a file on NFS was removed (ESTALE): here a limit of file sizes.
TEST(OutputQueue, GoesOnWhereAFileFails) {
  const std::string path = testing::TempDir() + "limited." + std::to_string(getpid());
  const support::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {4, before.rlim_max};
  const SignalRelay signals;  // or the signal would end us
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  OutputQueue queue(file.fd());
  queue.Add("one\n");
  EXPECT_TRUE(queue.Write());
  queue.Add("two\n");
  EXPECT_TRUE(queue.Write());
  EXPECT_EQ(queue.dropped_lines(), 1);
  EXPECT_EQ(queue.problem(), "File too large");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  queue.Add("three\n");
  EXPECT_TRUE(queue.Write());
  EXPECT_TRUE(queue.IsEmpty());
  EXPECT_EQ(std::filesystem::file_size(path), 10U);
  std::filesystem::remove(path);
}

TEST(AreSameFile, TellsPipesApart) {
  std::array<int, 2> one = {}, other = {};
  ASSERT_EQ(pipe(one.data()), 0);
  ASSERT_EQ(pipe(other.data()), 0);
  const support::Descriptor copy(dup(one[1]));
  EXPECT_TRUE(AreSameFile(one[1], copy.fd()));
  EXPECT_FALSE(AreSameFile(one[1], other[1]));
  for (const int fd : {one[0], one[1], other[0], other[1]}) close(fd);
}

}  // namespace
}  // namespace launcher
