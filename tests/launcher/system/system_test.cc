// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/line_reader.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/signal_relay.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

// What a child prints that looks at its standard streams, started by a process that has closed
// those of `closed`.
std::string StreamsOfChild(const std::string& closed) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t starter = fork();
  if (starter == 0) {
    for (const char digit : closed) close(digit - '0');
    ChildSpec spec;
    spec.argv = {"/bin/sh", "-c",
                 "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && printf $fd; done; readlink "
                 "/proc/$$/fd/0; echo error >&2"};
    spec.environment = {"PATH=/usr/bin:/bin"};
    sigemptyset(&spec.signal_mask);
    ChildProcess child = StartChild(spec);
    waitpid(child.pid, nullptr, 0);
    std::array<char, 200> text = {};
    for (const support::Descriptor* from : {&child.stdout_pipe, &child.stderr_pipe}) {
      const ssize_t got = read(from->fd(), text.data(), text.size());
      if (got > 0 && write(ends[1], text.data(), static_cast<std::size_t>(got)) != got) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 200> part = {};
  ssize_t got = 0;
  while ((got = read(ends[0], part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  waitpid(starter, nullptr, 0);
  return text;
}

TEST(StartChild, GivesAllStandardStreamsAlthoughItsOwnAreClosed) {
  for (const char* closed : {"", "0", "01", "02", "12", "012"}) {
    EXPECT_EQ(StreamsOfChild(closed), "012/dev/null\nerror\n") << closed;
  }
}

constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{100};

CommandOutput Shell(const std::string& script) {
  return CommandOutput({"/bin/sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}});
}

TEST(CommandOutput, IsWhatACommandWritesOnBothStreams) {
  CommandOutput command = Shell("echo out; echo error >&2");
  EXPECT_TRUE(command.Wait(kLong));
  EXPECT_TRUE(command.text() == "out\nerror\n" || command.text() == "error\nout\n");
}

TEST(CommandOutput, KnowsACommandThatFailed) {
  EXPECT_FALSE(Shell("exit 3").Wait(kLong));
  EXPECT_FALSE(Shell("kill -KILL $$").Wait(kLong));
  EXPECT_THROW(CommandOutput({"/nonexistent"}, {}), LaunchError);
}

TEST(CommandOutput, TakesOneThatSomebodyElseHasReapedForAFailure) {
  CommandOutput command = Shell("echo out");
  ASSERT_GT(command.pid(), 0);
  ASSERT_EQ(waitpid(command.pid(), nullptr, 0), command.pid());
  EXPECT_TRUE(command.HasEnded());
  EXPECT_EQ(command.pid(), 0);
  EXPECT_FALSE(command.Wait(kLong));
  EXPECT_EQ(command.text(), "out\n");
}

TEST(CommandOutput, EndsACommandThatTakesTooLong) {
  EXPECT_FALSE(Shell("exec sleep 600").Wait(kShort));
  // Also where it, or what it has started, still has or has closed its output.
  EXPECT_FALSE(Shell("sleep 600 & exec sleep 600").Wait(kShort));
  EXPECT_FALSE(Shell("exec sleep 600 > /dev/null 2>&1").Wait(kShort));
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
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  std::ofstream(directory + "/hosts") << "n1\nn2 slots=2";
  EXPECT_EQ(ReadFile(directory + "/hosts"), "n1\nn2 slots=2");
}

TEST(Files, AreRejectedWhereTheyAreNone) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  EXPECT_EQ(ExitCodeOf(Read, directory + "/missing"), EX_DATAERR);
  EXPECT_EQ(ExitCodeOf(Read, directory), EX_DATAERR);
  std::ofstream(directory + "/large") << "";
  fs::resize_file(directory + "/large", 16777217);
  EXPECT_EQ(ExitCodeOf(Read, directory + "/large"), EX_DATAERR);
}

TEST(Directories, AreMadeWithThoseAboveThem) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  MakeDirectory(directory + "/a/b");
  MakeDirectory(directory + "/a/b");
  EXPECT_TRUE(fs::is_directory(directory + "/a/b"));
  std::ofstream(directory + "/file") << "";
  EXPECT_EQ(ExitCodeOf(MakeDirectory, directory + "/file"), EX_OSERR);
  EXPECT_EQ(ExitCodeOf(MakeDirectory, directory + "/file/below"), EX_OSERR);
}

TEST(CurrentDirectory, HasTheNameThatTheShellGivesItWhereThatIsRight) {
  const TemporaryDirectory temporary;
  const std::string directory = fs::canonical(temporary.path());
  fs::create_directory(directory + "/place");
  fs::create_directory(directory + "/other");
  fs::create_directory_symlink("place", directory + "/link");
  ASSERT_EQ(chdir((directory + "/place").c_str()), 0);
  EXPECT_EQ(CurrentDirectory({{"PWD", directory + "/link"}}), directory + "/link");
  for (const std::string& wrong :
       {std::string(), std::string("."), directory + "/other", directory + "/missing"}) {
    EXPECT_EQ(CurrentDirectory({{"PWD", wrong}}), directory + "/place") << wrong;
  }
  EXPECT_EQ(CurrentDirectory({}), directory + "/place");
  EXPECT_EQ(AbsolutePath("a/b"), directory + "/place/a/b");
  EXPECT_EQ(AbsolutePath("/a/b"), "/a/b");
  ASSERT_EQ(chdir("/"), 0);
}

TEST(CurrentDirectory, ThatWasRemovedIsSaidToBe) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  ASSERT_EQ(chdir(directory.c_str()), 0);
  fs::remove_all(directory);
  EXPECT_THROW(CurrentDirectory({{"PWD", directory}}), LaunchError);
  EXPECT_EQ(ExitCodeOf([](const std::string& path) { AbsolutePath(path); }, "a"), EX_OSERR);
  EXPECT_EQ(ExitCodeOf([](const std::string& path) { AbsolutePath(path); }, "."), EX_OSERR);
  EXPECT_EQ(AbsolutePath("/a"), "/a");
  ASSERT_EQ(chdir("/"), 0);
}

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    std::array<int, 2> in = {};
    EXPECT_EQ(pipe2(in.data(), O_NONBLOCK), 0);
    EXPECT_GT(fcntl(in[1], F_SETPIPE_SZ, 1 << 20), 0);
    from_ = support::Descriptor(in[0]);
    writer_ = support::Descriptor(in[1]);
  }

  LineReader Make(LineReader::Unit unit = LineReader::Unit::kLines) {
    return {std::move(from_), unit, [this](std::string_view text) { texts_.emplace_back(text); }};
  }

  void Send(const std::string& text) {
    ASSERT_EQ(write(writer_.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  support::Descriptor from_, writer_;
  std::vector<std::string> texts_;
};

TEST_F(LineReaderTest, KeepsALineBackUntilItIsWhole) {
  LineReader reader = Make();
  Send("one\ntw");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("one\n"));
  Send("o\n");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("one\n", "two\n"));
  EXPECT_FALSE(reader.Read());
}

TEST_F(LineReaderTest, GivesALastLineWithoutAnEnd) {
  LineReader reader = Make();
  Send("a\n\nno end");
  writer_.Close();
  EXPECT_TRUE(reader.Read());
  EXPECT_FALSE(reader.is_open());
  EXPECT_THAT(texts_, ElementsAre("a\n", "\n", "no end"));
}

TEST_F(LineReaderTest, ShowsAProgressBarMoving) {
  LineReader reader = Make();
  Send("10%\r20%\r3");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("10%\r", "20%\r"));
}

TEST_F(LineReaderTest, GivesChunksAtOnce) {
  LineReader reader = Make(LineReader::Unit::kChunks);
  Send("password: ");
  EXPECT_TRUE(reader.Read());
  EXPECT_THAT(texts_, ElementsAre("password: "));
}

TEST_F(LineReaderTest, GivesALongLineWholeAndAnEndlessOneInParts) {
  LineReader reader = Make();
  const std::string part(65536, 'x');
  const auto send = [&](std::size_t bytes) {
    for (; bytes > 0; bytes -= part.size()) {
      EXPECT_THAT(texts_, IsEmpty());
      Send(part);
      EXPECT_TRUE(reader.Read());
    }
  };
  send(kMaxLineBytes);
  Send("end\nnext ");
  EXPECT_TRUE(reader.Read());
  ASSERT_EQ(texts_.size(), 1U);
  EXPECT_EQ(texts_[0].size(), kMaxLineBytes + 4);
  Send("line\n");
  EXPECT_TRUE(reader.Read());
  EXPECT_EQ(texts_.back(), "next line\n");

  texts_.clear();
  send(kMaxLineBytes + part.size());
  ASSERT_EQ(texts_.size(), 1U);
  EXPECT_GT(texts_[0].size(), kMaxLineBytes);
}

TEST_F(LineReaderTest, ComesBackFromAPipeThatIsNeverEmpty) {
  LineReader reader = Make();
  Send(std::string(std::size_t{4} * 65536, '\n'));
  EXPECT_TRUE(reader.Read());
  EXPECT_EQ(texts_.size(), 65536U);
}

TEST_F(LineReaderTest, ComesToTheEndOfAPipeInWhichSomebodyWritesForEver) {
  LineReader reader = Make();
  reader.ReadNoMoreThanThePipeHolds();
  const std::string part(1 << 16, '\n');
  for (int i = 0; i < 16; ++i) {
    Send(part);
    EXPECT_TRUE(reader.Read());
    EXPECT_TRUE(reader.is_open());
  }
  Send("too late");
  EXPECT_TRUE(reader.Read());
  EXPECT_FALSE(reader.is_open());
  EXPECT_EQ(texts_.size(), std::size_t{1} << 20);
}

TEST(WithoutEnd, TakesOneEndAway) {
  EXPECT_EQ(WithoutEnd("a\n"), "a");
  EXPECT_EQ(WithoutEnd("a\r"), "a");
  EXPECT_EQ(WithoutEnd("\n"), "");
  EXPECT_EQ(WithoutEnd("a"), "a");
}

class ProgramsTest : public testing::Test {
 protected:
  std::string Make(const std::string& name, fs::perms permissions) const {
    const fs::path path = temporary_.Write(name, "");
    fs::permissions(path, permissions);
    return path;
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path();
};

TEST_F(ProgramsTest, AreFoundInTheFirstDirectoryOfPathThatHasThem) {
  const std::string in_second = Make("second/program", fs::perms::owner_all);
  const std::string path = directory_ + "/first:" + directory_ + "/second:" + directory_ + "/third";
  Make("third/program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram("program", {{"PATH", path}}), in_second);
  const std::string in_first = Make("first/program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram("program", {{"PATH", path}}), in_first);
  EXPECT_EQ(FindProgram("other", {{"PATH", path}}), "");
  EXPECT_EQ(FindProgram("program", {}), "");
}

TEST_F(ProgramsTest, ADirectoryOrARelativeEntryOfPathIsNone) {
  fs::create_directories(directory_ + "/bin/program");
  EXPECT_EQ(FindProgram("program", {{"PATH", directory_ + "/bin"}}), "");
  EXPECT_EQ(FindProgram("sh", {{"PATH", "bin:./bin:"}}), "");
}

TEST_F(ProgramsTest, APathIsTakenAsItIs) {
  const std::string program = Make("program", fs::perms::owner_all);
  EXPECT_EQ(FindProgram(program, {}), program);
  EXPECT_EQ(FindProgram(directory_ + "/other", {}), "");
}

TEST_F(ProgramsTest, HelpersAreInLibexecBesideTheDirectoryOfPrograms) {
  const std::string helper = Make("libexec/ddlrun/helper", fs::perms::owner_all);
  EXPECT_EQ(RequireHelper("helper", directory_ + "/bin"), helper);
  EXPECT_THAT(tests::Rejection<LaunchError>(EX_UNAVAILABLE,
                                            [&] { RequireHelper("other", directory_ + "/bin"); }),
              HasSubstr(directory_ + "/libexec/ddlrun/other is missing"));
}

TEST_F(ProgramsTest, WhatPathHasNotIsLookedForBesideTheRunningProgram) {
  const std::string own = ProgramDirectory() + "/launcher_system_test";
  EXPECT_EQ(FindProgramOrNeighbor("launcher_system_test", {{"PATH", directory_}}), own);
  const std::string in_path = Make("launcher_system_test", fs::perms::owner_all);
  EXPECT_EQ(FindProgramOrNeighbor("launcher_system_test", {{"PATH", directory_}}), in_path);
  EXPECT_EQ(FindProgramOrNeighbor("nothing", {{"PATH", directory_}}), "");
  EXPECT_EQ(FindProgramOrNeighbor("./launcher_system_test", {{"PATH", directory_}}), "");
}

TEST(ProgramDirectory, IsThatOfThisTest) {
  EXPECT_TRUE(fs::exists(ProgramDirectory() + "/launcher_system_test"));
}

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
  const TemporaryDirectory directory;
  const std::string path = directory / "limited";
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
  EXPECT_EQ(fs::file_size(path), 10U);
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
