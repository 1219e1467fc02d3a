// SPDX-License-Identifier: Apache-2.0
//
// Everything the training loop can be told, with the defaults.  The options of the command line are
// these very fields, by the same names (trainer/options/options.h); tests fill them by hand.  The
// same on every rank.

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/core/data_identity.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/model/network.h"
#include "trainer/model/network_definition.h"
#include "trainer/train/schedule.h"

namespace trainer {

enum class RunMode : std::uint8_t {
  kTrain,
  kTrainAndEvaluate,  // evaluates at the end, and every eval_every
  kEvaluate,
  kPredict,             // says what images are of
  kTrainingBenchmark,   // trains, keeps nothing, measures
  kInferenceBenchmark,  // forward only, measures
};

// Makes steps of a training.
constexpr bool IsTraining(RunMode mode) {
  return mode == RunMode::kTrain || mode == RunMode::kTrainAndEvaluate ||
         mode == RunMode::kTrainingBenchmark;
}
// Writes checkpoints.
constexpr bool KeepsWeights(RunMode mode) {
  return mode == RunMode::kTrain || mode == RunMode::kTrainAndEvaluate;
}
// Has weights for --export_dir.
constexpr bool ExportsWeights(RunMode mode) {
  return KeepsWeights(mode) || mode == RunMode::kEvaluate;
}
// Takes images of the validation set.
constexpr bool IsEvaluating(RunMode mode) {
  return mode == RunMode::kTrainAndEvaluate || mode == RunMode::kEvaluate ||
         mode == RunMode::kInferenceBenchmark;
}

// Whether a training step is recorded once and then started as one piece (Backend::Capture).
enum class StepGraph : std::uint8_t {
  kAuto,  // where the back end can and a rank is alone
  kOn,    // also where ranks sum on the device; refused elsewhere
  kOff,
};

// What becomes of a step whose loss or gradient is NaN (train/step/non_finite_guard.h).
enum class OnNan : std::uint8_t {
  kStop,      // the run ends
  kSkip,      // its update is left out
  kRollback,  // all ranks go back to the newest checkpoint (train/state/snapshot.h)
};

// In which type gradients are summed over the ranks.
enum class ReducePrecision : std::uint8_t {
  kFp32,
  k16Bit,  // that of the computation
};

struct TrainConfig {
  // What to do.
  RunMode mode = RunMode::kTrainAndEvaluate;
  std::string arch = "resnet50";
  std::int64_t batch_size = 0;  // images that a rank computes together; required, or the most of
                                // them where global_batch_size is given (program/setup.h)
  std::int64_t accumulate = 1;  // batches of a rank in a step of training, which is one update
  std::int64_t global_batch_size = 0;  // images of all ranks in a step of training; 0: not given
  int image_size = 224;                // pixels, height and width
  int classes = 1000;
  std::int64_t warmup_steps = 50;                 // not measured, in the benchmark modes
  std::vector<std::filesystem::path> to_predict;  // images and directories of them, in kPredict

  // In kTrainAndEvaluate.
  std::int64_t eval_every = 0;  // of schedule.iter_unit, between evaluations; 0: at the end alone
  double stop_at_top1 = 0;  // percent: an evaluation that reaches it ends training; 0: none does

  // How to learn.
  ScheduleConfig schedule;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  double label_smoothing = 0;
  double mixup = 0;  // a of Beta(a, a), drawn for each image; 0: off
  WeightInit weight_init = WeightInit::kFanOut;
  bool zero_init_residual = false;
  std::uint64_t seed = 1;
  bool freeze_batch_norm = false;        // running statistics, left as they are
  double loss_scale = 256;               // of 16-bit training; a run in fp32 has none
  bool use_static_loss_scaling = false;  // false: loss_scale is the first of a dynamic one
  OnNan on_nan = OnNan::kStop;
  double ema = 0;  // decay of the moving averages of weights and statistics; 0: none are kept

  // Files.
  std::filesystem::path results_dir = ".";  // logs
  std::filesystem::path model_dir;          // checkpoints (ModelDirectory); "": results_dir
  bool resume = true;                       // from the newest valid checkpoint in model_dir, if any
  std::int64_t resume_from = -1;            // that of this step instead; below 0: the newest
  std::filesystem::path init_from;  // safetensors with torchvision's names, or a model_dir: of
                                    // its best checkpoint; "": weight_init.  A checkpoint to
                                    // resume from wins.
  bool new_head = false;  // of init_from all but the last layer, which starts by weight_init
  bool ignore_mismatched_classes = false;  // labels may stand for others than those of the weights
  std::int64_t checkpoint_every = 1000;    // steps; 0: only when training ends or is stopped
  int keep_checkpoints = 5;
  std::int64_t keep_every = 0;           // checkpoints of those of checkpoint_every: one of so many
                                         // is kept for ever; 0: none
  bool checkpoint_in_background = true;  // written while training goes on, but for the last one
  std::filesystem::path export_dir;      // of the final weights (ExportFile); "": none
  std::filesystem::path dump_state;      // train/state/network_state.h; "": none
  std::int64_t dump_state_step = 1;      // written after this many steps of the run
  StepWindow trace;  // steps whose time line is written (TracePath, train/step/step_trace.h); count
                     // 0: none
  StepWindow profile;  // steps whose ops are timed (train/logging/step_profile.h), into
                       // results_dir; count 0: none
  std::filesystem::path variability_dir;  // train/logging/step_profile.h; "": none

  // How.
  StepGraph graph = StepGraph::kAuto;
  ReducePrecision reduce_precision = ReducePrecision::kFp32;
  std::int64_t paranoid = 0;      // steps between comparisons of the ranks' weights; 0: never
  std::int64_t replay_check = 0;  // each so many steps one is computed twice; 0: none
                                  // (train/step/replay_check.h)

  // What is shown.
  int display_every = 10;  // steps between NVLOG iterations

  // What no option says.
  int short_ranks = 0;          // of GlobalBatch, in training
  std::string program_version;  // noted in checkpoints
  // Options by name, noted in checkpoints: where one has changed since, a run that goes on
  // says so.
  std::map<std::string, std::string> settings;
  DataIdentity data;            // of rank 0: what it has of data_dir
  std::string labels_file;      // that data.class_names are of
  bool has_own_labels = false;  // that is --labels, whose names need not be those of the data
};

// What is derived from what was told.

// Of a step of training, or of an evaluation, where each batch is one.
inline GlobalBatch GlobalBatchOf(const TrainConfig& config, int world_size) {
  if (!IsTraining(config.mode)) return {config.batch_size, world_size};
  return {config.batch_size, world_size, config.accumulate, config.short_ranks,
          config.global_batch_size > 0};
}

inline NetworkSpec NetworkSpecOf(const TrainConfig& config) {
  const std::int64_t size = config.image_size;
  const auto smoothing = static_cast<float>(config.label_smoothing);
  const double ema = IsTraining(config.mode) ? config.ema : 0;
  return {config.arch, config.batch_size, size, size, config.classes, smoothing, ema};
}

// Where checkpoints are, which all ranks see.
inline std::filesystem::path ModelDirectory(const TrainConfig& config) {
  return config.model_dir.empty() ? config.results_dir : config.model_dir;
}

// "": the final weights are not exported.
inline std::filesystem::path ExportFile(const TrainConfig& config) {
  return config.export_dir.empty() ? std::filesystem::path()
                                   : config.export_dir / "model.safetensors";
}

// Of the steps of config.trace.
inline std::filesystem::path TracePath(const TrainConfig& config) {
  return config.results_dir / "trace.json";
}

}  // namespace trainer
