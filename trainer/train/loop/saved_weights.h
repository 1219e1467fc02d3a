// SPDX-License-Identifier: Apache-2.0
//
// The modes that use trained weights: those of config.init_from, else of the newest checkpoint in
// config.model_dir.  Throw Error(EX_USAGE) if there are neither.

#pragma once

#include "trainer/train/loop/training_session.h"

namespace trainer {

// kEvaluate.  Collective.
TrainResult EvaluateSaved(Launch& launch);

// kPredict: config.to_predict, of which files that cannot be read do not stop the others; asked to
// stop, it has those so far.  No source is needed.  Collective.  Throws as FindImageFiles.
TrainResult PredictSaved(Launch& launch);

}  // namespace trainer
