// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "launcher/shim/binding.h"
#include "launcher/shim/leftovers.h"
#include "launcher/shim/output_relay.h"
#include "launcher/shim/run_program.h"
#include "launcher/shim/shared_memory.h"
#include "launcher/shim/stopped_rank_monitor.h"
#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

TEST(Binding, BindsToTheCpusAndRejectsOneThatIsNotThere) {
  // In a thread of its own: the affinity of the others stays.
  std::thread([] {
    const std::string cpu = std::to_string(sched_getcpu());
    EXPECT_STREQ(BindCpus(cpu.c_str()).text, "");
    EXPECT_EQ(std::to_string(sched_getcpu()), cpu);
    EXPECT_EQ(CountUsableCpus(), 1);
    EXPECT_THAT(BindCpus((cpu + ",8000").c_str()).text, HasSubstr("CPU 8000 is not there"));
    EXPECT_THAT(BindCpus("8000-8001").text, HasSubstr("none of the planned CPUs can be used"));
    EXPECT_STREQ(PreferMemoryOf(0).text, "");
  }).join();
}

TEST(Binding, RejectsWhatAreNoCpus) {
  for (const char* list : {"", "-", "x", "3-1", "0-9999", "0,", "0;1"}) {
    EXPECT_THAT(BindCpus(list).text, HasSubstr("are no CPUs")) << list;
  }
}

// Long enough for a machine that is busy.
constexpr int kLong = 30'000;

class LeftoversTest : public testing::Test {
 protected:
  void SetUp() override {
    if (tests::IsEmulated()) GTEST_SKIP() << "QEMU does not emulate PR_SET_CHILD_SUBREAPER";
  }

  // What EndLeftovers leaves of a rank that runs `script` and then ends: how many processes, in a
  // process of its own.  The script tells by the file "ready" that all is there.
  static int LeftOf(const std::string& script, const LeftoverOptions& options) {
    const TemporaryDirectory directory;
    const std::string ready = directory / "ready";
    const pid_t shim = fork();
    if (shim == 0) {
      AdoptOrphans();
      const pid_t rank = fork();
      if (rank == 0) {
        setenv("ready", ready.c_str(), 1);
        execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
        _exit(127);
      }
      waitpid(rank, nullptr, 0);
      while (access(ready.c_str(), F_OK) != 0) usleep(2'000);
      const int left = EndLeftovers(options).count;
      // No child is left to wait for, either.
      const bool has_none = waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
      _exit(left == 0 && !has_none ? 99 : left);
    }
    int status = 0;
    waitpid(shim, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(LeftoversTest, AreEnded) {
  struct Case {
    const char* script;
    int grace_ms;
  };
  const std::string deaf = "trap '' TERM; : > $ready; while :; do sleep 1; done";
  const std::array<Case, 7> cases = {{
      {": > $ready", kLong},
      {"sleep 300 & : > $ready", kLong},
      {"setsid sleep 300 & : > $ready", kLong},
      {"(setsid sh -c 'sleep 300 & sleep 300 & : > $ready; wait' &)", kLong},
      {"for i in $(seq 64); do setsid sleep 300 & done; : > $ready", kLong},
      {"setsid sh -c 'sleep 300 & kill -STOP $$' & : > $ready", 200},
      // One that forks again and again, and never lives long.
      {"f() { : > $ready; (sleep 0.01; f) & exit; }; trap '' TERM; f", 20},
  }};
  for (const Case& each : cases) {
    LeftoverOptions options{.grace_ms = each.grace_ms, .kill_ms = kLong};
    EXPECT_EQ(LeftOf(each.script, options), 0) << each.script;
  }
  LeftoverOptions options{.grace_ms = 50, .kill_ms = kLong};
  EXPECT_EQ(LeftOf("setsid sh -c \"" + deaf + "\" &", options), 0);
}

TEST_F(LeftoversTest, GetSigtermAndTheirGrace) {
  const TemporaryDirectory directory;
  const std::string file = directory / "ended";
  LeftoverOptions options{.grace_ms = kLong};
  EXPECT_EQ(LeftOf("setsid sh -c 'trap \"sleep 0.2; echo ended > " + file +
                       "; exit\" TERM; : > $ready; while :; do sleep 0.05; done' &",
                   options),
            0);
  EXPECT_EQ(tests::TextOf(file), "ended\n");
}

TEST_F(LeftoversTest, MayEndByThemselvesBeforeTheyAreTerminated) {
  const TemporaryDirectory directory;
  const std::string file = directory / "ended";
  LeftoverOptions options{.terminate_after_ms = kLong};
  EXPECT_EQ(LeftOf("sh -c ': > $ready; sleep 0.2; echo ended > " + file + "' &", options), 0);
  EXPECT_EQ(tests::TextOf(file), "ended\n");
}

TEST_F(LeftoversTest, AreNamedWhenTheyCannotBeEnded) {
  const pid_t child = fork();
  if (child == 0) {
    AdoptOrphans();
    // A process without root's rights cannot end one of root's.
    const pid_t of_root = fork();
    if (of_root == 0) {
      alarm(5);
      pause();
      _exit(0);
    }
    if (setuid(65534) != 0) _exit(77);
    const Survivors left = EndLeftovers({.grace_ms = 10, .kill_ms = 50});
    _exit(left.count == 1 && left.first[0].pid == of_root && left.first[0].name[0] != '\0' ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A process with several threads: its first thread ends before the others, by pthread_exit(3), or
// for the moment in which a process that was killed gives back its memory.
TEST_F(LeftoversTest, AreThereUntilTheirLastThreadHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread alone; pthread_exit(3) would unwind the test
  }
  while (ReadProcessState(child).state != 'Z') usleep(1'000);
  const ProcessState running = ReadProcessState(child);
  EXPECT_GE(running.threads, 2);
  EXPECT_FALSE(running.HasEnded());
  EXPECT_EQ(EndLeftovers({.grace_ms = kLong, .kill_ms = kLong}).count, 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), -1) << "it is still there";
}

TEST_F(LeftoversTest, HaveEndedThoughNobodyHasWaitedForThem) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ReadProcessState(child).state, 'Z');
  EXPECT_TRUE(ReadProcessState(child).HasEnded());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(ReadProcessState(child).HasEnded());
}

TEST_F(LeftoversTest, AreNotChildrenThatAreSpared) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  LeftoverOptions options{.spared = &child, .spared_count = 1, .grace_ms = 0};
  EXPECT_EQ(EndLeftovers(options).count, 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

void Add(const std::string& text, StreamTail* tail) { tail->Add(text.data(), text.size()); }

std::vector<std::string> LinesOf(const StreamTail& tail) {
  std::vector<std::string> lines;
  for (int i = 0; i < tail.size(); ++i) lines.emplace_back(tail.line(i));
  return lines;
}

TEST(ShimTail, PutsLinesTogetherFromPiecesAndPassesEmptyOnesOver) {
  StreamTail tail;
  Add("a\n\nb", &tail);
  Add("c\rd", &tail);
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc"));
  tail.End();
  tail.End();
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc", "d"));
}

TEST(ShimTail, KeepsTheLastTenLinesAndTheStartOfLongOnes) {
  StreamTail tail;
  for (int i = 0; i < 25; ++i) Add(std::to_string(i) + "\n", &tail);
  Add(std::string(5000, 'x') + "\n", &tail);
  ASSERT_EQ(LinesOf(tail).size(), 10U);
  EXPECT_EQ(LinesOf(tail).front(), "16");
  EXPECT_EQ(LinesOf(tail).back(), std::string(kReportedLineBytes, 'x'));
}

constexpr char kMark[] = "ddlrun-rank[key]: output: ";

// What is written of a text that comes in `pieces`.
std::string Marked(const std::vector<std::string>& pieces, const char* key = "key") {
  static OutputMarks marks;
  marks = OutputMarks();
  marks.SetKey(key);
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  std::string written;
  for (const std::string& piece : pieces) marks.Write(ends[1], piece.data(), piece.size());
  close(ends[1]);
  char chunk[4096];
  for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof(chunk))) > 0;) {
    written.append(chunk, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  return written;
}

TEST(OutputMarks, AreInFrontOfWhatCouldBeALineOfTheLauncher) {
  const std::string mark = kMark;
  const struct {
    std::vector<std::string> pieces;
    std::string written;
  } kCases[] = {
      {{"step 1\nsteps\n"}, "step 1\nsteps\n"},
      {{"srun: error: n1: task 0: Killed\n"}, mark + "srun: error: n1: task 0: Killed\n"},
      {{"a\nsrun: x\nb\rslurmstepd: y\n\n"},
       "a\n" + mark + "srun: x\nb\r" + mark + "slurmstepd: y\n\n"},
      {{"srun: x\nsrun: y\n"}, mark + "srun: x\n" + mark + "srun: y\n"},
      {{"a srun: x\n", "b", "srun: y\n"}, "a srun: x\nbsrun: y\n"},
      {{"sr", "un: x\n"}, mark + "srun: x\n"},
      {{"s", "tep\n", "s"}, mark + "step\n" + mark + "s"},
      {{"  Remote daemon: [x] on node n1\n"}, mark + "  Remote daemon: [x] on node n1\n"},
      {{"ddlrun-rank: [ERROR DDL-20-78] x\n"}, mark + "ddlrun-rank: [ERROR DDL-20-78] x\n"},
      {{"", "\n", ""}, "\n"},
  };
  for (const auto& [pieces, written] : kCases) {
    EXPECT_EQ(Marked(pieces), written);
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    EXPECT_EQ(Marked(pieces, ""), text);
  }
}

TEST(OutputMarks, FitInFrontOfTheLargestPiece) {
  const std::string line = "srun: " + std::string(OutputMarks::kMaxBytes - 6, 'x');
  EXPECT_EQ(Marked({line}, "0123456789abcdef"), "ddlrun-rank[0123456789abcdef]: output: " + line);
}

// What is written after each of `pieces`, and at the end.
std::vector<std::string> WrittenOf(const std::vector<std::string>& pieces) {
  static WholeLines lines;
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::vector<std::string> written;
  const auto read_all = [&] {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof(chunk))) > 0;) {
      text.append(chunk, static_cast<std::size_t>(got));
    }
    written.push_back(text);
  };
  for (const std::string& piece : pieces) {
    lines.Write(ends[1], piece.data(), piece.size());
    read_all();
  }
  lines.Flush(ends[1]);
  EXPECT_FALSE(lines.is_holding());
  read_all();
  close(ends[0]);
  close(ends[1]);
  return written;
}

TEST(WholeLines, HoldTheBeginningOfALineUntilItsEndHasCome) {
  const std::string most(WholeLines::kMaxPiece, 'x');
  const struct {
    std::vector<std::string> pieces;
    std::vector<std::string> written;
  } kCases[] = {
      {{}, {""}},
      {{"a\n"}, {"a\n", ""}},
      {{"a", " ", "b", "\n"}, {"", "", "", "a b\n", ""}},
      {{"a\nb", "c\nd"}, {"a\n", "bc\n", "d"}},
      {{"10%\r2", "0%\r"}, {"10%\r", "20%\r", ""}},
      {{"", "\n"}, {"", "\n", ""}},
      {{most, "\n"}, {"", most + "\n", ""}},
      {{most, "y", "z\n"}, {"", most + "y", "z\n", ""}},  // longer than what is held
      {{"a\n" + most.substr(2), most}, {"a\n", most.substr(2) + most, ""}},
      {{most.substr(1) + "\n", most}, {most.substr(1) + "\n", "", most}},
  };
  for (const auto& [pieces, written] : kCases) EXPECT_EQ(WrittenOf(pieces), written);
}

// What is written of a text that comes in `pieces`, behind each of which is a pause, in frames.
std::string Framed(const std::vector<std::string>& pieces) {
  static OutputFrames frames;
  frames = OutputFrames();
  frames.SetRank("key", 7);
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  for (const std::string& piece : pieces) {
    frames.Write(ends[1], piece.data(), piece.size());
    frames.Flush(ends[1]);
    EXPECT_FALSE(frames.is_holding());
  }
  frames.End(ends[1]);
  close(ends[1]);
  std::string written;
  char chunk[4096];
  for (ssize_t got = 0; (got = read(ends[0], chunk, sizeof(chunk))) > 0;) {
    written.append(chunk, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  return written;
}

TEST(OutputFrames, SayWhoseEachLineIsAndHowItEnds) {
  const std::string head = "ddlrun-rank[key]: out:7:";
  const struct {
    std::vector<std::string> pieces;
    std::string written;
  } kCases[] = {
      {{}, ""},
      {{"a\n\nb\n"}, head + "n:a\n" + head + "n:\n" + head + "n:b\n"},
      {{"10%\r20%\r"}, head + "r:10%\n" + head + "r:20%\n"},
      {{"a", "b\n"}, head + "p:a\n" + head + "n:b\n"},
      {{"a", "b"}, head + "p:a\n" + head + "p:b\n" + head + "n:\n"},
      {{std::string("\0\x01:", 3), "\n"},
       head + "p:" + std::string("\0\x01:\n", 4) + head + "n:\n"},
  };
  for (const auto& [pieces, written] : kCases) EXPECT_EQ(Framed(pieces), written);
}

TEST(OutputFrames, AreNoLongerThanLaunchersPassOnWhole) {
  for (const std::size_t size : {900U, 973U, 974U, 975U, 5000U, 40000U}) {
    std::istringstream lines(Framed({std::string(size, 'x') + "\n"}));
    std::string text;
    char end = ' ';
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size() + 1, kFrameBytes);
      text += line.substr(26);
      EXPECT_THAT(end, testing::AnyOf(' ', 'p'));
      end = line[24];
    }
    EXPECT_EQ(end, 'n');
    EXPECT_EQ(text, std::string(size, 'x'));
  }
}

// The exit code of `program` with the argument "7", started in `directory`.
int ExitCodeOf(std::string program, const std::string& path, const std::string& directory = "/") {
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(directory.c_str()) != 0) _exit(100);
    std::string argument = "7";
    char* const argv[] = {program.data(), argument.data(), nullptr};
    setenv("PATH", path.c_str(), 1);
    _exit(100 + BecomeProgram(argv, path.c_str()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BecomeProgram, StartsAScriptWithoutAnInterpreterLineAsAShellDoes) {
  const TemporaryDirectory directory;
  directory.Write("script", "exit \"$1\"\n");
  chmod((directory / "script").c_str(), 0755);
  EXPECT_EQ(ExitCodeOf(directory / "script", ""), 7);
  EXPECT_EQ(ExitCodeOf("script", "/nowhere:" + directory.path().string()), 7);
  EXPECT_EQ(ExitCodeOf("script", "/nowhere"), 100 + ENOENT);
  for (const std::string path : {":/nowhere", "/nowhere:", "/nowhere::/"}) {
    EXPECT_EQ(ExitCodeOf("script", path, directory.path()), 7)
        << path;  // an empty entry is where one is
  }
}

using Step = StoppedRankMonitor::Step;

constexpr double kGrace = 3;

// A process that waits, and is killed at the end.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Waiting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void ExpectStopped(pid_t program, pid_t stopped) {
  for (int i = 0; i < 500 && FindStopped(program) != stopped; ++i) usleep(10'000);
  EXPECT_EQ(FindStopped(program), stopped);
}

TEST(RecorderDirectory, IsOfOneRankAloneAndGoesWithIt) {
  const std::string run = "/tmp/ddlrun-shim-test." + std::to_string(getpid());
  const std::string shared = "/dev/shm" + run.substr(4);
  const std::string path = MakeRecorderDirectory(run.c_str(), 3);
  EXPECT_EQ(path, shared + "/ddlrun-recorder.3/");
  EXPECT_EQ(MakeRecorderDirectory(run.c_str(), 3), path);  // after a restart
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  ASSERT_EQ(mkfifo((path + "3.pipe").c_str(), 0666), 0);
  std::ofstream(path + "3") << "x";
  fs::create_directory(shared + "/ddlrun-recorder.4");
  RemoveSharedMemory(3);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(shared + "/ddlrun-recorder.4"));  // of a rank that goes on
  fs::remove(shared + "/ddlrun-recorder.4");
  RemoveSharedMemory(3);
  EXPECT_FALSE(fs::exists(shared));
  std::ofstream(shared) << "of somebody else";
  EXPECT_STREQ(MakeRecorderDirectory(run.c_str(), 3), "");
  RemoveSharedMemory(3);
  EXPECT_TRUE(fs::exists(shared));
  fs::remove(shared);
}

TEST(FindStopped, FindsOneThatGotSigstop) {
  const Waiting waiting;
  EXPECT_EQ(FindStopped(waiting.pid()), 0);
  kill(waiting.pid(), SIGSTOP);
  ExpectStopped(waiting.pid(), waiting.pid());
  ExpectStopped(getpid(), waiting.pid());  // below this one
  kill(waiting.pid(), SIGCONT);
  ExpectStopped(getpid(), 0);
}

TEST(FindStopped, FindsOneThatIsTraced) {
  const Waiting waiting;
  if (ptrace(PTRACE_ATTACH, waiting.pid(), nullptr, nullptr) != 0) GTEST_SKIP() << "no ptrace";
  waitpid(waiting.pid(), nullptr, 0);
  ExpectStopped(waiting.pid(), waiting.pid());
}

TEST(FindStopped, FindsTheWorkerOfAScript) {
  const pid_t script = fork();
  if (script == 0) {
    setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", "sleep 600 & sleep 600; true", nullptr);
    _exit(1);
  }
  pid_t worker = 0;
  const std::string children =
      "/proc/" + std::to_string(script) + "/task/" + std::to_string(script) + "/children";
  for (int i = 0; i < 500 && !(std::ifstream(children) >> worker >> worker); ++i) usleep(10'000);
  kill(worker, SIGSTOP);
  ExpectStopped(script, worker);
  kill(-script, SIGKILL);
  waitpid(script, nullptr, 0);
}

TEST(FindStopped, FindsNothingOfAProcessThatIsGone) { EXPECT_EQ(FindStopped(0x7ffffffe), 0); }

TEST(StoppedRankMonitor, SaysOnceThatARankHasBeenStoppedForLong) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 109.9, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 110, false, kGrace), Step::kPrint);
  EXPECT_EQ(watch.Look(7, 1000, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 1001, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1002, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1012, false, kGrace), Step::kPrint);
}

TEST(StoppedRankMonitor, KillsAGraceAfterTheOrderToStop) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 105, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 107.9, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 108, true, kGrace), Step::kKill);
  EXPECT_EQ(watch.Look(8, 109, true, kGrace), Step::kKill);  // the next one
}

TEST(StoppedRankMonitor, LetsARankThatGoesOnTakeItsTime) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 101, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 1000, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1001, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1004, true, kGrace), Step::kKill);
}

}  // namespace
}  // namespace launcher
