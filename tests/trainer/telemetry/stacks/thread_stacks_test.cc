// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/stacks/thread_stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"

namespace {

// The handler of this thread is held up in its midst, until it is 0 again.
std::atomic<pid_t> held_thread = 0;
std::atomic<bool> is_held = false;

using Backtrace = int (*)(void**, int);
const auto kLibcBacktrace = reinterpret_cast<Backtrace>(::dlsym(RTLD_NEXT, "backtrace"));

}  // namespace

// In the place of libc's, for the tests of this program.
extern "C" int backtrace(void** frames, int count) {
  while (held_thread == static_cast<pid_t>(::syscall(SYS_gettid))) is_held = true;
  std::array<void*, 65> all{};  // with this function, which is no frame
  const int max = std::min(count + 1, static_cast<int>(all.size()));
  const int taken = std::max(kLibcBacktrace(all.data(), max) - 1, 0);
  std::copy_n(all.begin() + 1, taken, frames);
  return taken;
}

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongAnswerTime = 10s;  // for a busy machine

ThreadStack StackOf(pid_t thread, std::chrono::milliseconds answer_time = kLongAnswerTime) {
  for (const ThreadStack& stack : CollectThreadStacks(answer_time)) {
    if (stack.id == thread) return stack;
  }
  return {};
}

// Whether the thread is in the kernel's read, and not in another way to it, as a fault of a page.
bool IsInRead(pid_t thread) {
  const std::string directory = "/proc/self/task/" + std::to_string(thread);
  std::ifstream call(directory + "/syscall");
  if (!call) return StateInKernel(directory) != "runs";  // this kernel does not tell
  long number = -1;
  return call >> number && number == SYS_read;
}

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
    while (id_ == 0 || !IsInRead(id_)) std::this_thread::yield();
  }
  ~Reader() { fifo_.Write(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  pid_t id() const { return id_; }
  ThreadStack Stack() const { return StackOf(id_); }

 private:
  Fifo fifo_;
  std::atomic<pid_t> id_ = 0;
  std::jthread thread_;
};

class ThreadStacks : public testing::Test {
 protected:
  // It does not mark a handler's frame as the C library's backtrace() knows it.
  void SetUp() override {
    if (tests::IsEmulated()) GTEST_SKIP() << "QEMU 7 has no stacks of threads in handlers";
  }
};

TEST_F(ThreadStacks, TellWhereEachThreadIsTheMainThreadFirst) {
  const TemporaryDirectory directory;
  const Reader reader(directory.path() / "fifo");
  const std::vector<ThreadStack> stacks = CollectThreadStacks(kLongAnswerTime);
  ASSERT_FALSE(stacks.empty());
  EXPECT_EQ(stacks[0].id, ::getpid());
  EXPECT_THAT(StacksAsText({stacks[0]}), HasSubstr("TellWhereEachThreadIsTheMainThreadFirst"));
  const std::string words = StacksAsText({reader.Stack()});
  EXPECT_THAT(words, HasSubstr("Fifo::ReadOne() const in /"));
  EXPECT_THAT(words, testing::ContainsRegex("#[0-9]+ [^\n]*read[^\n]* in /[^\n]*\\+0x"));
}

TEST_F(ThreadStacks, InBriefHaveOneForeignFunctionAndOurs) {
  const ThreadStack stack = {.frames = {{"", "/lib/libc.so(+0x1)"},
                                        {"__read(int)", ""},
                                        {"std::foreign()", ""},
                                        {"void trainer::(anonymous namespace)::Loop(int)", ""},
                                        {"trainer::(anonymous namespace)::Loop(int)::{lambda}", ""},
                                        {"trainer::Run()", ""}}};
  EXPECT_EQ(InBrief(stack), "__read < Loop < Run");
  EXPECT_EQ(InBrief({}), "");
}

TEST_F(ThreadStacks, AThreadCanBeAskedAgainAndAgain) {
  const TemporaryDirectory directory;
  const Reader reader(directory.path() / "fifo");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(reader.Stack().frames.empty());
}

TEST_F(ThreadStacks, AThreadThatBlocksTheSignalHasWhatLinuxSays) {
  const TemporaryDirectory directory;
  const Reader reader(directory.path() / "fifo", /*blocks_signals=*/true);
  const ThreadStack stack = reader.Stack();
  EXPECT_THAT(stack.frames, IsEmpty());
  EXPECT_THAT(stack.state, HasSubstr("cannot be asked: sleeps"));
}

TEST_F(ThreadStacks, NobodyIsAskedWhileAHandlerThatWasGivenUpStillWrites) {
  const TemporaryDirectory directory;
  const Reader reader(directory.path() / "fifo");
  is_held = false;
  held_thread = reader.id();
  while (!is_held) EXPECT_THAT(StackOf(reader.id(), 50ms).frames, IsEmpty());
  const ThreadStack own = StackOf(::getpid());
  EXPECT_THAT(own.frames, IsEmpty());
  EXPECT_THAT(own.state, HasSubstr("does not answer"));
  held_thread = 0;
  while (StackOf(::getpid()).frames.empty()) std::this_thread::yield();
  EXPECT_THAT(StacksAsText({reader.Stack()}), HasSubstr("Fifo::ReadOne() const in /"));
}

// What the kernel gives to each process has a name, but no file.
TEST_F(ThreadStacks, AFunctionOfTheKernelIsNotTakenForOneOfTheProgram) {
  using Clock = int (*)(clockid_t, timespec*);
  const auto clock = reinterpret_cast<Clock>(::dlsym(RTLD_DEFAULT, "clock_gettime"));
  std::atomic<pid_t> id = 0;
  const std::jthread spinner([&](const std::stop_token& stop) {
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    timespec now = {};
    while (!stop.stop_requested()) clock(CLOCK_MONOTONIC, &now);
  });
  while (id == 0) std::this_thread::yield();
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    const ThreadStack stack = StackOf(id);
    ASSERT_FALSE(stack.frames.empty());
    const StackFrame& frame = stack.frames[0];
    if (frame.place.starts_with("linux-vdso")) return;
    // Of libraries, a sanitizer's among them, the names may be stripped.
    EXPECT_FALSE(frame.place.starts_with(program) && frame.function.empty()) << frame.place;
  }
  GTEST_SKIP() << "clock_gettime has never been in the kernel's part of the program";
}

TEST_F(ThreadStacks, NameTheFileThatIsBeingRead) {
  if (!std::ifstream("/proc/self/syscall")) GTEST_SKIP() << "this kernel does not tell";
  EXPECT_EQ(FileBeingRead(), "");
  const TemporaryDirectory directory;
  const Reader reader(directory.path() / "fifo");
  EXPECT_EQ(FileBeingRead(), (directory.path() / "fifo").string());
}

TEST_F(ThreadStacks, TellOfAProcessThatIsStoppedOrHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  const std::string directory = "/proc/" + std::to_string(child);
  EXPECT_EQ(StateInKernel(directory), "stopped");
  ::kill(child, SIGCONT);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(StateInKernel(directory), "ended");
  ::waitpid(child, &status, 0);
  EXPECT_EQ(StateInKernel(directory), "");
}

TEST(ElfSymbols, KnowNothingOfWhatIsNoElfFile) {
  const TemporaryDirectory directory;
  EXPECT_EQ(ElfSymbols(directory.path() / "missing").NameOf(0x1000), "");
  std::ofstream(directory.path() / "short") << "\177ELF";
  EXPECT_EQ(ElfSymbols(directory.path() / "short").NameOf(0x1000), "");
  std::ofstream(directory.path() / "text") << std::string(1000, 'x');
  EXPECT_EQ(ElfSymbols(directory.path() / "text").NameOf(0x1000), "");
  EXPECT_EQ(ElfSymbols("/proc/self/exe").NameOf(0), "");
}

}  // namespace
}  // namespace trainer
