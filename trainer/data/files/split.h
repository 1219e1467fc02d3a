// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace trainer {

// Which part of a data set: files train-*, files validation-*.
enum class Split { kTrain, kValidation };

}  // namespace trainer
