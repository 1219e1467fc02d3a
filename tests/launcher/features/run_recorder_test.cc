// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/run_recorder.h"

#include <thread>

#include "launcher/base/error.h"
#include "tests/launcher/features/fake_watched_job.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using FileTime = ChangeTracker::FileTime;

FileTime At(double seconds) {
  return FileTime(
      std::chrono::duration_cast<FileTime::duration>(std::chrono::duration<double>(seconds)));
}

struct Change {
  const char* name;
  std::optional<double> before, after;  // the file's time at 10 s and at 15 s
  double file_now;                      // at 15 s
  std::optional<double> changed;
};

TEST(ChangeTracker, HasTheTimeOfAChange) {
  const Change changes[] = {
      {"it is not there", {}, {}, 1015, {}},
      {"it stays as it is", 900, 900, 1015, {}},
      {"it is made", {}, 1012, 1015, 12},
      {"it changes", 900, 1012, 1015, 12},
      {"it changes just after the look before", 900, 1010, 1015, 10},
      {"it changes now", 900, 1015, 1015, 15},
      {"it goes away", 900, {}, 1015, {}},
      {"the file server's clock is behind", 900, 1005, 1015, 15},
      {"the file server's clock is ahead", 900, 1020, 1015, 15},
      {"it becomes older", 900, 800, 1015, 15},
      {"this machine's clock was set back", 1009, 502, 505, 12},
  };
  for (const Change& change : changes) {
    ChangeTracker tracker;
    const auto time = [](std::optional<double> seconds) {
      return seconds ? std::optional(At(*seconds)) : std::nullopt;
    };
    tracker.Look(time(change.before), At(1010), 10);
    EXPECT_FALSE(tracker.changed()) << change.name;
    tracker.Look(time(change.after), At(change.file_now), 15);
    EXPECT_EQ(tracker.changed(), change.changed) << change.name;
  }
}

TEST(ChangeTracker, AFileThatComesBackHasNotChanged) {
  ChangeTracker tracker;
  tracker.Look(At(900), At(1010), 10);
  tracker.Look(std::nullopt, At(1015), 15);
  tracker.Look(At(900), At(1020), 20);
  EXPECT_FALSE(tracker.changed());
}

// A recorder, its watcher, and a job of two ranks.
struct Recorded {
  explicit Recorded(RunRecorderOptions options = {})
      : recorder(std::move(options), RunRecorder::Clock::now()), watcher(recorder) {
    watcher.OnLaunch(job);
  }
  LaunchRecord Read(const std::filesystem::path& file) const {
    std::string problem;
    const auto record = ParseLaunch(tests::TextOf(file), &problem);
    EXPECT_TRUE(record) << problem;
    return record.value_or(LaunchRecord());
  }
  void Sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

  FakeWatchedJob job;
  RunRecorder recorder;
  RunRecorderWatcher watcher;
};

TEST(RunRecorder, SeesWhenAllRanksRun) {
  Recorded run;
  run.job.At(0, run.watcher);
  run.job.started_ranks = {0};
  run.Sleep();
  run.job.At(0, run.watcher, JobWatcher::Event::kStart);
  EXPECT_EQ(run.recorder.Cost().unknown, 0);
  run.job.started_ranks = {0, 1};
  run.job.At(0, run.watcher, JobWatcher::Event::kStart);
  run.Sleep();
  JobStatus status;
  run.watcher.AddTo(&status);
  ASSERT_TRUE(status.cost);
  EXPECT_GE(status.cost->launch, 0.02);
  EXPECT_GE(status.cost->unknown, 0.02);
}

TEST(RunRecorder, SeesTheFailure) {
  struct End {
    const char* name;
    void (*happens)(FakeWatchedJob& job);
    bool is_noticed;
  };
  const End ends[] = {
      {"nothing", [](FakeWatchedJob&) {}, false},
      {"one has stopped early",
       [](FakeWatchedJob& job) {
         job.codes = {{0, 75}};
       },
       false},
      {"one fails",
       [](FakeWatchedJob& job) {
         job.codes = {{0, 75}, {1, 1}};
       },
       true},
      {"ddlrun ends it", [](FakeWatchedJob& job) { job.is_running = false; }, true},
      {"told to stop", [](FakeWatchedJob& job) { job.is_stop_requested = true; }, true},
  };
  for (const End& end : ends) {
    Recorded run;
    run.job.started_ranks = {0, 1};
    run.job.At(0, run.watcher, JobWatcher::Event::kStart);
    end.happens(run.job);
    run.job.At(0, run.watcher);
    EXPECT_EQ(run.recorder.has_noticed(), end.is_noticed) << end.name;
  }
}

TEST(RunRecorder, ProgressIsThatOfTheSlowestRankThatRuns) {
  struct Beats {
    const char* name;
    std::optional<double> of_all;
    std::vector<std::optional<double>> of_ranks;
    std::set<int> ended;
    double detection;
  };
  const Beats cases[] = {
      {"none", {}, {{}, {}}, {}, 0},
      {"of each", {}, {0.0, 0.015}, {}, 0.015},
      {"the slowest has ended", {}, {0.0, 0.015}, {1}, 0},
      {"of all", 0.015, {{}, {}}, {}, 0.015},
  };
  for (const Beats& beats : cases) {
    Recorded run({.source = ProgressSource::kHeartbeat});
    run.job.started_ranks = {0, 1};
    run.job.At(0, run.watcher, JobWatcher::Event::kStart);
    run.Sleep();
    run.job.heartbeats.silence = beats.of_all;
    run.job.heartbeats.ranks.resize(2);
    for (std::size_t i = 0; i < 2; ++i) run.job.heartbeats.ranks[i].silence = beats.of_ranks[i];
    run.job.ended_ranks = beats.ended;
    run.job.codes = {{0, 1}};
    run.job.At(0, run.watcher);
    run.recorder.OnGone(1);
    EXPECT_NEAR(run.recorder.Cost().detection, beats.detection, 1e-6) << beats.name;
  }
}

TEST(RunRecorder, WritesItsFiles) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "run-1.json";
  const std::filesystem::path metrics = directory.path() / "a.prom";
  std::optional<FileTime> checkpoint;
  RunRecorderOptions options;
  options.run_file = file;
  options.metrics = metrics;
  options.progress_time = [&checkpoint] { return checkpoint; };
  Recorded run(std::move(options));
  EXPECT_THAT(tests::TextOf(metrics), HasSubstr("ddlrun_running"));
  run.job.started_ranks = {0, 1};
  run.job.At(0, run.watcher, JobWatcher::Event::kStart);
  run.Sleep();
  run.recorder.OnGone(0);
  EXPECT_FALSE(run.Read(file).exit_code);
  EXPECT_EQ(run.recorder.OnEnd(3), "");
  const LaunchRecord record = run.Read(file);
  EXPECT_EQ(record.exit_code, 3);
  EXPECT_EQ(record.cost.source, ProgressSource::kCheckpoints);
  EXPECT_GE(record.cost.productive, 0.02);
  EXPECT_THAT(tests::TextOf(metrics), HasSubstr("ddlrun_exit_code"));
}

TEST(RunRecorder, SaysWhatCannotBeWritten) {
  const TemporaryDirectory directory;
  RunRecorderOptions options;
  options.run_file = directory.path() / "none" / "run-1.json";
  Recorded run(options);
  run.recorder.OnGone(0);
  EXPECT_THAT(run.recorder.OnEnd(0), HasSubstr("none/run-1.json cannot be written: No such file"));
  options.metrics = directory.path() / "none" / "a.prom";
  EXPECT_THROW(RunRecorder(options, RunRecorder::Clock::now()), LaunchError);
}

}  // namespace
}  // namespace launcher
