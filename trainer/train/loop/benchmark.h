// SPDX-License-Identifier: Apache-2.0
//
// What the benchmark modes have beside the training loop (train/loop/trainer.cc).

#pragma once

#include "trainer/train/loop/training_session.h"
#include "trainer/train/schedule.h"

namespace trainer {

// That of a benchmark on images of `source`, warm-up included.  Throws Error(EX_USAGE) if nothing
// is left after warm-up.
Schedule BenchmarkSchedule(const Launch& launch, const DataLoader& source);

// kInferenceBenchmark: forward passes with fresh weights.
TrainResult BenchmarkInference(Launch& launch);

}  // namespace trainer
