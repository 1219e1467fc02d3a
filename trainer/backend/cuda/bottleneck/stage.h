// SPDX-License-Identifier: Apache-2.0
//
// A convolution of a bottleneck with the batch norm behind it, z = convolution(x), a = norm(z), and
// the steps that a bottleneck is made of as --profile shows them.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "trainer/backend/blocks.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/op_recorder.h"
#include "trainer/core/memory_planner.h"

namespace trainer {

// Requests of a memory plan, each with the pointer that becomes its address.
class Pieces {
 public:
  // `address` stays where it is.
  template <typename T>
  void Reserve(MemoryPlanner& plan, std::string name, std::size_t bytes, int first, int last,
               T*& address) {
    pieces_.push_back({plan.Reserve(std::move(name), bytes, first, last),
                       [&address](std::byte* at) { address = reinterpret_cast<T*>(at); }});
  }
  void Bind(const MemoryPlanner& plan, std::byte* base) const {
    for (const Piece& piece : pieces_) piece.bind(base + plan.offset(piece.id));
  }

 private:
  struct Piece {
    int id;
    std::function<void(std::byte*)> bind;
  };
  std::vector<Piece> pieces_;
};

// Sums of the gradient of what a batch norm gives, behind its ReLU: NormBackward's, one or none.
struct NormGradientSums {
  const float* sums = nullptr;
  NormPartialSums partial;
  explicit operator bool() const { return sums != nullptr || partial.values != nullptr; }
};

struct BottleneckStage {
  // `follows_norm`: x has gone through a batch norm with a ReLU.
  BottleneckStage(CudaLibraries& libraries, std::string name, const ConvolutionSpec& spec,
                  bool follows_norm, bool adds, bool relu);

  std::size_t scratch_bytes() const;
  std::size_t sums_bytes() const;
  NormSource source(Mode mode) const;

  std::string name;  // of its memory
  ConvolutionSpec spec;
  BatchNormSpec norm;
  NormShape shape;  // of z
  std::unique_ptr<CudaConvolution> convolution;
  NormLaunchConfig forward_config, backward_config;

  // From forward to backward.
  Tensor z;
  SavedNorm saved;  // none of the shortcut: that of conv3 has both
  // Of z, for its batch norm, and of the gradient of x, for the batch norm before; null where the
  // convolution has none.
  float* sums = nullptr;
  int partial_sums = 0;  // NormSource's: not 0 where conv1x1_forward.h convolves
  float* gradient_sums = nullptr;

  ParameterBinding filter, scale, shift;
  NormParameters parameters;
};

// The steps of a bottleneck, as --profile shows them.
enum class Step : std::uint8_t {
  kConvolution,
  kConvolutionBehindNorm,              // with the end of the block below: one batch norm
  kConvolutionBehindDualNorm,          // or two
  kConvolutionBehindOwnNorm,           // with the batch norm in front, whose result is written
  kConvolutionBehindOwnNormUnwritten,  // or not
  kBackwardData,
  kBackwardDataToNorm,           // Conv1Variant::kFused
  kBackwardDataToDualNorm,       // the same, of a block below with two batch norms
  kBackwardDataToNormOfStride2,  // the same, added to what kBackwardDataCompact gives
  // The same with the batch norm that follows the convolution in front, Bn1Variant::kFused.
  kNormBackwardDataToNorm,
  kNormBackwardDataToDualNorm,
  kNormBackwardDataToNormOfStride2,
  kBackwardDataCompact,  // with a stride, of those pixels alone that the convolution has read
  kBackwardFilter,
  // The same with the filter's gradient, Bn1Variant::kFusedWithFilter.
  kConv1BackwardToNorm,
  kConv1BackwardToDualNorm,
  kConv1BackwardToNormOfStride2,
  kConv3BackwardData,  // Conv3Variant::kFusedDataGradient
  kConv3Backward,      // the last one that is the convolution's
  kNorm,
  kNormBackward,
  kNormBackwardStats,
  kDualNorm,
  kDualNormBackward,
  kDualNormBackwardButFirst,
  // The same where the block above has left the gradient behind the ReLU, with its sums.
  kNormBackwardRest,
  kNormBackwardCoefficients,
  kDualNormBackwardRest,
  kDualNormBackwardRestButFirst,
};

class StepRecorder {
 public:
  void set_recorder(OpRecorder* recorder) {
    recorder_ = recorder;
    numbers_.clear();
  }

  // Does `queue`, which queues the step of `stage` on `stream`.
  template <typename Queue>
  void Run(Step step, const BottleneckStage& stage, Mode mode, Stream& stream, const Queue& queue) {
    if (recorder_ == nullptr) return queue();
    const Tensor& parameter = step <= Step::kConv3Backward ? stage.filter.value : stage.scale.value;
    recorder_->Run(NumberOf(step, stage, mode), parameter.data, stream, queue);
  }

 private:
  int NumberOf(Step step, const BottleneckStage& stage, Mode mode);

  OpRecorder* recorder_ = nullptr;
  std::map<std::tuple<Step, const BottleneckStage*, Mode>, int> numbers_;  // of the recorder
};

}  // namespace trainer
