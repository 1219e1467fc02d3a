// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/stem/stem_autotune.h"

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"

namespace trainer {
namespace {

constexpr float kEpsilon = 1e-5F;

std::string NameOf(const StemSize& size) {
  const StemImages& images = size.images;
  return "stem of " + std::to_string(images.samples) + "x" + std::to_string(images.height) + "x" +
         std::to_string(images.width) + "x" + std::to_string(size.norm.channels) + ", " +
         std::string(NameOf(size.norm.dtype));
}

// Factors of both signs and offsets of the size that they have in networks.
void SetNorm(float* scale_then_shift, int padded) {
  std::vector<float> values(2 * static_cast<std::size_t>(padded));
  for (int c = 0; c < padded; ++c) {
    values[c] = (c % 4 == 3 ? -1.0F : 1.0F) * (0.25F + static_cast<float>(c % 7) / 4);
    values[padded + c] = static_cast<float>(c % 5 - 2) / 4;
  }
  CheckCuda(cudaMemcpyAsync(scale_then_shift, values.data(), values.size() * sizeof(float),
                            cudaMemcpyHostToDevice, nullptr),
            "preparing to autotune the stem");
  BorrowedStream().Synchronize();
}

// What a way writes, and what it moves.
struct Results {
  explicit Results(const StemSize& size, std::size_t dst_bytes, std::size_t filter_bytes)
      : padded(size.norm.padded),
        dst(dst_bytes),
        diff_filter(filter_bytes),
        channels(FloatBytes(std::int64_t{kArrays} * padded)) {}

  // Running mean and variance, which are the batch's alone, and the gradients of scale and shift.
  static constexpr int kArrays = 4;
  float* Channels(int index) const {
    return static_cast<float*>(channels.data()) + std::ptrdiff_t{index} * padded;
  }

  const int padded;
  const ScratchMemory dst, diff_filter, channels;
};

class Candidates {
 public:
  Candidates(Convolution& convolution, const StemSize& size)
      : convolution_(convolution),
        size_(size),
        dtype_(size.norm.dtype),
        blocks_desc_(
            CudaImages({size.images.samples, kBlockChannels, size.images.height + kBlockKernel - 1,
                        size.images.width + kBlockKernel - 1},
                       dtype_)),
        pooled_(CudaImages({size.images.samples, size.norm.channels,
                            WindowsAcross(size.images.height), WindowsAcross(size.images.width)},
                           dtype_)),
        filter_(CudaFilter({size.norm.channels, 3, 7, 7}, dtype_)),
        blocks_(blocks_desc_.bytes),
        pixel_filter_(filter_.bytes),
        block_filter_(convolution.filter().bytes),
        diff_block_filter_(convolution.filter().bytes),
        convolved_(convolution.dst().bytes),
        chosen_(pooled_.bytes),
        winners_(pooled_.bytes / SizeOf(dtype_)),
        mask_(pooled_.bytes / SizeOf(dtype_) / 8),
        diff_dst_(pooled_.bytes),
        channels_(FloatBytes(std::int64_t{2} * size.norm.padded)),
        saved_(FloatBytes(NormSavedFloats(size.norm))),
        sums_(FloatBytes(std::int64_t{2} * size.norm.padded)),
        scratch_(FloatBytes(NormScratchFloats(size.norm) + StemScratchFloats(size))),
        workspace_(convolution.workspace_bytes()) {
    SetNorm(static_cast<float*>(channels_.data()), size.norm.padded);
  }

  const TensorDesc& pooled() const { return pooled_; }
  const TensorDesc& filter() const { return filter_; }

  void Run(StemVariant variant, const Results& to, Stream& stream) const {
    if (variant == StemVariant::kStored) return RunStored(to, stream);
    RunRecompute(to, HandleOf(stream));
  }

 private:
  NormParameters Parameters(const Results& to) const {
    const auto* channels = static_cast<const float*>(channels_.data());
    return {.scale = channels,
            .shift = channels + size_.norm.padded,
            .running_mean = to.Channels(0),
            .running_variance = to.Channels(1),
            .epsilon = kEpsilon,
            .kept = 0};
  }
  PooledNormForward ForwardCall(const Results& to) const {
    PooledNormForward call;
    call.norm.of_batch = true;
    call.norm.saved = static_cast<float*>(saved_.data());
    call.norm.scratch = static_cast<float*>(scratch_.data());
    call.dst = to.dst.data();
    call.chosen = chosen_.data();
    call.winners = static_cast<std::uint8_t*>(winners_.data());
    call.mask = static_cast<std::uint8_t*>(mask_.data());
    return call;
  }
  PooledNormBackward BackwardCall(const Results& to) const {
    PooledNormBackward call;
    call.norm.diff_scale = to.Channels(2);
    call.norm.diff_shift = to.Channels(3);
    call.norm.of_batch = true;
    call.norm.saved = static_cast<const float*>(saved_.data());
    call.norm.scratch = static_cast<float*>(scratch_.data());
    call.diff_dst = diff_dst_.data();
    call.chosen = chosen_.data();
    call.winners = static_cast<const std::uint8_t*>(winners_.data());
    call.mask = static_cast<const std::uint8_t*>(mask_.data());
    return call;
  }

  void RunStored(const Results& to, Stream& stream) const {
    const std::int64_t filters = size_.norm.padded;
    CUstream_st* const handle = HandleOf(stream);
    const Tensor blocks = {blocks_desc_, blocks_.data()};
    const Tensor block_filter = {convolution_.filter(), block_filter_.data()};
    const Tensor diff_block_filter = {convolution_.filter(), diff_block_filter_.data()};
    // Its gradient takes its place, as far as each thread has read it.
    const Tensor convolved = {convolution_.dst(), convolved_.data()};
    FilterToBlocks(pixel_filter_.data(), dtype_, filters, block_filter.data, handle);
    convolution_.Forward(blocks, block_filter, convolved, workspace_.data(), stream);
    PooledNormForward forward = ForwardCall(to);
    forward.norm.src.values = convolved.data;
    RunPooledNormForward(size_.norm, size_.images, Parameters(to), forward, handle);
    PooledNormBackward backward = BackwardCall(to);
    backward.norm.src = backward.norm.diff_src = convolved.data;
    RunPooledNormBackward(size_.norm, size_.images, Parameters(to).scale, backward, handle);
    convolution_.BackwardFilter(blocks, convolved, diff_block_filter, workspace_.data(), stream);
    FilterFromBlocks(diff_block_filter.data, dtype_, filters, to.diff_filter.data(), handle);
  }

  void RunRecompute(const Results& to, CUstream_st* stream) const {
    const StemOperands operands = {blocks_.data(), block_filter_.data()};
    auto* scratch = static_cast<float*>(scratch_.data());
    auto* sums = static_cast<float*>(sums_.data());
    FilterToLines(pixel_filter_.data(), dtype_, size_.norm.padded, block_filter_.data(), stream);
    RunBnStats(size_, operands, scratch, sums, stream);
    PooledNormForward forward = ForwardCall(to);
    forward.norm.src.sums = sums;
    RunConvolvedForward(size_, operands, Parameters(to), forward, stream);
    RunConvolvedBackward(size_, operands, Parameters(to).scale, BackwardCall(to),
                         to.diff_filter.data(), stream);
  }

  Convolution& convolution_;
  const StemSize size_;
  const DType dtype_;
  const TensorDesc blocks_desc_, pooled_, filter_;
  const ScratchMemory blocks_, pixel_filter_, block_filter_, diff_block_filter_, convolved_,
      chosen_, winners_, mask_, diff_dst_, channels_, saved_, sums_, scratch_, workspace_;
};

double Difference(const Candidates& candidates, const StemSize& size) {
  const Results stored(size, candidates.pooled().bytes, candidates.filter().bytes);
  const Results again(size, candidates.pooled().bytes, candidates.filter().bytes);
  BorrowedStream stream;
  candidates.Run(StemVariant::kStored, stored, stream);
  candidates.Run(StemVariant::kRecompute, again, stream);
  const DType dtype = size.norm.dtype;
  const auto differ = [&](const ScratchMemory& a, const ScratchMemory& b, std::size_t bytes) {
    return RelativeDifference(a.data(), b.data(), dtype,
                              static_cast<std::int64_t>(bytes / SizeOf(dtype)));
  };
  double max = differ(again.dst, stored.dst, candidates.pooled().bytes);
  const auto add = [&](double difference) {
    if (!std::isnan(max) && !(difference <= max)) max = difference;
  };
  add(differ(again.diff_filter, stored.diff_filter, candidates.filter().bytes));
  for (int i = 0; i < Results::kArrays; ++i) {
    add(RelativeDifference(again.Channels(i), stored.Channels(i), DType::kFloat32,
                           size.norm.channels));
  }
  return max;
}

StemVariant Faster(Convolution& convolution, const StemSize& size) {
  const Candidates candidates(convolution, size);
  const double allowed = AllowedStemDifference(size.norm.dtype);
  if (!(Difference(candidates, size) <= allowed)) return StemVariant::kStored;
  const Results to(size, candidates.pooled().bytes, candidates.filter().bytes);
  constexpr StemVariant kVariants[] = {StemVariant::kRecompute, StemVariant::kStored};
  const std::size_t fastest =
      FastestOf(std::size(kVariants), [&](std::size_t i, cudaStream_t stream) {
        BorrowedStream borrowed(stream);
        candidates.Run(kVariants[i], to, borrowed);
      });
  // The convolution's library remembers its last stream, which must be one that is still there.
  BorrowedStream last;
  candidates.Run(StemVariant::kStored, to, last);
  last.Synchronize();
  return kVariants[fastest];
}

}  // namespace

double StemVariantError(Convolution& convolution, const StemSize& size) {
  return Difference(Candidates(convolution, size), size);
}

// Both round the same things in another order, which in some windows turns which pixel is the
// largest.
double AllowedStemDifference(DType dtype) { return dtype == DType::kFloat16 ? 0.01 : 0.05; }

StemVariant FasterStemVariant(Autotuner& autotuner, Convolution& convolution,
                              const StemSize& size) {
  static const std::string kPlans[] = {"computed again", "stored"};  // by StemVariant
  return static_cast<StemVariant>(autotuner.Choose(
      NameOf(size), kPlans, [&] { return static_cast<std::size_t>(Faster(convolution, size)); }));
}

}  // namespace trainer
