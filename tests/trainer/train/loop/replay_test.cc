// SPDX-License-Identifier: Apache-2.0
//
// --replay_check: a device that computes a wrong gradient ends the run before the step is applied,
// and one that does not trains to the same bits as without the check.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "tests/trainer/train/wrong_backend.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

struct ReplayCase {
  const char* name;
  int ranks = 1;
  std::set<int> bad_ranks = {0};
  std::set<int> calls = {4};  // of the last layer's backward, from 0
  std::int64_t step = 3;      // whole ones before
  std::int64_t replay_check = 2;
  std::int64_t accumulate = 1;
  int short_ranks = 0;
  bool freezes = false;
  double ema = 0;
  OnNan on_nan = OnNan::kStop;
};

struct ReplayEnd {
  int exit_code = 0;
  bool is_own = false;
  std::string message;
  int calls = 0;  // of the last layer's backward
};

// The ranks of `bad_ranks` compute wrong results; all have the memory that `wrong` says.
std::vector<ReplayEnd> TrainOn(const TrainConfig& config, int ranks, const std::string& host,
                               const WrongResults& wrong, const std::set<int>& bad_ranks = {}) {
  std::vector<ReplayEnd> ends(static_cast<std::size_t>(ranks));
  RunRanks(ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    GeneratedSourceOptions options;
    options.batch = config.batch_size;
    options.accumulate = config.accumulate;
    options.short_ranks = config.short_ranks;
    options.classes = config.classes;
    options.rank = rank;
    options.ranks = ranks;
    GeneratedSource source(options);
    WrongResults own = wrong;
    if (!bad_ranks.contains(rank)) own.calls.clear();
    WrongBackend backend(host, own);
    std::ostringstream log;
    TrainerDeps deps{backend, communicator, &source, nullptr, {MakeLogger(log, rank, "info")}};
    deps.host = "node" + std::to_string(rank);
    deps.identify_device = [] { return "a GPU, serial number 5"; };
    ReplayEnd& end = ends[static_cast<std::size_t>(rank)];
    try {
      RunTrainer(config, deps);
    } catch (const RankFault& fault) {
      end = {fault.exit_code(), fault.whose() == RankFault::Whose::kOwn, fault.what()};
    }
    end.calls = backend.calls();
  });
  return ends;
}

TrainConfig ConfigOf(const ReplayCase& of, const fs::path& model_dir) {
  TrainConfig config = SmallConfig(model_dir);
  config.schedule.num_iter = 7;
  config.schedule.lr_init = 0.1;
  config.checkpoint_every = 1000;
  config.accumulate = of.accumulate;
  config.short_ranks = of.short_ranks;
  config.freeze_batch_norm = of.freezes;
  config.ema = of.ema;
  config.on_nan = of.on_nan;
  return config;
}

void ExpectSameCheckpoints(const fs::path& a, const fs::path& b, std::int64_t step, bool has_ema) {
  for (const char* file : {kModelFile, kOptimizerFile, kAverageFile}) {
    if (!has_ema && file == kAverageFile) continue;
    EXPECT_EQ(TensorsAt(a, step, file), TensorsAt(b, step, file)) << file;
  }
}

// Both host back ends, each with its memory as that of the host and as that of a device.
template <typename Check>
void OnEachBackend(const Check& check) {
  for (const std::string host : {"reference", "cpu"}) {
    for (const bool is_host : {true, false}) {
      SCOPED_TRACE(host + (is_host ? "" : " as a device"));
      check(host, is_host);
    }
  }
}

std::string Names(const std::set<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    const std::string number = std::to_string(rank);
    text += (text.empty() ? "rank " : " and rank ") + number + " on node" + number;
  }
  return text;
}

class WrongGradients : public testing::TestWithParam<ReplayCase> {};

TEST_P(WrongGradients, EndAllRanksWithTheWeightsOfTheStepBefore) {
  const ReplayCase& of = GetParam();
  OnEachBackend([&](const std::string& host, bool is_host) {
    const TemporaryDirectory whole;
    const TemporaryDirectory wrong;
    TrainConfig config = ConfigOf(of, whole.path());
    config.schedule.run_iter = of.step;
    TrainOn(config, of.ranks, host, {.is_host = is_host});

    config.model_dir = wrong.path();
    config.schedule.run_iter = -1;
    config.replay_check = of.replay_check;
    const std::vector<ReplayEnd> ends =
        TrainOn(config, of.ranks, host, {.calls = of.calls, .is_host = is_host}, of.bad_ranks);
    const std::string step = std::to_string(of.step);
    for (int rank = 0; rank < of.ranks; ++rank) {
      const ReplayEnd& end = ends[static_cast<std::size_t>(rank)];
      const bool is_own = of.bad_ranks.contains(rank);
      EXPECT_EQ(end.exit_code, EX_OSERR);
      EXPECT_EQ(end.is_own, is_own);
      const std::string name = Names({rank}) + " (a GPU, serial number 5) has computed";
      EXPECT_THAT(
          end.message,
          StartsWith("step " + step + ": " +
                     (is_own ? name
                             : Names(of.bad_ranks) + (of.bad_ranks.size() > 1 ? " have computed"
                                                                              : " has computed"))));
      EXPECT_THAT(end.message, EndsWith("; the weights of step " + step + " were saved"));
      if (!is_own) continue;
      EXPECT_THAT(end.message, HasSubstr(": the gradient of fc.weight differs in 1 of "));
    }
    ASSERT_TRUE(fs::exists(CheckpointDirectory(wrong.path(), of.step)));
    ExpectSameCheckpoints(wrong.path(), whole.path(), of.step, of.ema > 0);
    EXPECT_EQ(std::distance(fs::directory_iterator(wrong.path() / "checkpoints"),
                            fs::directory_iterator()),
              1);
  });
}

// Calls of a rank with --replay_check=2: step 0 has 0, step 1 has 1 and 2, step 2 has 3, step 3 has
// 4 and 5.
INSTANTIATE_TEST_SUITE_P(
    Cases, WrongGradients,
    testing::Values(
        ReplayCase{.name = "FirstPass"}, ReplayCase{.name = "SecondPass", .calls = {5}},
        ReplayCase{.name = "SecondOfTwo", .ranks = 2, .bad_ranks = {1}, .ema = 0.9},
        ReplayCase{.name = "FirstOfTwo", .ranks = 2},
        ReplayCase{.name = "TwoOfThree", .ranks = 3, .bad_ranks = {0, 2}},
        ReplayCase{.name = "AllOfTwo", .ranks = 2, .bad_ranks = {0, 1}},
        ReplayCase{.name = "OfEachStep", .calls = {5}, .step = 2, .replay_check = 1},
        ReplayCase{.name = "FirstBatchOfAStep",
                   .ranks = 2,
                   .bad_ranks = {1},
                   .calls = {3},  // step 1 has 2 and 3 of its first batch, 4 and 5 of its second
                   .step = 1,
                   .accumulate = 2},
        ReplayCase{.name = "SecondBatchOfAStep",
                   .ranks = 2,
                   .bad_ranks = {1},
                   .calls = {4},
                   .step = 1,
                   .accumulate = 2},
        ReplayCase{.name = "BatchThatAnotherRankLacks",
                   .ranks = 2,
                   .calls = {4},
                   .step = 1,
                   .accumulate = 2,
                   .short_ranks = 1},
        ReplayCase{.name = "FrozenBatchNorm", .ranks = 2, .bad_ranks = {1}, .freezes = true},
        ReplayCase{.name = "WhereStepsAreSkipped", .ranks = 2, .on_nan = OnNan::kSkip}),
    [](const auto& param_info) { return param_info.param.name; });

class SoundGradients : public testing::TestWithParam<ReplayCase> {};

TEST_P(SoundGradients, GiveTheSameBitsAsWithoutTheCheck) {
  const ReplayCase& of = GetParam();
  OnEachBackend([&](const std::string& host, bool is_host) {
    const TemporaryDirectory without;
    TrainConfig config = ConfigOf(of, without.path());
    const std::vector<ReplayEnd> once = TrainOn(config, of.ranks, host, {.is_host = is_host});
    for (const std::int64_t replay_check : {1, 2, 7, 100}) {
      const TemporaryDirectory with;
      config.model_dir = with.path();
      config.replay_check = replay_check;
      const std::vector<ReplayEnd> ends = TrainOn(config, of.ranks, host, {.is_host = is_host});
      EXPECT_EQ(ends[0].message, "");
      const auto more = static_cast<int>(7 / replay_check * of.accumulate);
      EXPECT_EQ(ends[0].calls, once[0].calls + more) << replay_check;
      ExpectSameCheckpoints(with.path(), without.path(), 7, of.ema > 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SoundGradients,
    testing::Values(ReplayCase{.name = "OneRank", .ema = 0.9},
                    ReplayCase{.name = "TwoRanks", .ranks = 2, .ema = 0.9},
                    ReplayCase{.name = "Accumulation", .ranks = 2, .accumulate = 3},
                    ReplayCase{.name = "AccumulationOfOneRank", .accumulate = 2},
                    ReplayCase{
                        .name = "UnevenRanks", .ranks = 2, .accumulate = 2, .short_ranks = 1},
                    ReplayCase{.name = "FrozenBatchNorm", .freezes = true}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(ReplayCheck, DoesNotSeeAFaultThatRepeatsItself) {
  const TemporaryDirectory directory;
  TrainConfig config = ConfigOf({.name = ""}, directory.path());
  config.replay_check = 2;
  EXPECT_EQ(TrainOn(config, 1, "reference", {.calls = {4, 5}}, {0})[0].message, "");
}

TEST(ReplayCheck, CountsStepsOfTheRunNotOfTheLaunch) {
  const TemporaryDirectory directory;
  TrainConfig config = ConfigOf({.name = ""}, directory.path());
  config.replay_check = 3;
  config.schedule.run_iter = 2;
  EXPECT_EQ(TrainOn(config, 1, "reference", {})[0].calls, 2);
  config.schedule.run_iter = 1;
  EXPECT_EQ(TrainOn(config, 1, "reference", {})[0].calls, 2);  // the third step
}

// What is NaN in both passes is for --on_nan.
TEST(ReplayCheck, LeavesWeightsThatDivergeToWhatIsSaidOfThem) {
  for (const std::int64_t replay_check : {0, 1}) {
    const TemporaryDirectory directory;
    TrainConfig config = ConfigOf({.name = ""}, directory.path());
    config.schedule.lr_init = 1e30;
    config.replay_check = replay_check;
    EXPECT_THAT(tests::Rejection<Error>(EX_SOFTWARE, [&] { RunAlone(config); }),
                HasSubstr(": training has diverged"));
  }
}

TEST(ReplayCheck, OfABenchmarkSavesNothing) {
  const TemporaryDirectory directory;
  TrainConfig config = ConfigOf({.name = ""}, directory.path());
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 1;
  config.replay_check = 2;
  const ReplayEnd end = TrainOn(config, 1, "reference", {.calls = {4}}, {0})[0];
  EXPECT_THAT(end.message, AllOf(StartsWith("step 3: rank 0"), Not(HasSubstr("saved"))));
  EXPECT_FALSE(fs::exists(directory.path() / "checkpoints"));
}

}  // namespace
}  // namespace trainer
