// SPDX-License-Identifier: Apache-2.0
//
// The words of the command line for what the configuration holds as something else, in the order
// in which --help lists them.

#pragma once

#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "trainer/data/tfrecord_loader.h"
#include "trainer/train/config.h"

namespace trainer {

template <typename T>
struct Named {
  const char* name;
  T value;
};

inline constexpr Named<RunMode> kModes[] = {{"train", RunMode::kTrain},
                                            {"train_and_evaluate", RunMode::kTrainAndEvaluate},
                                            {"evaluate", RunMode::kEvaluate},
                                            {"predict", RunMode::kPredict},
                                            {"training_benchmark", RunMode::kTrainingBenchmark},
                                            {"inference_benchmark", RunMode::kInferenceBenchmark}};
inline constexpr Named<IterationUnit> kIterUnits[] = {{"epoch", IterationUnit::kEpoch},
                                                      {"batch", IterationUnit::kBatch}};
inline constexpr Named<Augment> kAugments[] = {{"train", Augment::kTrain},
                                               {"none", Augment::kNone}};
inline constexpr Named<Augmentation> kAugmentations[] = {
    {"tensorflow", Augmentation::kTensorFlow},
    {"dali", Augmentation::kDali},
    {"torchvision", Augmentation::kTorchvision}};
inline constexpr Named<bool> kShuffles[] = {{"epoch", true}, {"none", false}};
inline constexpr Named<BadRecords> kBadRecords[] = {{"stop", BadRecords::kStop},
                                                    {"skip", BadRecords::kSkip}};
inline constexpr Named<WeightInit> kWeightInits[] = {{"fan_in", WeightInit::kFanIn},
                                                     {"fan_out", WeightInit::kFanOut}};
inline constexpr const auto& kOptimizers = kOptimizerTraits;
inline constexpr Named<RateDecay> kRateDecays[] = {{"steps", RateDecay::kSteps},
                                                   {"cosine", RateDecay::kCosine},
                                                   {"polynomial", RateDecay::kPolynomial}};
inline constexpr Named<RateScaling> kRateScalings[] = {
    {"linear", RateScaling::kLinear}, {"sqrt", RateScaling::kSqrt}, {"none", RateScaling::kNone}};
inline constexpr Named<OnNan> kOnNans[] = {
    {"stop", OnNan::kStop}, {"skip", OnNan::kSkip}, {"rollback", OnNan::kRollback}};
inline constexpr Named<bool> kResumes[] = {{"auto", true}, {"never", false}};
inline constexpr Named<bool> kOnOrOff[] = {{"on", true}, {"off", false}};
inline constexpr Named<ReducePrecision> kReducePrecisions[] = {{"fp32", ReducePrecision::kFp32},
                                                               {"16bit", ReducePrecision::k16Bit}};
inline constexpr Named<StepGraph> kGraphs[] = {
    {"auto", StepGraph::kAuto}, {"on", StepGraph::kOn}, {"off", StepGraph::kOff}};

// REQUIRES: `names` has it.
template <typename Names, typename T>
std::string NameOf(const Names& names, T value) {
  const auto* named = std::begin(names);
  while (named->value != value) ++named;
  return named->name;
}

// What other trainers call an option of ddltraind: torchvision's references, timm, Lightning, the
// Trainer of Hugging Face, DeepSpeed.  Each is accepted as it stands, not abbreviated, and comes
// before an abbreviation: --model is --arch, and no longer --model_dir.

struct OtherName {
  std::string_view name;    // without dashes, with '_'
  std::string_view option;  // ours
  std::string_view unit;    // "": its value is that of ours; else what --iter_unit is as well
};

inline constexpr std::array<OtherName, 24> kOtherNames = {{
    {"model", "arch", ""},
    {"lr", "lr_init", ""},
    {"lr_scheduler", "lr_schedule", ""},
    {"sched", "lr_schedule", ""},
    {"warmup_epochs", "lr_warmup_epochs", ""},
    {"opt", "optimizer", ""},
    {"wd", "weight_decay", ""},
    {"epochs", "num_iter", "epoch"},
    {"max_steps", "num_iter", "batch"},
    {"workers", "data_threads", ""},
    {"num_workers", "data_threads", ""},
    {"data_path", "data_dir", ""},
    {"output_dir", "results_dir", ""},
    {"grad_accum_steps", "accumulate", ""},
    {"gradient_accumulation_steps", "accumulate", ""},
    {"model_ema_decay", "ema", ""},
    {"checkpoint_hist", "keep_checkpoints", ""},
    {"save_total_limit", "keep_checkpoints", ""},
    {"save_steps", "checkpoint_every", ""},
    {"print_freq", "display_every", ""},
    {"log_interval", "display_every", ""},
    {"dist_backend", "comm", ""},
    {"cuda_graph", "graph", ""},
    {"hang_timeout", "hang_floor_seconds", ""},
}};

}  // namespace trainer
