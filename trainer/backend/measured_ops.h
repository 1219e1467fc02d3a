// SPDX-License-Identifier: Apache-2.0
//
// Ops around others, each call timed by a recorder; for measured_backend.cc.  The recorder outlives
// them.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/blocks.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/backend/ops.h"

namespace trainer {

// "64x3x224x224", in ProfiledOp::shape.
std::string Times(const Shape& shape);

std::unique_ptr<InputTransform> MakeMeasured(std::unique_ptr<InputTransform> op,
                                             OpRecorder& recorder);
std::unique_ptr<Convolution> MakeMeasured(std::unique_ptr<Convolution> op,
                                          const ConvolutionSpec& spec, OpRecorder& recorder);
std::unique_ptr<BatchNorm> MakeMeasured(std::unique_ptr<BatchNorm> op, const BatchNormSpec& spec,
                                        OpRecorder& recorder);
std::unique_ptr<DualBatchNorm> MakeMeasured(std::unique_ptr<DualBatchNorm> op,
                                            const DualBatchNormSpec& spec, OpRecorder& recorder);
std::unique_ptr<MaxPool> MakeMeasured(std::unique_ptr<MaxPool> op, const MaxPoolSpec& spec,
                                      OpRecorder& recorder);
std::unique_ptr<GlobalAveragePool> MakeMeasured(std::unique_ptr<GlobalAveragePool> op,
                                                const TensorDesc& src, OpRecorder& recorder);
std::unique_ptr<Linear> MakeMeasured(std::unique_ptr<Linear> op, const LinearSpec& spec,
                                     OpRecorder& recorder);
std::unique_ptr<SoftmaxCrossEntropy> MakeMeasured(std::unique_ptr<SoftmaxCrossEntropy> op,
                                                  const SoftmaxCrossEntropySpec& spec,
                                                  OpRecorder& recorder);
// `compute_type` of the back end.
std::unique_ptr<Optimizer> MakeMeasured(std::unique_ptr<Optimizer> op, OptimizerKind kind,
                                        std::vector<ParameterSegment> segments, DType compute_type,
                                        OpRecorder& recorder);
std::unique_ptr<Stem> MakeMeasured(std::unique_ptr<Stem> stem, const StemSpec& spec,
                                   OpRecorder& recorder);

}  // namespace trainer
