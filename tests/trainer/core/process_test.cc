// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/support/temporary_directory.h"
#include "tests/trainer/core/few_threads.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/profiled_op.h"
#include "trainer/core/span_recorder.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

// How a process ends that ignores SIGTERM and runs `end`: the signal, or 1000 + its exit code.
int EndOf(void (*end)()) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGURG, [](int) { EndProcessSoon(); });
    end();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

TEST(EndOfProcess, ComesAtOnce) {
  EXPECT_EQ(EndOf([] { raise(SIGURG); }), SIGTERM);
  EXPECT_EQ(EndOf([] { const DelayedEnd delayed; }), 1007);
}

TEST(EndOfProcess, WaitsForTheLastThatDelaysIt) {
  EXPECT_EQ(EndOf([] {
              const DelayedEnd delayed;
              raise(SIGURG);
              _exit(5);
            }),
            1005);
  EXPECT_EQ(EndOf([] {
              const DelayedEnd delayed;
              {
                const DelayedEnd other;
                raise(SIGURG);
              }
              _exit(6);
            }),
            1006);
  EXPECT_EQ(EndOf([] {
              {
                const DelayedEnd delayed;
                raise(SIGURG);
              }
              _exit(8);
            }),
            SIGTERM);
}

struct FileRejection {
  int exit_code = 0;
  std::string message;
  bool is_shortage = false;
};

FileRejection RejectionOf(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const Shortage& error) {
    return {error.exit_code(), error.what(), true};
  } catch (const Error& error) {
    return {error.exit_code(), error.what(), false};
  }
}

// As long as it lives no descriptor can be had; sanitizers want some to look at an exception.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    const rlimit none{0, usual_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit usual_{};
};

class CoreFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (directory_.path() / name).string(); }

  TemporaryDirectory directory_;
};

TEST_F(CoreFileTest, IsWrittenAndReadWhole) {
  WriteWholeFile(Path("a"), "text");
  EXPECT_EQ(ReadWholeFile(Path("a")), "text");
  EXPECT_EQ(FileSize(OpenForReading(Path("a")), Path("a")), 4U);
}

TEST_F(CoreFileTest, ThatIsMissingIsBadInput) {
  const FileRejection rejection = RejectionOf([&] { ReadWholeFile(Path("a")); });
  EXPECT_EQ(rejection.exit_code, EX_DATAERR);
  EXPECT_EQ(rejection.message, "cannot open " + Path("a") + ": No such file or directory");
}

// A later try may succeed.
TEST_F(CoreFileTest, ThatCannotBeOpenedIsTheSystemsFault) {
  fs::create_symlink("a", Path("a"));
  const FileRejection rejection = RejectionOf([&] { OpenForReading(Path("a")); });
  EXPECT_EQ(rejection.exit_code, EX_OSERR);
  EXPECT_FALSE(rejection.is_shortage);
}

TEST_F(CoreFileTest, TellsALackOfDescriptorsFromABadFile) {
  WriteWholeFile(Path("a"), "text");
  const FileRejection rejection = RejectionOf([&] {
    const NoDescriptors none;
    ReadWholeFile(Path("a"));
  });
  EXPECT_EQ(rejection.exit_code, EX_OSERR);
  EXPECT_TRUE(rejection.is_shortage) << rejection.message;
}

TEST_F(CoreFileTest, ThatIsTooLongIsRejected) {
  WriteWholeFile(Path("a"), "text");
  const FileRejection rejection = RejectionOf([&] { ReadWholeFile(Path("a"), 3); });
  EXPECT_EQ(rejection.exit_code, EX_DATAERR);
  EXPECT_EQ(rejection.message,
            Path("a") + " has 4 bytes, more than the 3 that such a file may have");
}

// A reader that waits for a pipe's writer would wait for ever.
TEST_F(CoreFileTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const FileRejection rejection = RejectionOf([&] { ReadWholeFile(Path("pipe")); });
  EXPECT_EQ(rejection.exit_code, EX_DATAERR);
  EXPECT_EQ(rejection.message, Path("pipe") + " is not a regular file");
  // As <(...) makes it.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const std::string path = "/dev/fd/" + std::to_string(pipe[0]);
  EXPECT_EQ(tests::Rejection<Error>(EX_DATAERR, [&] { ReadWholeFile(path); }),
            path + " is not a regular file: write what <(...) prints to one");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(CoreFileTest, SaysWhyItCannotBeWritten) {
  EXPECT_EQ(RejectionOf([&] { NewFile file(Path("none/a")); }).message,
            "cannot create " + Path("none/a") + ": No such file or directory");
  fs::create_directory(Path("directory"));
  const FileRejection rejection = RejectionOf([&] { WriteWholeFile(Path("directory"), "text"); });
  EXPECT_EQ(rejection.exit_code, EX_OSERR);
  EXPECT_EQ(rejection.message, "cannot give its name to " + Path("directory") + ": Is a directory");
}

TEST(ParsePeaks, TakesGigaFlopsAndGigaBytes) {
  const auto peaks = ParsePeaks("989000:4800");
  ASSERT_TRUE(peaks);
  EXPECT_DOUBLE_EQ(peaks->flops, 989e12);
  EXPECT_DOUBLE_EQ(peaks->bytes_per_second, 4800e9);
  EXPECT_DOUBLE_EQ(ParsePeaks("0.5:1e3")->flops, 0.5e9);
}

TEST(ParsePeaks, TakesNothingElse) {
  for (const char* text : {"", ":", "1", "1:", ":1", "0:1", "1:0", "-1:1", "1:-1", "1:2:3", " 1:2",
                           "1:2 ", "nan:1", "1:inf", "1e308:1", "a:b"}) {
    EXPECT_FALSE(ParsePeaks(text)) << text;
  }
}

using Clock = SpanRecorder::Clock;

TEST(SpanRecorder, HasWhatIsAddedWhileItIsOn) {
  SpanRecorder recorder(10);
  const auto early = Clock::now();
  recorder.Add(SpanKind::kImage, 1, 1, early, early);
  EXPECT_FALSE(recorder.is_on());
  recorder.Start();
  EXPECT_TRUE(recorder.is_on());
  const auto begin = Clock::now();
  recorder.Add(SpanKind::kImage, 2, 7, begin, begin + milliseconds(250));
  recorder.Add(SpanKind::kImage, 3, 7, early, begin);  // began before Start
  recorder.Stop();
  recorder.Add(SpanKind::kImage, 4, 7, begin, begin);
  const std::vector<Span> spans = recorder.Spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].kind, SpanKind::kImage);
  EXPECT_EQ(spans[0].thread, 2);
  EXPECT_EQ(spans[0].number, 7);
  EXPECT_GE(spans[0].begin, 0);
  EXPECT_NEAR(spans[0].end - spans[0].begin, 0.25, 1e-9);
  EXPECT_EQ(recorder.dropped(), 0);
}

TEST(SpanRecorder, CountsWhatDoesNotFit) {
  SpanRecorder recorder(2);
  recorder.Start();
  for (int i = 0; i < 5; ++i) {
    recorder.Add(SpanKind::kImage, 0, i, Clock::now(), Clock::now());
  }
  EXPECT_EQ(recorder.Spans().size(), 2U);
  EXPECT_EQ(recorder.dropped(), 3);
}

TEST(SpanRecorder, LosesNothingOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 1000;
  SpanRecorder recorder(kThreads * kEach);
  recorder.Start();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&recorder, thread] {
        for (int i = 0; i < kEach; ++i) {
          const SpanOfScope span(&recorder, SpanKind::kImage, thread, i);
        }
      });
    }
  }
  recorder.Stop();
  std::set<std::pair<int, std::int64_t>> found;
  for (const Span& span : recorder.Spans()) {
    EXPECT_LE(span.begin, span.end);
    found.emplace(span.thread, span.number);
  }
  EXPECT_EQ(found.size(), std::size_t{kThreads * kEach});
  EXPECT_EQ(recorder.dropped(), 0);
}

TEST(SpanOfScope, NeedsNoRecorder) { const SpanOfScope span(nullptr, SpanKind::kStep, 0, 0); }

TEST(ParseStepWindow, TakesTheFirstStepAndTheirNumber) {
  const auto window = ParseStepWindow("200:20");
  ASSERT_TRUE(window);
  EXPECT_EQ(window->first, 200);
  EXPECT_EQ(window->count, 20);
  EXPECT_EQ(window->last(), 219);
  EXPECT_TRUE(ParseStepWindow("1:1000"));
}

TEST(ParseStepWindow, TakesNothingElse) {
  for (const char* text : {"", ":", "1", "1:", ":1", "0:1", "1:0", "-1:1", "1:1001", "1:2:3",
                           " 1:2", "1:2 ", "+1:2", "1,2", "a:b", "99999999999999999999:1"}) {
    EXPECT_FALSE(ParseStepWindow(text)) << text;
  }
}

TEST(StartThread, RunsTheBody) {
  std::atomic<int> ran = 0;
  StartThread("a thread", [&] { ++ran; }).join();
  EXPECT_EQ(ran, 1);
}

TEST(TryThreads, LeavesNoneBehind) {
  for (int i = 0; i < 20; ++i) TryThreads("threads", 3);
}

TEST(TryThreads, SaysWhatCouldNotBeStartedAndWhichLimitsThereAre) {
  EXPECT_EXIT(WithFewThreads([] {
                try {
                  TryThreads("100 threads of the back end", 100);
                } catch (const Error& error) {
                  EXPECT_EQ(error.exit_code(), EX_OSERR);
                  EXPECT_THAT(error.what(),
                              AllOf(HasSubstr("cannot start 100 threads of the back "
                                              "end: Resource temporarily unavailable"),
                                    HasSubstr("--data_threads"), HasSubstr("ulimit -u")));
                  return !testing::Test::HasFailure();
                }
                return false;
              }),
              testing::ExitedWithCode(0), "");
}

TEST(LowerOwnPriority, IsOfTheCallingThreadAlone) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, 0); };
  const int before = niceness();
  int of_thread = before;
  StartThread("a thread", [&] {
    LowerOwnPriority();
    of_thread = niceness();
  }).join();
  EXPECT_EQ(of_thread, std::min(before + 10, 19));
  EXPECT_EQ(niceness(), before);
}

}  // namespace
}  // namespace trainer
