// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/thread_stacks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/trainer/temporary_folder.h"
#include "trainer/telemetry/elf_symbols.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A FIFO that is open at both ends, so that reading it waits until something is written.
class Fifo {
 public:
  explicit Fifo(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~Fifo() { ::close(file_); }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;

  [[gnu::noinline]] char ReadOne() const {
    char letter = 0;
    EXPECT_EQ(::read(file_, &letter, 1), 1);
    return letter;
  }
  void Write() const { EXPECT_EQ(::write(file_, "x", 1), 1); }

 private:
  int file_ = -1;
};

// A thread that reads a FIFO until the object goes.
class Reader {
 public:
  explicit Reader(const std::string& path, bool blocks_signals = false) : fifo_(path) {
    thread_ = std::jthread([this, blocks_signals] {
      sigset_t all;
      ::sigfillset(&all);
      if (blocks_signals) ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      id_ = static_cast<pid_t>(::syscall(SYS_gettid));
      fifo_.ReadOne();
    });
    while (id_ == 0) std::this_thread::yield();
    while (StateInKernel("/proc/self/task/" + std::to_string(id_)) == "runs") {
      std::this_thread::yield();
    }
  }
  ~Reader() { fifo_.Write(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  ThreadStack Stack() const {
    for (const ThreadStack& stack : CollectThreadStacks()) {
      if (stack.id == id_) return stack;
    }
    return {};
  }

 private:
  Fifo fifo_;
  std::atomic<pid_t> id_ = 0;
  std::jthread thread_;
};

TEST(ThreadStacks, TellWhereEachThreadIsTheMainThreadFirst) {
  const TemporaryFolder folder;
  const Reader reader(folder.path() / "fifo");
  const std::vector<ThreadStack> stacks = CollectThreadStacks();
  ASSERT_FALSE(stacks.empty());
  EXPECT_EQ(stacks[0].id, ::getpid());
  EXPECT_THAT(StacksAsText({stacks[0]}), HasSubstr("TellWhereEachThreadIsTheMainThreadFirst"));
  const std::string words = StacksAsText({reader.Stack()});
  EXPECT_THAT(words, HasSubstr("Fifo::ReadOne() const in /"));
  EXPECT_THAT(words, testing::ContainsRegex("#[0-9]+ [^\n]*read[^\n]* in /[^\n]*\\+0x"));
}

TEST(ThreadStacks, InBriefHaveOneForeignFunctionAndOurs) {
  const ThreadStack stack = {.frames = {{"", "/lib/libc.so(+0x1)"},
                                        {"__read(int)", ""},
                                        {"std::foreign()", ""},
                                        {"void trainer::(anonymous namespace)::Loop(int)", ""},
                                        {"trainer::(anonymous namespace)::Loop(int)::{lambda}", ""},
                                        {"trainer::Run()", ""}}};
  EXPECT_EQ(InBrief(stack), "__read < Loop < Run");
  EXPECT_EQ(InBrief({}), "");
}

TEST(ThreadStacks, AThreadCanBeAskedAgainAndAgain) {
  const TemporaryFolder folder;
  const Reader reader(folder.path() / "fifo");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(reader.Stack().frames.empty());
}

TEST(ThreadStacks, AThreadThatBlocksTheSignalHasWhatLinuxSays) {
  const TemporaryFolder folder;
  const Reader reader(folder.path() / "fifo", /*blocks_signals=*/true);
  const ThreadStack stack = reader.Stack();
  EXPECT_THAT(stack.frames, IsEmpty());
  EXPECT_THAT(stack.state, HasSubstr("cannot be asked: sleeps"));
}

TEST(ThreadStacks, NameTheFileThatIsBeingRead) {
  if (!std::ifstream("/proc/self/syscall")) GTEST_SKIP() << "this kernel does not tell";
  EXPECT_EQ(FileBeingRead(), "");
  const TemporaryFolder folder;
  const Reader reader(folder.path() / "fifo");
  EXPECT_EQ(FileBeingRead(), (folder.path() / "fifo").string());
}

TEST(ThreadStacks, TellOfAProcessThatIsStoppedOrHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  const std::string folder = "/proc/" + std::to_string(child);
  EXPECT_EQ(StateInKernel(folder), "stopped");
  ::kill(child, SIGCONT);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(StateInKernel(folder), "ended");
  ::waitpid(child, &status, 0);
  EXPECT_EQ(StateInKernel(folder), "");
}

TEST(ElfSymbols, KnowNothingOfWhatIsNoElfFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(ElfSymbols(folder.path() / "missing").NameOf(0x1000), "");
  std::ofstream(folder.path() / "short") << "\177ELF";
  EXPECT_EQ(ElfSymbols(folder.path() / "short").NameOf(0x1000), "");
  std::ofstream(folder.path() / "text") << std::string(1000, 'x');
  EXPECT_EQ(ElfSymbols(folder.path() / "text").NameOf(0x1000), "");
  EXPECT_EQ(ElfSymbols("/proc/self/exe").NameOf(0), "");
}

}  // namespace
}  // namespace trainer
