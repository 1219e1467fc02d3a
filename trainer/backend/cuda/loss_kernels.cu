// SPDX-License-Identifier: Apache-2.0

#include <cfloat>

#include "trainer/backend/cuda/loss_kernels.h"
#include "trainer/backend/cuda/runtime/block_sum.cuh"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

// Of one sample, known to all threads of its block.
struct Softmax {
  float largest, sum;  // of exp(x - largest)
};

__device__ Softmax SoftmaxOf(const float* x, std::int64_t classes) {
  float largest = -FLT_MAX;
  for (std::int64_t k = threadIdx.x; k < classes; k += kThreads) largest = fmaxf(largest, x[k]);
  largest = OverBlock<kThreads>(largest, -FLT_MAX, Larger());
  float sum = 0;
  for (std::int64_t k = threadIdx.x; k < classes; k += kThreads) sum += expf(x[k] - largest);
  return {largest, SumOverBlock<kThreads>(sum)};
}

// How many classes rank before `label`; infinitely many when its own logit is NaN.
__device__ float CountBefore(const float* x, std::int64_t classes, std::int32_t label) {
  const float own = x[label];
  float before = 0;
  for (std::int64_t k = threadIdx.x; k < classes; k += kThreads) {
    if (x[k] > own || (x[k] == own && k < label)) before += 1;
  }
  before = SumOverBlock<kThreads>(before);
  return isnan(own) ? FLT_MAX : before;
}

__global__ void LossOfSample(LossKernelCall call, LossSums* of_samples) {
  SynchronizeGridDependencies();
  const std::int64_t n = blockIdx.x;
  const std::int64_t classes = call.classes;
  const LossParameters parameters = *call.parameters;
  float* diff = call.diff_logits == nullptr ? nullptr : call.diff_logits + n * classes;
  if (n >= parameters.valid) {
    for (std::int64_t k = threadIdx.x; diff != nullptr && k < classes; k += kThreads) diff[k] = 0;
    if (threadIdx.x == 0) of_samples[n] = {0, 0, 0, 0};
    return;
  }
  const float* x = call.logits + n * classes;
  const std::int32_t label = call.labels[n];
  const std::int32_t partner = call.labels[call.samples - 1 - n];
  const float lambda = call.lambda == nullptr ? 1.0F : call.lambda[n];
  const Softmax softmax = SoftmaxOf(x, classes);
  const float before = CountBefore(x, classes, label);
  float sum = 0;
  if (call.smoothing > 0) {
    for (std::int64_t k = threadIdx.x; k < classes; k += kThreads) sum += x[k] - softmax.largest;
    sum = SumOverBlock<kThreads>(sum);
  }
  const float log_sum = logf(softmax.sum);
  const float certain = 1 - call.smoothing;
  const float even = call.smoothing / static_cast<float>(classes);
  if (threadIdx.x == 0) {
    float likely = lambda * (x[label] - softmax.largest - log_sum);
    if (lambda != 1) likely += (1 - lambda) * (x[partner] - softmax.largest - log_sum);
    const float spread = call.smoothing > 0 ? sum - static_cast<float>(classes) * log_sum : 0.0F;
    of_samples[n] = {-(certain * likely + even * spread), before < 1 ? 1.0F : 0.0F,
                     before < 5 ? 1.0F : 0.0F, 1.0F};
  }
  if (diff == nullptr) return;
  __syncthreads();  // diff may be x, of which the others have read all by now
  const float factor = parameters.diff_scale / static_cast<float>(call.samples);
  for (std::int64_t k = threadIdx.x; k < classes; k += kThreads) {
    float target = even;
    if (k == label) target += certain * lambda;
    if (k == partner) target += certain * (1 - lambda);
    diff[k] = factor * (expf(x[k] - softmax.largest) / softmax.sum - target);
  }
}

__global__ void AddSamples(const LossSums* of_samples, std::int64_t samples, LossSums* sums) {
  SynchronizeGridDependencies();
  LossSums own = {0, 0, 0, 0};
  for (std::int64_t n = threadIdx.x; n < samples; n += kThreads) {
    own.loss += of_samples[n].loss;
    own.top1 += of_samples[n].top1;
    own.top5 += of_samples[n].top5;
    own.samples += of_samples[n].samples;
  }
  const LossSums all = {SumOverBlock<kThreads>(own.loss), SumOverBlock<kThreads>(own.top1),
                        SumOverBlock<kThreads>(own.top5), SumOverBlock<kThreads>(own.samples)};
  if (threadIdx.x != 0) return;
  sums->loss += all.loss;
  sums->top1 += all.top1;
  sums->top5 += all.top5;
  sums->samples += all.samples;
}

}  // namespace

void RunLoss(const LossKernelCall& call, LossSums* of_samples, LossSums* sums,
             CUstream_st* stream) {
  Launch(LossOfSample, dim3(static_cast<unsigned>(call.samples)), kThreads, stream, call,
         of_samples);
  Launch(AddSamples, 1, kThreads, stream, of_samples, call.samples, sums);
}

}  // namespace trainer
