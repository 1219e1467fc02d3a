// SPDX-License-Identifier: Apache-2.0
//
// Everything a small training run needs, for tests: resnet_tiny on the reference back end, images
// from GeneratedSource, a directory of its own.

#pragma once

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "tests/trainer/train/generated_data_loader.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/state/network_state.h"

namespace trainer {

inline TrainConfig SmallConfig(const fs::path& model_dir) {
  TrainConfig config;
  config.mode = RunMode::kTrain;
  config.arch = "resnet_tiny";
  config.batch_size = 4;
  config.image_size = 32;
  config.classes = 4;
  config.schedule.iter_unit = IterationUnit::kBatch;
  config.schedule.num_iter = 6;
  config.schedule.lr_init = 3;
  config.schedule.lr_warmup_epochs = 0;
  config.model_dir = model_dir;
  config.program_version = "test";
  return config;
}

// Tests of runs in a directory of their own.
class SmallRun : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  TrainConfig config_ = SmallConfig(directory_.path());
};

// A run of one rank.  `stop_after`: stop is asked for while that step runs, counted from 1.
// `before_step` is told how many steps are done, `hook` what is done to write checkpoints; `rest`
// is called again and again in a pause.
inline TrainResult RunRankOn(Backend& backend, const TrainConfig& config,
                             Communicator& communicator, std::ostream& log_text, int stop_after = 0,
                             RunRequests* requests = nullptr,
                             const std::function<void(std::int64_t)>& before_step = {},
                             const WriteHook& hook = {}, const std::function<void()>& rest = {}) {
  GeneratedSourceOptions options;
  options.batch = config.batch_size;
  options.accumulate = config.accumulate;
  options.short_ranks = config.short_ranks;
  options.classes = config.classes;
  options.rank = communicator.rank();
  options.ranks = communicator.size();
  GeneratedSource training(options);
  options.training = false;
  GeneratedSource evaluation(options);
  int requested = 0;
  TrainerDeps deps{backend,
                   communicator,
                   &training,
                   &evaluation,
                   {MakeLogger(log_text, communicator.rank(), "info")},
                   [&] { return ++requested == stop_after; },
                   requests,
                   "node" + std::to_string(communicator.rank())};
  deps.entered = [&](Activity activity, std::int64_t step) {
    if (before_step && activity == Activity::kTraining) before_step(step);
  };
  deps.checkpoint_hook = hook;
  if (rest) deps.rest = rest;
  return RunTrainer(config, deps);
}

inline TrainResult RunRank(const TrainConfig& config, Communicator& communicator,
                           std::ostream& log_text, int stop_after = 0,
                           const std::string& backend_name = "reference",
                           RunRequests* requests = nullptr,
                           const std::function<void(std::int64_t)>& before_step = {},
                           const WriteHook& hook = {}, const std::function<void()>& rest = {}) {
  const auto backend = MakeBackend(backend_name, {.threads = 1});  // more would spin for the cores
  return RunRankOn(*backend, config, communicator, log_text, stop_after, requests, before_step,
                   hook, rest);
}

inline TrainResult RunAlone(const TrainConfig& config, int stop_after = 0,
                            const std::string& backend_name = "reference") {
  OneRank communicator;
  std::ostringstream log_text;
  return RunRank(config, communicator, log_text, stop_after, backend_name);
}

// What rank 0 of several comes to, and says.
struct LoggedRun {
  TrainResult result;
  std::string log;
};
inline LoggedRun RunTogether(int ranks, const TrainConfig& config, int stop_after = 0) {
  LoggedRun run;
  RunRanks(ranks, [&](Communicator& communicator) {
    std::ostringstream log;
    const TrainResult result = RunRank(config, communicator, log, stop_after);
    if (communicator.rank() == 0) run = {result, log.str()};
  });
  return run;
}

// The tensors of a file, by name.
using Tensors = std::map<std::string, std::vector<float>>;
inline Tensors TensorsOf(const fs::path& path) {
  const SafetensorsFile file = SafetensorsFile::Read(path.string());
  Tensors tensors;
  for (const TensorEntry& entry : file.tensors()) tensors[entry.name] = ReadValues(file, entry);
  return tensors;
}

inline fs::path CheckpointDirectory(const fs::path& model_dir, std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, 10 - digits.size(), '0');
  return model_dir / "checkpoints" / ("step-" + digits);
}

inline Tensors TensorsAt(const fs::path& model_dir, std::int64_t step,
                         const std::string& file = "model.safetensors") {
  return TensorsOf(CheckpointDirectory(model_dir, step) / file);
}

// As sums in another order leave them.
inline void ExpectNearlyEqual(const Tensors& tensors, const Tensors& expected) {
  ASSERT_EQ(tensors.size(), expected.size());
  for (const auto& [name, values] : expected) {
    double squares = 0;
    double difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      squares += std::pow(values[i], 2);
      difference += std::pow(values[i] - tensors.at(name)[i], 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(squares)) << name;
  }
}

}  // namespace trainer
