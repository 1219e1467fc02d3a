// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of a back end: what each op computes, exactly; that of the update is in
// optimizer.h.  backend/reference is the readable definition in code; tests/trainer/backend holds
// every back end to it.
//
// An op is made once from a spec (shapes are checked and an algorithm is chosen then) and run many
// times.  Rules for all:
//   * src, dst, diff_src, diff_dst: as oneDNN names them.  A gradient tensor has the description of
//   what it is the gradient of.
//   * Calls queue work on `stream` and may return before it is done.  Nothing is allocated after
//   construction.
//   * Outputs are overwritten, never added to, unless a comment says so.  Outputs do not overlap
//   inputs, except where said.
//   * `workspace` is scratch of at least workspace_bytes() bytes, free for others as soon as the
//   call's work is done.
//   * `saved` of saved_bytes() bytes is written by Forward and read by the Backward that belongs to
//   it.  kInference leaves it alone.
//   * Within a back end all dst of one image shape have one description, whichever op made them:
//   any two can be added.
//   * Calls by pointer (calls.h) are in device memory.
//   * Bad specs are mistakes of ours: DDL_CHECK.  Trouble with the device is an Error.
//   * An op object is used from one thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/calls.h"
#include "trainer/core/stream.h"
#include "trainer/core/tensor.h"

namespace trainer {

// How batch norm behaves, and what is kept for backward.
enum class Mode : std::uint8_t {
  kTraining,   // statistics of the batch; running statistics are updated
  kFrozen,     // running statistics, not updated; everything else trains
  kInference,  // running statistics; no Backward follows
};

// uint8 pixels to the network's input:
//   x[n,c,h,w] = (pixel[n, h, mirror[n] ? W-1-w : w, c] - mean[c]) / deviation[c]
//   dst[n] = lambda[n] * x[n] + (1 - lambda[n]) * x[N-1-n]        (mixup; lambda 1 leaves x)
// pixels: N x H x W x 3 bytes, mirror: N bytes (0 or 1), lambda: N floats, or null for 1
// everywhere, all in device memory.  Channels past 3 (a back end may pad) are 0. mean 123.68,
// 116.28, 103.53 and deviation 58.395, 57.120, 57.385: NVIDIA DeepLearningExamples, TensorFlow
// ConvNets.
class InputTransform {
 public:
  static constexpr float kMean[3] = {123.68F, 116.28F, 103.53F};
  static constexpr float kDeviation[3] = {58.395F, 57.120F, 57.385F};

  virtual ~InputTransform() = default;
  virtual const TensorDesc& dst() const = 0;  // logical (N, 3, H, W)
  virtual void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
                       const Tensor& dst, Stream& stream) = 0;
};

// 2-D convolution without bias:
//   dst[n,k,p,q] = sum over c,r,s of src[n,c,p*stride-padding+r,q*stride-padding+s] *
//   filter[k,c,r,s]
// src (N,C,H,W), filter (K,C,R,R), dst (N,K,P,Q) with P = (H + 2*padding - R)/stride + 1; outside
// src is 0.
struct ConvolutionSpec {
  TensorDesc src;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 1;  // R
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool adds_diff_src = false;  // BackwardData adds to diff_src instead of overwriting it
};
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual const TensorDesc& filter() const = 0;
  virtual const TensorDesc& dst() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
                       Stream& stream) = 0;
  virtual void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                            void* workspace, Stream& stream) = 0;
  virtual void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                              void* workspace, Stream& stream) = 0;
};

// Batch norm over N, H, W with an optional addition and ReLU behind it:
//   y = (src - mean) / sqrt(variance + epsilon) * scale + shift;  y += residual if `add`;  dst =
//   relu ? max(y, 0) : y
// kTraining: mean and (biased) variance of the batch; running = kept * running + (1 - kept) *
// batch, with the unbiased variance (N*H*W / max(N*H*W - 1, 1)) in it.  Otherwise mean and variance
// are the running ones. scale, shift, running_*: C floats of fp32.  `dst` in Backward is what
// Forward wrote, and may be empty unless `relu`; the ReLU passes where y > 0.
struct BatchNormSpec {
  TensorDesc src;
  bool add = false;
  bool relu = false;
  float epsilon = 1e-5F;
  float kept = 0.9F;
};
struct BatchNormParameters {
  Tensor scale, shift, running_mean, running_variance;  // each (C), fp32
};
class BatchNorm {
 public:
  virtual ~BatchNorm() = default;
  virtual const TensorDesc& dst() const = 0;  // the description of src
  virtual std::size_t saved_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  // `residual` is empty unless spec.add; it may be dst.  dst may be src when nothing will go
  // backward through it.
  virtual void Forward(Mode mode, const Tensor& src, const Tensor& residual,
                       const BatchNormParameters& parameters, const Tensor& dst, void* saved,
                       void* workspace, Stream& stream) = 0;
  // diff_residual is empty unless spec.add; it may be diff_dst, and so may diff_src if
  // diff_residual is not. `mode` is that of the forward call: kTraining or kFrozen.  In kFrozen the
  // statistics are constants.
  virtual void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                        const BatchNormParameters& parameters, const void* saved,
                        const Tensor& diff_src, const Tensor& diff_residual,
                        const Tensor& diff_scale, const Tensor& diff_shift, void* workspace,
                        Stream& stream) = 0;
};

// Largest value of each window; padding never wins.  Of equal values the first in row-major order
// gets the gradient.
struct MaxPoolSpec {
  TensorDesc src;
  std::int64_t kernel = 3;
  std::int64_t stride = 2;
  std::int64_t padding = 1;
};
class MaxPool {
 public:
  virtual ~MaxPool() = default;
  virtual const TensorDesc& dst() const = 0;
  virtual std::size_t saved_bytes() const = 0;
  virtual void Forward(const Tensor& src, const Tensor& dst, void* saved, Stream& stream) = 0;
  virtual void Backward(const Tensor& diff_dst, const void* saved, const Tensor& diff_src,
                        Stream& stream) = 0;
};

// dst[n,c] = mean over h,w of src[n,c,h,w].
class GlobalAveragePool {
 public:
  virtual ~GlobalAveragePool() = default;
  virtual const TensorDesc& dst() const = 0;  // (N, C)
  virtual void Forward(const Tensor& src, const Tensor& dst, Stream& stream) = 0;
  virtual void Backward(const Tensor& diff_dst, const Tensor& diff_src, Stream& stream) = 0;
};

// dst[n,k] = sum over c of src[n,c] * weight[k,c] + bias[k].  src (N,C), weight (K,C), bias (K)
// fp32, dst (N,K) fp32 row-major.
struct LinearSpec {
  TensorDesc src;
  std::int64_t out_features = 0;
};
class Linear {
 public:
  virtual ~Linear() = default;
  virtual const TensorDesc& weight() const = 0;
  virtual const TensorDesc& dst() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias,
                       const Tensor& dst, void* workspace, Stream& stream) = 0;
  virtual void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                        const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                        void* workspace, Stream& stream) = 0;
};

// Softmax cross-entropy with label smoothing e over K classes and mixup lambda, over the first
// `valid` of N samples:
//   target[n,k] = (1-e) * (lambda[n]*[k = label[n]] + (1-lambda[n])*[k = label[N-1-n]]) + e/K
//   loss[n] = - sum over k of target[n,k] * log softmax(logits[n])[k]
//   diff_logits[n,k] = diff_scale / N * (softmax(logits[n])[k] - target[n,k]);  0 for n >= valid
// The sums are added to *sums (device memory).  top1 and top5 are about label[n] alone: a sample
// counts when fewer than 1 (5) classes rank before its label.  A class ranks before another one by
// a larger logit, and of equal logits the one with the smaller number, as argmax of NumPy and
// PyTorch and TopClasses (train/evaluation/evaluate.h) have it: a network whose logits are all
// equal is right about class 0 alone.  A label whose logit is NaN never counts.  logits (N,K) fp32
// row-major; labels: N int32 in [0, K), lambda: N floats, or null for 1 everywhere, both in device
// memory.  diff_logits may be logits, or empty (evaluation).
struct SoftmaxCrossEntropySpec {
  TensorDesc logits;
  float label_smoothing = 0;
};
class SoftmaxCrossEntropy {
 public:
  virtual ~SoftmaxCrossEntropy() = default;
  virtual void Run(const LossParameters* call, const Tensor& logits, const std::int32_t* labels,
                   const float* lambda, const Tensor& diff_logits, LossSums* sums,
                   Stream& stream) = 0;
};

}  // namespace trainer
