// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/block_parts.h"
#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/stem/stem_autotune.h"
#include "trainer/backend/cuda/stem/stem_kernels.h"
#include "trainer/backend/cuda/stem/stem_passes.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// pixels -> blocks -> convolution -> convolved -> norm, ReLU and pool -> dst
// or, where it is computed again,
// pixels -> blocks -> sums of the convolution
//           blocks -> convolution, norm, ReLU and pool -> dst
class CudaStem final : public Stem {
 public:
  CudaStem(Backend& backend, CudaLibraries& libraries, const StemSpec& spec)
      : spec_(spec),
        dtype_(backend.compute_type()),
        blocks_(CudaImages(
            {spec.batch, kBlockChannels, BlocksAcross(spec.height), BlocksAcross(spec.width)},
            dtype_)),
        convolution_(backend.MakeConvolution({blocks_, spec.out_channels, kBlockKernel})),
        norm_(NormShapeOf(convolution_->dst())),
        filter_(CudaFilter({spec.out_channels, 3, 7, 7}, dtype_)) {
    const Shape& src = convolution_->dst().shape;
    size_ = {.images = {.samples = src[0], .height = src[2], .width = src[3]},
             .norm = norm_,
             .cores = TensorCoresOf(ComputeCapabilityMajor())};
    if (!libraries.deterministic() && HasStemPasses(size_)) {
      variant_ = FasterStemVariant(libraries.autotuner(), *convolution_, size_);
    }
    dst_ = CudaImages({src[0], src[1], WindowsAcross(src[2]), WindowsAcross(src[3])}, dtype_);
    pixels_.samples = spec.batch;
    pixels_.height = spec.height;
    pixels_.width = spec.width;
    for (int c = 0; c < 3; ++c) {
      pixels_.mean[c] = InputTransform::kMean[c];
      pixels_.factor[c] = 1 / InputTransform::kDeviation[c];
    }
    AppendConvolutionNormParameters("conv1", "bn1", filter_, parameters_);
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return dst_; }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    const auto& [forward, backward] = times;
    std::vector<PieceRow> rows = {
        {kInput, ".input", blocks_.bytes, forward, backward},
        {kFilter, ".filter", convolution_->filter().bytes, forward, backward},
        {kSaved, ".saved", FloatBytes(NormSavedFloats(norm_)), forward, backward},
        {kChosen, ".chosen", dst_.bytes, forward, backward},
        {kWinners, ".winners", dst_.bytes / SizeOf(dtype_), forward, backward},
        {kMask, ".mask", dst_.bytes / SizeOf(dtype_) / 8, forward, backward},
        {kForwardWorkspace, ".workspace", workspace_bytes(), forward, forward},
        {kBackwardWorkspace, ".workspace", workspace_bytes(), backward, backward},
    };
    if (variant_ == StemVariant::kStored) {
      const std::size_t convolved = convolution_->dst().bytes;
      rows.push_back({kConvolved, ".convolved", convolved, forward, backward});
      rows.push_back({kDiffConvolved, ".diff_convolved", convolved, backward, backward});
      rows.push_back(
          {kDiffFilter, ".diff_filter", convolution_->filter().bytes, backward, backward});
    } else {
      rows.push_back({kSums, ".sums", FloatBytes(2 * filters()), forward, forward});
    }
    for (const PieceRow& row : rows) {
      memory_[row.piece].id = plan.Reserve(name + row.name, row.bytes, row.first, row.last);
    }
  }

  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    bindings_ = std::move(bindings);
    for (Piece& piece : memory_) {
      if (piece.id >= 0) piece.address = arena + plan.offset(piece.id);
    }
    input_ = {blocks_, At<void>(kInput)};
    block_filter_ = {convolution_->filter(), At<void>(kFilter)};
    convolved_ = {convolution_->dst(), At<void>(kConvolved)};
    diff_convolved_ = {convolution_->dst(), At<void>(kDiffConvolved)};
    diff_block_filter_ = {convolution_->filter(), At<void>(kDiffFilter)};
  }

  void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) override {
    PixelsCall pixels = pixels_;
    pixels.pixels = batch.pixels;
    pixels.mirror = batch.mirror;
    pixels.lambda = batch.lambda;
    TransformPixelsToBlocks(pixels, dtype_, input_.data, HandleOf(stream));
    PooledNormForward call;
    call.norm.of_batch = mode == Mode::kTraining;
    call.norm.scratch = At<float>(kForwardWorkspace);
    call.dst = dst.data;
    if (mode != Mode::kInference) {
      call.norm.saved = At<float>(kSaved);
      call.chosen = At<void>(kChosen);
      call.winners = At<std::uint8_t>(kWinners);
      call.mask = At<std::uint8_t>(kMask);
    }
    if (variant_ == StemVariant::kStored) {
      ForwardStored(call, stream);
    } else {
      ForwardRecompute(call, HandleOf(stream));
    }
  }

  void Backward(Mode mode, const Tensor& /*dst*/, const Tensor& diff_dst, Stream& stream) override {
    PooledNormBackward call;
    call.norm.diff_scale = bindings_[1].gradient.As<float>();
    call.norm.diff_shift = bindings_[2].gradient.As<float>();
    call.norm.of_batch = mode == Mode::kTraining;
    call.norm.saved = At<float>(kSaved);
    call.norm.scratch = At<float>(kBackwardWorkspace);
    call.diff_dst = diff_dst.data;
    call.chosen = At<void>(kChosen);
    call.winners = At<std::uint8_t>(kWinners);
    call.mask = At<std::uint8_t>(kMask);
    if (variant_ == StemVariant::kStored) return BackwardStored(call, stream);
    RunConvolvedBackward(size_, operands(), Parameters().scale, call, bindings_[0].gradient.data,
                         HandleOf(stream));
  }

 private:
  // What lies in the memory of the plan.
  enum PieceName : std::size_t {
    kInput,
    kFilter,
    kSums,
    kConvolved,
    kSaved,
    kChosen,
    kWinners,
    kMask,
    kForwardWorkspace,
    kBackwardWorkspace,
    kDiffConvolved,
    kDiffFilter,
    kPieces
  };
  struct Piece {
    int id = -1;  // of the plan
    std::byte* address = nullptr;
  };
  struct PieceRow {
    PieceName piece;
    const char* name;
    std::size_t bytes;
    int first, last;  // times at which it is needed
  };

  static std::size_t FloatBytes(std::int64_t count) {
    return static_cast<std::size_t>(count) * sizeof(float);
  }
  std::size_t workspace_bytes() const {
    const std::size_t norm = FloatBytes(NormScratchFloats(norm_));
    if (variant_ == StemVariant::kRecompute) return norm + FloatBytes(StemScratchFloats(size_));
    return std::max(convolution_->workspace_bytes(), norm);
  }
  StemOperands operands() const { return {input_.data, block_filter_.data}; }

  void ForwardStored(PooledNormForward call, Stream& stream) {
    FilterToBlocks(bindings_[0].value.data, dtype_, filters(), block_filter_.data,
                   HandleOf(stream));
    convolution_->Forward(input_, block_filter_, convolved_, At<void>(kForwardWorkspace), stream);
    call.norm.src.values = convolved_.data;
    RunPooledNormForward(norm_, size_.images, Parameters(), call, HandleOf(stream));
  }
  void ForwardRecompute(PooledNormForward call, CUstream_st* stream) {
    FilterToLines(bindings_[0].value.data, dtype_, filters(), block_filter_.data, stream);
    if (call.norm.of_batch) {
      RunBnStats(size_, operands(), call.norm.scratch, At<float>(kSums), stream);
      call.norm.src.sums = At<float>(kSums);
    }
    RunConvolvedForward(size_, operands(), Parameters(), call, stream);
  }
  void BackwardStored(PooledNormBackward call, Stream& stream) {
    call.norm.src = convolved_.data;
    call.norm.diff_src = diff_convolved_.data;
    RunPooledNormBackward(norm_, size_.images, Parameters().scale, call, HandleOf(stream));
    convolution_->BackwardFilter(input_, diff_convolved_, diff_block_filter_,
                                 At<void>(kBackwardWorkspace), stream);
    FilterFromBlocks(diff_block_filter_.data, dtype_, filters(), bindings_[0].gradient.data,
                     HandleOf(stream));
  }

  template <typename T>
  T* At(PieceName piece) const {
    return reinterpret_cast<T*>(memory_[piece].address);
  }

  std::int64_t filters() const { return PaddedChannels(spec_.out_channels); }

  NormParameters Parameters() const {
    const BatchNormSpec usual;
    return NormParametersOf(
        {bindings_[1].value, bindings_[2].value, bindings_[3].value, bindings_[4].value},
        usual.epsilon, usual.kept);
  }

  const StemSpec spec_;
  const DType dtype_;
  const TensorDesc blocks_;
  const std::unique_ptr<Convolution> convolution_;
  const NormShape norm_;
  StemSize size_;
  StemVariant variant_ = StemVariant::kStored;
  PixelsCall pixels_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::vector<ParameterSpec> parameters_;
  std::vector<ParameterBinding> bindings_;

  std::array<Piece, kPieces> memory_;  // by PieceName
  Tensor input_;
  Tensor block_filter_;
  Tensor convolved_;
  Tensor diff_convolved_;
  Tensor diff_block_filter_;
};

}  // namespace

std::unique_ptr<Stem> MakeCudaStem(Backend& backend, CudaLibraries& libraries,
                                   const StemSpec& spec) {
  return std::make_unique<CudaStem>(backend, libraries, spec);
}

}  // namespace trainer
