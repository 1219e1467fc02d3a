// SPDX-License-Identifier: Apache-2.0
//
// usage: ddlrun ... emulated_training NAME=VALUE...
// Training steps of ResNet-50 whose computation is replaced by waits: the same step, buckets and
// communicator as ddltraind's, and all gradients are really summed.  So that two cores serve many
// ranks, time is stretched and gradients are fewer; links that are slower by both factors leave all
// ratios as they are on the machine that is meant.  Prints what it has measured as JSON, with what
// scaling/ predicts of the same links.
//
//   step_ms=227.6     of one GPU by itself, of which backward takes two thirds
//   stretch=10        times as long is waited
//   divisor=8         one of so many gradients is there; so are the limits of buckets
//   steps=10 warmup=2
//   accumulate=1      batches in a step
//   overlap=1         0: all sums begin when backward is over
//   bits=32           16: half the bytes, as sums of 16 bits would move (MPI sums fp32 alone)
//   spread=0          of the ranks' steps, standard deviation as a share
//   slow_rank=-1      which computes slow_factor=1.3 times as long
//   inside=RATE between=RATE     links, bytes/s, for the prediction.  What a hop takes besides is
//                     measured: by small sums, before training

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/microbenchmarks/ranks.h"
#include "scaling/step.h"
#include "support/number.h"
#include "tests/scaling/emulated/waiting_backend.h"
#include "trainer/core/error.h"
#include "trainer/program/launch_environment.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/stragglers.h"
#include "trainer/train/step/training_step.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBackwardShare = 2.0 / 3;

using Settings = std::map<std::string, double>;

Settings ReadSettings(int argc, char** argv) {
  Settings settings = {{"step_ms", 227.6}, {"stretch", 10},   {"divisor", 8},       {"steps", 10},
                       {"warmup", 2},      {"accumulate", 1}, {"overlap", 1},       {"bits", 32},
                       {"spread", 0},      {"slow_rank", -1}, {"slow_factor", 1.3}, {"inside", 0},
                       {"between", 0}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const auto setting = settings.find(argument.substr(0, equals));
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : support::WholeNumber<double>(argument.substr(equals + 1));
    if (setting == settings.end() || !value) {
      throw Error(EX_USAGE,
                  "'" + argument + "' is none of what the head of emulated_training.cc lists");
    }
    setting->second = *value;
  }
  return settings;
}

// Nobody looks at its images.
class EmptySource final : public DataLoader {
 public:
  std::int64_t samples() const override { return 1; }
  void Seek(const Position& position) override { step_ = position.step; }
  bool Next(HostBatch& batch) override {
    batch = {
        .pixels = {}, .mirror = {}, .labels = labels_, .valid = 1, .step = step_, .sample = step_};
    ++step_;
    return true;
  }

 private:
  const std::vector<std::int32_t> labels_ = {0};
  std::int64_t step_ = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct Measured {
  double small_sum = 0;       // seconds of a sum of next to nothing, median
  std::vector<double> steps;  // seconds, from the end of one to the end of the next
  double exposed = 0;         // median, of this rank
};

WaitingOptions WaitsOf(const Settings& of, const Communicator& ranks) {
  const double seconds = of.at("step_ms") * 1e-3 * of.at("stretch");
  const int sum_of_shares = ranks.size() * (ranks.size() + 1) / 2;
  return {.forward_seconds = (1 - kBackwardShare) * seconds,
          .backward_seconds = kBackwardShare * seconds,
          .completes_gradually = of.at("overlap") != 0,
          .divisor = static_cast<std::size_t>(of.at("divisor")),
          .filter_divisor = static_cast<std::size_t>(32 / of.at("bits")),
          .spread = of.at("spread"),
          .share = static_cast<float>(ranks.rank() + 1),
          .sum = static_cast<float>(sum_of_shares * of.at("accumulate")),
          .seed = static_cast<unsigned>(ranks.rank() + 1)};
}

double SecondsOfSmallSum(Communicator& communicator, Stream& stream) {
  constexpr int kSums = 21;
  std::vector<float> values(static_cast<std::size_t>(communicator.size()) * 16);
  std::vector<double> seconds;
  for (int i = 0; i < kSums; ++i) {
    communicator.Barrier();
    const auto begun = Clock::now();
    communicator.StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum,
                                stream);
    communicator.Finish(stream);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  }
  return Median(seconds);
}

Measured Train(const Settings& of, Communicator& communicator, const std::string& host) {
  TrainConfig config;
  config.batch_size = 1;
  config.accumulate = static_cast<std::int64_t>(of.at("accumulate"));
  WaitingBackend backend(WaitsOf(of, communicator));
  Network network(backend, NetworkSpecOf(config));
  DeviceBatch device_batch(backend, network.spec());
  EmptySource source;
  LossScale loss_scale = LossScale::Static(1);
  const auto stream = backend.MakeStream();
  const auto warmup = static_cast<std::int64_t>(of.at("warmup"));
  const std::int64_t steps = warmup + static_cast<std::int64_t>(of.at("steps"));
  const auto divided = [&](std::size_t bytes) {
    return bytes / static_cast<std::size_t>(of.at("divisor"));
  };
  const GradientBucketBytes whole;
  TrainingStep step(
      {.config = config,
       .backend = backend,
       .network = network,
       .device_batch = device_batch,
       .communicator = communicator,
       .stream = *stream,
       .loss_scale = loss_scale,
       .source = source,
       .end = steps,
       .bucket_bytes = {divided(whole.first), divided(whole.rest), divided(whole.last)}});
  StragglerReporter stragglers(
      {communicator, MakeLogger(std::cerr, communicator.rank(), "info"), host, {}});
  SlowLinkReporter links(communicator, MakeLogger(std::cerr, communicator.rank(), "info"));
  links.Start(GatherTexts(communicator, host));
  const bool is_slow = communicator.rank() == static_cast<int>(of.at("slow_rank"));
  Measured measured;
  measured.small_sum = SecondsOfSmallSum(communicator, *stream);
  std::vector<double> exposed;
  communicator.Barrier();
  auto ended = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    backend.BeginStep(is_slow ? of.at("slow_factor") : 1);
    const TrainingStep::Outcome outcome = step.Run(i, 0, {});
    stragglers.After(outcome.record.rank_seconds, outcome.record.times);
    links.After(outcome.record.rank_seconds, outcome.record.times);
    const auto now = Clock::now();
    if (i >= warmup) {
      measured.steps.push_back(std::chrono::duration<double>(now - ended).count());
      exposed.push_back(outcome.record.times[StepPhase::kExposedAllReduce]);
    }
    ended = now;
  }
  measured.exposed = Median(exposed);
  return measured;
}

scaling::StepBreakdown Predicted(const Settings& of, int ranks, int ranks_of_node,
                                 double small_sum) {
  // A ring crosses between nodes so often; its hops inside a node, which take as long here, are
  // counted in.
  const int crossings = 2 * ranks / ranks_of_node;
  const scaling::Links links = {.gpus_per_node = ranks_of_node,
                                .inside = of.at("inside"),
                                .between = of.at("between"),
                                .more_delay = ranks > ranks_of_node ? small_sum / crossings : 0};
  const double batch = of.at("step_ms") * 1e-3 * of.at("stretch");
  scaling::StepWork work;
  // All wait for the slowest.
  work.alone = batch * of.at("accumulate") * (of.at("slow_rank") >= 0 ? of.at("slow_factor") : 1);
  work.backward_share = kBackwardShare / of.at("accumulate");  // beside which sums run
  work.overlaps = of.at("overlap") != 0;
  work.spread = of.at("spread") * batch;
  work.buckets = scaling::ResNet50Buckets(
      of.at("bits") == 16 ? scaling::AllReduceModel::kHalf : scaling::AllReduceModel::kFp32,
      scaling::BucketRule::kDdltraind);
  for (scaling::Bucket& bucket : work.buckets) bucket.bytes /= of.at("divisor");
  return scaling::StepBreakdownOf(work, links, ranks);
}

std::string Json(const Settings& of, const launcher::RankInfo& self, int ranks,
                 const Measured& measured) {
  const double alone = of.at("step_ms") * 1e-3 * of.at("stretch") * of.at("accumulate");
  const double step = Median(measured.steps);
  std::string text = fmt::format(
      R"({{"ranks": {}, "ranks_of_node": {}, "alone_seconds": {:.6f}, "step_seconds": {:.6f}, )"
      R"("efficiency": {:.4f}, "exposed_seconds": {:.6f}, "small_sum_seconds": {:.6f}, )"
      R"("seconds": [{:.4f}])",
      ranks, self.local_world_size, alone, step, alone / step, measured.exposed, measured.small_sum,
      fmt::join(measured.steps, ", "));
  if (of.at("between") > 0 && of.at("inside") > 0) {
    const scaling::StepBreakdown parts =
        Predicted(of, ranks, self.local_world_size, measured.small_sum);
    text += fmt::format(R"(, "predicted": {{"step_seconds": {:.6f}, "efficiency": {:.4f}, )"
                        R"("exposed_seconds": {:.6f}, "sum_seconds": {:.6f}}})",
                        parts.total(), alone / parts.total(), parts.exposed, parts.sums);
  }
  return text + "}";
}

int Main(int argc, char** argv) {
  const Settings settings = ReadSettings(argc, argv);
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds
  bench::Ranks ranks(EnvironmentVariable);
  return ranks.Run(
      [&] {
        Communicator& communicator = ranks.communicator();
        const Measured measured = Train(settings, communicator, ranks.self().host);
        if (ranks.is_root()) {
          std::cout << Json(settings, ranks.self(), communicator.size(), measured) << std::endl;
        }
        return EX_OK;
      },
      std::cerr);
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  try {
    return trainer::Main(argc, argv);
  } catch (const trainer::Error& error) {
    std::cerr << "emulated_training: " << error.what() << "\n";
    return error.exit_code();
  }
}
