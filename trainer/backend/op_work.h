// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic that ops need and the bytes that they must move, by their shapes: a lower limit,
// whatever a back end does.  doc/reference/metrics.md has the definitions.  Pure.
//
//   bytes: each operand is read or written once, in its type, without padding and without what is
//     only kept for backward.  Parameters of batch norm, biases, labels, sums and calls are left
//     out: they are small.
//   flop: 2 for each multiplication and addition of a convolution or a matrix product, those with
//     padding included; for the other ops the additions, multiplications and comparisons of each
//     value, as the functions say.

#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/backend/blocks.h"
#include "trainer/backend/ops.h"
#include "trainer/core/profiled_op.h"

namespace trainer {

// ProfiledOp::shape: "64x3x224x224", "2x16x9x7 > 2x24x5x4, 3x3 stride 2", "2x16x9x7, add, ReLU".
std::string ShapeText(const Shape& shape);
std::string ShapeText(const ConvolutionSpec& spec, const Shape& dst);
std::string ShapeText(const BatchNormSpec& spec);

// Of the values, without padding.
double ValueBytes(const TensorDesc& desc);

// 2 * N*K*P*Q * C*R*S, in each of the three passes.
OpWork ConvolutionForwardWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                              const TensorDesc& dst);
// Reads diff_src too where it adds to it.
OpWork ConvolutionBackwardDataWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                                   const TensorDesc& dst);
OpWork ConvolutionBackwardFilterWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                                     const TensorDesc& dst);

// For each value: kTraining 3 for the sums and 2 to normalize, else 2; 1 each for the addition and
// the ReLU.
OpWork BatchNormForwardWork(const BatchNormSpec& spec, Mode mode);
// For each value: 4 for the sums; 4 for diff_src, 1 in kFrozen; 1 for the ReLU.  Reads dst where
// there is a ReLU, and writes diff_residual where there was an addition.
OpWork BatchNormBackwardWork(const BatchNormSpec& spec, Mode mode);

// One comparison for each value of a window; one addition for each value of dst.
OpWork MaxPoolForwardWork(const MaxPoolSpec& spec, const TensorDesc& dst);
OpWork MaxPoolBackwardWork(const MaxPoolSpec& spec, const TensorDesc& dst);

// One addition, or backward one multiplication, for each value of src.
OpWork GlobalAveragePoolWork(const TensorDesc& src, const TensorDesc& dst);

// 2*N*C*K, and twice that backward.
OpWork LinearForwardWork(const LinearSpec& spec, const TensorDesc& weight, const TensorDesc& dst);
OpWork LinearBackwardWork(const LinearSpec& spec, const TensorDesc& weight, const TensorDesc& dst);

// 2 for each of the three channels of a pixel, which is one byte each.
OpWork InputTransformWork(const TensorDesc& dst);

// For each logit 4 to its probability and 1 to its gradient, which is written over it.
OpWork SoftmaxCrossEntropyWork(const TensorDesc& logits, bool has_gradient);

// For each weight: 1 to scale the gradient, 2 for the momentum, 2 for the weight; 4 more with
// decay: into the gradient, and for the sum of squares.  Reads gradient, weight and momentum,
// writes weight, momentum and the copy of the compute type if there is one.
// OptimizerTraits has what is more of another optimizer than SGD.
OpWork UpdateWork(OptimizerKind kind, std::span<const ParameterSegment> segments,
                  const FlatGradients& gradients, DType compute_type, bool has_copy);

// A stem as one op (Backend::has_own_blocks): its convolution's arithmetic; from pixels and filter
// to dst; from dst's gradient, pixels and filter's place back.
OpWork StemForwardWork(const StemSpec& spec, const TensorDesc& dst);
OpWork StemBackwardWork(const StemSpec& spec, const TensorDesc& dst);

// What a device reaches at most, measured through its back end: the two limits of a roofline.

// Arithmetic: the faster one of two 1x1 convolutions with as many channels as a ResNet has, which
// are products of matrices, in the type that the back end computes in.  Memory: a copy of 256 MiB,
// each byte read once and written once.  Each is the best of some runs.  Takes meanwhile 0.5 GiB of
// the device's memory, of a GPU more than 1 GiB; throws Error(EX_OSERR) if that is not there.
struct PeakSearch {
  double seconds = 0.3;  // of runs, for each; one run at least
  std::size_t copy_bytes = std::size_t{256} << 20;
};
MachinePeaks MeasurePeaks(Backend& backend, const PeakSearch& search = {});

}  // namespace trainer
