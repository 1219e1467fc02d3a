// SPDX-License-Identifier: Apache-2.0
//
// The modes beside training: benchmarks, and those that use trained weights.

#pragma once

#include "trainer/train/loop/training_session.h"
#include "trainer/train/schedule.h"

namespace trainer {

// That of a benchmark on images of `source`, warm-up included.  Throws Error(EX_USAGE) if nothing
// is left after warm-up.
Schedule BenchmarkSchedule(const Launch& launch, const DataLoader& source);

// kInferenceBenchmark: forward passes with fresh weights.
TrainResult BenchmarkInference(Launch& launch);

// The modes that use trained weights: those of config.init_from, else of the newest checkpoint in
// config.model_dir.  Throw Error(EX_USAGE) if there are neither.

// kEvaluate.  Collective.
TrainResult EvaluateSaved(Launch& launch);

// kPredict: config.to_predict, of which files that cannot be read do not stop the others; asked to
// stop, it has those so far.  No source is needed.  Collective.  Throws as FindImageFiles.
TrainResult PredictSaved(Launch& launch);

}  // namespace trainer
