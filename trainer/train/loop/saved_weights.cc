// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/saved_weights.h"

#include <filesystem>
#include <optional>

#include "trainer/core/error.h"
#include "trainer/data/images/image_files.h"
#include "trainer/train/state/initial_weights.h"

namespace trainer {
namespace {

// Returns how many updates they have had, 0 where that is not known.
std::int64_t LoadWeights(Launch& launch) {
  const SnapshotDeps deps = launch.snapshot_deps();
  if (!launch.config.init_from.empty()) {
    InitializeFromFile(deps);
    return 0;
  }
  if (const auto position = RestoreSnapshot(deps, launch.loss_scale, std::nullopt)) {
    return position->step;
  }
  throw Error(EX_USAGE, "there are no weights: no checkpoint in '" +
                            ModelDirectory(launch.config).string() +
                            "'; give the --model_dir of a run, or a file by --init_from");
}

}  // namespace

TrainResult EvaluateSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  result.evaluation = launch.RunEvaluation(result.step);
  if (!result.evaluation) {
    result.ending = Ending::kStopped;
    launch.control.Stop();
  } else if (!launch.config.export_dir.empty()) {
    ExportModel(launch.snapshot_deps(), ExportFile(launch.config));
  }
  launch.control.AckCheckpoint();
  return result;
}

TrainResult PredictSaved(Launch& launch) {
  TrainResult result;
  result.step = LoadWeights(launch);
  for (const std::filesystem::path& file : FindImageFiles(launch.config.to_predict)) {
    if (launch.IsToStop()) {
      result.ending = Ending::kStopped;
      break;
    }
    result.predictions.push_back(PredictImage(file, launch.deps.backend, launch.network,
                                              launch.device_batch, *launch.stream));
  }
  return result;
}

}  // namespace trainer
