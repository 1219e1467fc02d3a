// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/step_trace.h"

#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/thread_ranks.h"

namespace trainer {
namespace {

using Clock = SpanRecorder::Clock;

TEST(AddStepSpans, PutsThePhasesOneBehindTheOtherUpToTheEnd) {
  SpanRecorder recorder(10);
  recorder.Start();
  const auto begin = Clock::now();
  StepTimes times;
  times[StepPhase::kInputWait] = 0.5;
  times[StepPhase::kForward] = 1;
  times[StepPhase::kBackward] = 2;
  times[StepPhase::kExposedAllReduce] = 0.25;
  times[StepPhase::kUpdate] = 0.125;
  AddStepSpans(recorder, 7, begin, begin + std::chrono::seconds(4), times);
  std::map<SpanKind, std::pair<double, double>> found;  // seconds before the end
  double end = 0;
  for (const Span& span : recorder.Spans()) end = std::max(end, span.end);
  for (const Span& span : recorder.Spans()) {
    EXPECT_EQ(span.number, 7);
    found[span.kind] = {std::round((end - span.begin) * 1e6) / 1e6,
                        std::round((end - span.end) * 1e6) / 1e6};
  }
  const std::map<SpanKind, std::pair<double, double>> expected = {
      {SpanKind::kStep, {4, 0}},
      {SpanKind::kUpdate, {0.125, 0}},
      {SpanKind::kExposedAllReduce, {0.375, 0.125}},
      {SpanKind::kBackward, {2.375, 0.375}},
      {SpanKind::kForward, {3.375, 2.375}},
      {SpanKind::kInputWait, {3.875, 3.375}}};
  EXPECT_EQ(found, expected);
}

TEST(AddBatchSpans, LeavesOutWhatFollowsTheLastBatchAlone) {
  SpanRecorder recorder(10);
  recorder.Start();
  StepTimes times;
  times.phases.fill(1);
  AddBatchSpans(recorder, 7, Clock::now() + std::chrono::seconds(4), times);
  std::vector<SpanKind> kinds;
  for (const Span& span : recorder.Spans()) kinds.push_back(span.kind);
  EXPECT_THAT(kinds, ElementsAre(SpanKind::kBackward, SpanKind::kForward, SpanKind::kInputWait));
  EXPECT_NEAR(recorder.Spans().front().end - recorder.Spans().back().begin, 3, 1e-6);
}

// Launches of two ranks, each of which adds a span in every step.
class StepTraceTest : public testing::Test {
 protected:
  // Steps [first, end); the log of rank 0.
  std::string Launch(std::int64_t first, std::int64_t end) {
    std::ostringstream log_text;
    RunRanks(2, [&](Communicator& communicator) {
      std::ostringstream other_text;
      SpanRecorder recorder(100);
      StepTrace trace(config_, communicator, &recorder,
                      MakeLogger(communicator.rank() == 0 ? log_text : other_text,
                                 communicator.rank(), "info"));
      trace.Start(first, end);
      for (std::int64_t step = first; step < end; ++step) {
        Make(step, trace, recorder);
        trace.After(RecordOf(step));
      }
      trace.End();
      EXPECT_EQ(other_text.str(), "");
    });
    return log_text.str();
  }
  static StepResult RecordOf(std::int64_t step) {
    StepResult record{.step = step};
    return record;
  }
  static void Make(std::int64_t step, StepTrace& trace, SpanRecorder& recorder) {
    trace.Before(step);
    recorder.Add(SpanKind::kStep, 0, step + 1, Clock::now(), Clock::now());
  }
  // Of `rank`, the steps in the file.
  std::vector<int> StepsOf(int rank) const {
    std::vector<int> steps;
    std::ifstream file(TracePath(config_));
    const auto document = nlohmann::json::parse(file);
    for (const auto& event : document.at("traceEvents")) {
      if (event["ph"] == "X" && event["pid"] == rank) steps.push_back(event["args"]["step"]);
    }
    return steps;
  }

  TrainConfig MakeConfig() const {
    TrainConfig config{.results_dir = directory_.path(), .trace = {.first = 3, .count = 2}};
    return config;
  }

  TemporaryDirectory directory_;
  TrainConfig config_ = MakeConfig();
};

TEST_F(StepTraceTest, HasTheStepsThatWereAskedForOfAllRanks) {
  EXPECT_THAT(Launch(0, 10), HasSubstr("trace written: " + TracePath(config_).string()));
  EXPECT_THAT(StepsOf(0), ElementsAre(3, 4));
  EXPECT_THAT(StepsOf(1), ElementsAre(3, 4));
}

TEST_F(StepTraceTest, HasThoseOfThemThatTheLaunchMakes) {
  Launch(0, 3);
  EXPECT_THAT(StepsOf(1), ElementsAre(3));
  Launch(3, 5);
  EXPECT_THAT(StepsOf(1), ElementsAre(4));
}

TEST_F(StepTraceTest, EndsWhereTheTrainingGoesBack) {
  std::ostringstream log_text;
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream other_text;
    SpanRecorder recorder(100);
    StepTrace trace(
        config_, communicator, &recorder,
        MakeLogger(communicator.rank() == 0 ? log_text : other_text, communicator.rank(), "info"));
    Make(2, trace, recorder);
    trace.RolledBack();
    for (std::int64_t step = 1; step < 4; ++step) {
      Make(step, trace, recorder);
      trace.After(RecordOf(step));
    }
    trace.End();
    EXPECT_EQ(other_text.str(), "");
  });
  EXPECT_THAT(log_text.str(), HasSubstr("--trace ends here"));
  EXPECT_THAT(StepsOf(0), ElementsAre(3));
  EXPECT_THAT(StepsOf(1), ElementsAre(3));
}

TEST_F(StepTraceTest, BeginsAfterTheTrainingHasGoneBack) {
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream log_text;
    SpanRecorder recorder(100);
    StepTrace trace(config_, communicator, &recorder,
                    MakeLogger(log_text, communicator.rank(), "info"));
    Make(1, trace, recorder);
    trace.RolledBack();
    for (std::int64_t step = 1; step < 3; ++step) {
      Make(step, trace, recorder);
      trace.After(RecordOf(step));
    }
    trace.End();  // before the last of the steps
    EXPECT_THAT(log_text.str(), Not(HasSubstr("--trace ends here")));
  });
  EXPECT_THAT(StepsOf(0), ElementsAre(3));
}

TEST_F(StepTraceTest, WarnsWhereThereAreNone) {
  EXPECT_THAT(Launch(0, 2), HasSubstr("warning: --trace writes nothing: steps 3 to 4 are not among "
                                      "the steps 1 to 2 of this launch"));
  EXPECT_THAT(Launch(4, 6), HasSubstr("not among the steps 5 to 6 of this launch"));
  EXPECT_FALSE(fs::exists(TracePath(config_)));
}

TEST_F(StepTraceTest, AFileThatCannotBeWrittenIsAWarning) {
  config_.results_dir = directory_.path() / "x";
  EXPECT_THAT(Launch(0, 10), HasSubstr("trace.json: cannot be written: No such file or directory; "
                                       "the run continues without it"));
}

TEST(StepTrace, WithoutARecorderDoesNothing) {
  const TrainConfig config;
  OneRank communicator;
  std::ostringstream log_text;
  StepTrace trace(config, communicator, nullptr, MakeLogger(log_text, 0, "info"));
  trace.Start(0, 10);
  trace.Before(0);
  trace.After({});
  EXPECT_THAT(log_text.str(), IsEmpty());
}

}  // namespace
}  // namespace trainer
