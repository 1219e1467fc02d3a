// SPDX-License-Identifier: Apache-2.0
//
// What the logs of 16 ranks cost in a training of 10,000 steps: the time that LogDispatcher and
// StepTrace take on rank 0 and on another rank, for each log alone and for all together.  Nothing
// is trained. The clock that the logs see runs on by one step's length with each step, so that what
// they write every few seconds is written as often as in a real training.  doc/reference/metrics.md
// defines every column.
//
//   log_cost [STEP_MILLISECONDS]        (30.5; build/release/bench/log_cost; files go to TMPDIR)

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/base/scratch_directory.h"
#include "support/number.h"
#include "trainer/comm/factory.h"
#include "trainer/outputs/log_file.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/telemetry/formats/training_json.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/step/step_trace.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 16;
constexpr int kBatch = 256;
constexpr std::int64_t kSteps = 10'000;
constexpr std::int64_t kImages = 1'281'167;  // of ImageNet
constexpr int kRounds = 5;

// A bit set of what is written.
enum Logs : unsigned {
  kNone = 0,
  kLines = 1,  // NVLOG and DLLogger, on standard output and in a file, and progress
  kMlLog = 2,
  kTrainingJson = 4,
  kEvents = 8,
  kPrometheus = 16,
  kTrace = 32,
  kAll = 63,
};

// What reads standard output in a run of ddlrun: somebody at the other end of a pipe.
class Reader {
 public:
  Reader() : pipe_(popen("exec cat > /dev/null", "w")) {
    if (pipe_ == nullptr) throw std::runtime_error("cannot start cat");
  }
  ~Reader() { pclose(pipe_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  int fd() const { return fileno(pipe_); }

 private:
  FILE* pipe_;
};

TrainConfig ConfigIn(const fs::path& directory, unsigned logs) {
  TrainConfig config;
  config.batch_size = kBatch;
  config.schedule.iter_unit = IterationUnit::kBatch;
  config.schedule.num_iter = kSteps;
  if ((logs & kTrace) != 0) config.trace = {200, 20};
  config.results_dir = directory;
  return config;
}

// As many spans as a step has, of no length: its phases, sums of gradients, and images.
void AddSpans(SpanRecorder& recorder, std::int64_t number) {
  const Clock::time_point now = Clock::now();
  AddStepSpans(recorder, number, now, now, {});
  for (int bucket = 0; bucket < 6; ++bucket) {
    const SpanOfScope span(&recorder, SpanKind::kAllReduce, 0, 1 << 24);
  }
  for (int image = 0; image < kBatch; ++image) {
    const SpanOfScope span(&recorder, SpanKind::kImage, image % 4, number);
  }
}

// Nanoseconds per step.
struct Times {
  double wall = 0;
  double cpu = 0;
};

// Of a rank that writes `logs`.
Times Cost(unsigned logs, double step_seconds) {
  const bench::ScratchDirectory directory("log_cost");
  const Reader reader;
  const auto skip =
      std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(step_seconds));
  TimePoint::duration skipped{};
  const WallClock clock = [&] { return std::chrono::system_clock::now() + skipped; };
  std::ofstream errors(directory.path() / "stderr");
  RedrawnLine line(errors);
  const Logger log = MakeLogger(line, 0, "info");
  const auto fail = [](int error) { throw std::runtime_error(fmt::format("errno {}", error)); };

  LineOutput text_buffer(reader.fd(), /*is_own=*/false, fail);
  std::ostream text(&text_buffer);
  LogFile json(directory.path() / "log.json", "another TMPDIR", log);
  LogFile mllog_file(directory.path() / "mlperf.txt", "another TMPDIR", log);
  NvLog nvlog(text, clock);
  DlLogger dllogger(&text, &json.stream(), clock);
  Progress progress({}, line, clock);
  MlLog mllog(mllog_file.stream(), {"open", "Durham", "Bede", "research"}, clock);
  TrainingJson training_json(directory.path() / "training.json", fail, clock);
  EventFile events(directory.path(), "host", "another TMPDIR", fail, clock);
  PrometheusFile prometheus(directory.path(), {0, "host", "1.0"}, fail, clock);
  SpanRecorder recorder(100'000);

  Outputs outputs;
  outputs.log = log;
  if ((logs & kLines) != 0) outputs.logs = {&nvlog, &dllogger, &progress};
  if ((logs & kMlLog) != 0) outputs.logs.push_back(&mllog);
  if ((logs & kTrainingJson) != 0) outputs.logs.push_back(&training_json);
  if ((logs & kEvents) != 0) outputs.logs.push_back(&events);
  if ((logs & kPrometheus) != 0) outputs.logs.push_back(&prometheus);
  SpanRecorder* const spans = (logs & kTrace) != 0 ? &recorder : nullptr;

  const TrainConfig config = ConfigIn(directory.path(), logs);
  const std::unique_ptr<Communicator> communicator = MakeCommunicator({});
  const Schedule schedule = MakeSchedule(config.schedule, kImages, {kBatch, kRanks});
  LogDispatcher report(config, *communicator, outputs, {});
  StepTrace trace(config, *communicator, spans, log);
  StepResult record;
  record.loss_scale = 1024;
  record.times.step = step_seconds;
  record.times.phases.fill(step_seconds / kStepPhases);

  const std::clock_t cpu_start = std::clock();
  const Clock::time_point start = Clock::now();
  report.StartTraining(schedule, {kImages, 50'000});
  for (; record.step < kSteps; ++record.step) {
    record.launch_step = record.step;
    record.cross_entropy = 7.0 / (1.0 + 1e-3 * static_cast<double>(record.step));
    record.l2_loss = 0.37 + 1e-7 * static_cast<double>(record.step);
    record.learning_rate = schedule.LearningRate(record.step);
    trace.Before(record.step);
    if (spans != nullptr) AddSpans(*spans, record.step + 1);
    report.Step(record);
    trace.After(record);
    skipped += skip;
  }
  trace.End();
  report.EndTraining(StepTimer());
  const std::chrono::duration<double, std::nano> lasted = Clock::now() - start;
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  return {lasted.count() / static_cast<double>(kSteps),
          cpu_seconds * 1e9 / static_cast<double>(kSteps)};
}

struct Row {
  const char* name;
  unsigned logs;
  std::vector<Times> rounds;

  double Median(double Times::*which) const {
    std::vector<double> sorted;
    for (const Times& times : rounds) sorted.push_back(times.*which);
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  // What it takes more than `other`, by medians.
  Times MoreThan(const Row& other) const {
    return {Median(&Times::wall) - other.Median(&Times::wall),
            Median(&Times::cpu) - other.Median(&Times::cpu)};
  }
};

void PrintRow(const std::string& name, const Times& times, double step_seconds) {
  std::cout << fmt::format("{:30} {:8.0f} {:11.0f} {:10.4f} {:10.4f}\n", name, times.wall,
                           times.cpu, times.wall * 1e-7 / step_seconds,
                           times.cpu * 1e-7 / step_seconds);
}

void Run(double step_seconds) {
  Row none{"no log", kNone, {}};
  Row all{"rank 0: all", kAll, {}};
  Row other{"another rank: its own", kPrometheus | kTrace, {}};
  std::vector<Row> lone = {
      {"NVLOG, DLLogger, progress", kLines, {}}, {"--mllog", kMlLog, {}},
      {"training.json", kTrainingJson, {}},      {"--tensorboard_dir", kEvents, {}},
      {"--prometheus_dir", kPrometheus, {}},     {"--trace=200:20", kTrace, {}}};
  std::vector<Row*> rows = {&none, &all, &other};
  for (Row& row : lone) rows.push_back(&row);
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    for (Row* row : rows) {
      const Times times = Cost(row->logs, step_seconds);
      if (round > 0) row->rounds.push_back(times);
    }
  }
  std::cout << fmt::format("{:30} {:>8} {:>11} {:>10} {:>10}\n", "", "ns/step", "CPU ns/step",
                           "% of step", "CPU %");
  for (const Row& row : lone) PrintRow(row.name, row.MoreThan(none), step_seconds);
  const Times of_root = all.MoreThan(none);
  const Times of_other = other.MoreThan(none);
  PrintRow(all.name, of_root, step_seconds);
  PrintRow(other.name, of_other, step_seconds);
  PrintRow("16 ranks, one after the other",
           {of_root.wall + (kRanks - 1) * of_other.wall, of_root.cpu + (kRanks - 1) * of_other.cpu},
           step_seconds);
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  const double milliseconds = argc > 1 ? support::WholeNumber<double>(argv[1]).value_or(0) : 30.5;
  if (argc > 2 || !(milliseconds > 0)) {
    std::cerr << "usage: log_cost [STEP_MILLISECONDS]\n";
    return 64;
  }
  try {
    trainer::Run(milliseconds * 1e-3);
  } catch (const std::exception& error) {
    std::cerr << "log_cost: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
