// SPDX-License-Identifier: Apache-2.0
//
// Everything a small training run needs, for tests: resnet_tiny on the reference back end, images
// from GeneratedSource, a directory of its own.

#pragma once

#include "tests/support/test.h"
#include "tests/trainer/temporary_directory.h"
#include "tests/trainer/train/generated_data_loader.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/state/network_state.h"

namespace trainer {

inline TrainConfig SmallConfig(const std::filesystem::path& model_dir) {
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
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  std::ostringstream log_text;
  return RunRank(config, communicator, log_text, stop_after, backend_name);
}

// The tensors of a file, by name.
inline std::map<std::string, std::vector<float>> TensorsOf(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::Read(path.string());
  std::map<std::string, std::vector<float>> tensors;
  for (const TensorEntry& entry : file.tensors()) tensors[entry.name] = ReadValues(file, entry);
  return tensors;
}

inline std::filesystem::path CheckpointDirectory(const std::filesystem::path& model_dir,
                                                 std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, 10 - digits.size(), '0');
  return model_dir / "checkpoints" / ("step-" + digits);
}

}  // namespace trainer
