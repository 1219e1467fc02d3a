// SPDX-License-Identifier: Apache-2.0
//
// Everything the training loop can be told, with the defaults.  main fills it from the command line
// (trainer/options.h); tests fill it by hand.  The same on every rank.

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "trainer/core/step_window.h"
#include "trainer/model/init.h"
#include "trainer/train/schedule.h"

namespace trainer {

enum class RunMode : std::uint8_t {
  kTrain,
  kTrainAndEvaluate,  // evaluates once, at the end
  kEvaluate,
  kPredict,             // one image
  kTrainingBenchmark,   // trains, keeps nothing, measures
  kInferenceBenchmark,  // forward only, measures
};

// Whether a training step is recorded once and then started as one piece (Backend::Record).
enum class StepGraph : std::uint8_t {
  kAuto,  // where the back end can and a rank is alone
  kOn,    // also where ranks sum on the device; refused elsewhere
  kOff,
};

// What becomes of a step whose loss or gradient is no number (train/nan_watch.h).
enum class OnNan : std::uint8_t {
  kStop,  // the run ends
  kSkip,  // its update is left out
};

struct TrainConfig {
  // What to do.
  RunMode mode = RunMode::kTrainAndEvaluate;
  std::string architecture = "resnet50";
  std::int64_t batch = 0;  // images per rank and step; required
  std::int64_t height = 224;
  std::int64_t width = 224;
  int classes = 1000;
  std::int64_t warmup_steps = 50;    // not measured, in the benchmark modes
  std::filesystem::path to_predict;  // JPEG file, in kPredict

  // How to learn.
  ScheduleConfig schedule;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  double label_smoothing = 0;
  double mixup = 0;  // a of Beta(a, a), drawn once per step; 0: off
  WeightInit weight_init = WeightInit::kFanOut;
  bool zero_init_residual = false;
  std::uint64_t seed = 1;
  bool freeze_batch_norm = false;  // running statistics, left as they are
  double loss_scale = 256;         // of 16-bit training; a run in fp32 has none
  bool static_loss_scale = false;  // false: loss_scale is the first of a dynamic one
  OnNan on_nan = OnNan::kStop;

  // Files.
  std::filesystem::path model_dir;       // checkpoints
  bool resume = true;                    // from the newest valid checkpoint in model_dir, if any
  std::filesystem::path init_from;       // safetensors with torchvision's names; "": weight_init.
                                         // A checkpoint to resume from wins.
  std::int64_t checkpoint_every = 1000;  // steps; 0: only when training ends or is stopped
  int keep_checkpoints = 5;
  std::int64_t keep_every = 0;           // checkpoints of those of checkpoint_every: one of so many
                                         // is kept for ever; 0: none
  bool checkpoint_in_background = true;  // written while training goes on, but for the last one
  std::filesystem::path export_file;     // final weights, safetensors; "": none
  std::filesystem::path dump_state;      // train/state_dump.h; "": none
  std::int64_t dump_state_step = 1;      // written after this many steps of the run
  StepWindow trace;                      // steps whose time line is written to
  std::filesystem::path trace_file;      // train/step_trace.h; "": none
  StepWindow profile;                 // steps whose ops are timed (train/step_profile.h); count 0:
                                      // none
  std::filesystem::path profile_dir;  // where that is written
  std::filesystem::path variability_dir;  // train/variability_log.h; "": none
  std::string program_version;            // noted in checkpoints
  // Options and data by name, noted in checkpoints: where one has changed since, a run that goes on
  // says so.
  std::map<std::string, std::string> settings;

  // How.
  StepGraph graph = StepGraph::kAuto;
  bool reduce_in_compute_type = false;  // gradients over the ranks; else in fp32
  std::int64_t compare_every = 0;       // steps between comparisons of the ranks' weights; 0: never

  // What is shown.
  std::int64_t display_every = 10;  // steps between NVLOG iterations
};

}  // namespace trainer
