// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/expansion/expansion_autotune.h"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/norm_autotune.h"
#include "trainer/backend/cuda/runtime/difference_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"

namespace trainer {
namespace {

constexpr const char* kExpansionPlan = "kernel";
constexpr const char* kPassesPlan = "separate";

// Of the root mean square: both round what is between the two products, and their results.
double LargestExpansionError(DType dtype) {
  return dtype == DType::kFloat16 ? 1.0 / 256 : 1.0 / 32;
}

std::string ToString(const Conv3BackwardShape& shape) {
  return "backward of " + std::to_string(shape.pixels) + " pixels from " +
         std::to_string(kConv3Filters) + " to " + std::to_string(kConv3Channels) +
         " channels between batch norms, " + std::string(NameOf(shape.dtype));
}

// A batch norm with what it reads and keeps.
class NormCandidate {
 public:
  NormCandidate(const Conv3BackwardShape& shape, int channels, bool adds)
      : shape_{.pixels = shape.pixels,
               .channels = channels,
               .padded = channels,
               .dtype = shape.dtype,
               .sms = shape.sms},
        src_(TensorBytes(shape_)),
        saved_(FloatBytes(NormSavedFloats(shape_)) +
               static_cast<std::size_t>(NormMaskBytes(shape_))),
        channels_(FloatBytes(std::int64_t{6} * channels)),
        scratch_(FloatBytes(NormScratchFloats(shape_))),
        adds_(adds) {
    // Noise in fp32 is nearly nothing.
    constexpr const char* kAction = "parameters of a batch norm to be timed";
    const std::vector<float> halves(static_cast<std::size_t>(channels) * 6, 0.5F);
    CheckCuda(cudaMemcpyAsync(channels_.data(), halves.data(), halves.size() * sizeof(float),
                              cudaMemcpyHostToDevice, nullptr),
              kAction);
    CheckCuda(cudaDeviceSynchronize(), kAction);
  }

  const NormShape& shape() const { return shape_; }
  void* src() const { return src_.data(); }
  float* saved() const { return static_cast<float*>(saved_.data()); }
  std::uint8_t* mask() const {
    return reinterpret_cast<std::uint8_t*>(saved() + NormSavedFloats(shape_));
  }
  const float* scale() const { return Channels(0); }
  float* diff_scale() const { return Channels(4); }

  void Forward(const void* residual, void* dst, cudaStream_t stream) const {
    NormForward call;
    call.src.values = src();
    call.residual = adds_ ? residual : nullptr;
    call.dst = dst;
    call.relu = true;
    call.of_batch = true;
    call.saved = saved();
    call.mask = mask();
    call.scratch = static_cast<float*>(scratch_.data());
    RunNormForward(shape_, parameters(), call, stream);
  }
  NormBackward Backward(const void* diff_dst, void* diff_src) const {
    NormBackward call;
    call.src = src();
    call.mask = mask();
    call.diff_dst = diff_dst;
    call.diff_src = diff_src;
    call.diff_scale = Channels(4);
    call.diff_shift = Channels(5);
    call.of_batch = true;
    call.saved = saved();
    call.scratch = static_cast<float*>(scratch_.data());
    return call;
  }

 private:
  float* Channels(int array) const {
    return static_cast<float*>(channels_.data()) + std::ptrdiff_t{array} * shape_.padded;
  }
  NormParameters parameters() const {
    return {.scale = Channels(0),
            .shift = Channels(1),
            .running_mean = Channels(2),
            .running_variance = Channels(3),
            .epsilon = 1e-5F};
  }

  const NormShape shape_;
  const ScratchMemory src_, saved_, channels_, scratch_;
  const bool adds_;
};

// Both ways, each from `gradient` to what else it is given.
class ExpansionAutotuner {
 public:
  ExpansionAutotuner(const Conv3BackwardShape& shape, const ExpansionPasses& passes)
      : shape_(shape),
        passes_(passes),
        behind_(shape, kConv3Filters, /*adds=*/true),
        before_(shape, kConv3Channels, /*adds=*/false),
        gradient_(TensorBytes(behind_.shape())),
        between_(TensorBytes(behind_.shape())),
        residual_(TensorBytes(behind_.shape())),
        src_(TensorBytes(before_.shape())),
        diff_src_{ScratchMemory(TensorBytes(before_.shape())),
                  ScratchMemory(TensorBytes(before_.shape()))},
        filter_(FilterBytes()),
        diff_filter_{ScratchMemory(FilterBytes()), ScratchMemory(FilterBytes())},
        coefficients_(FloatBytes(NormCoefficientsFloats(behind_.shape()))),
        sums_(FloatBytes(std::int64_t{5} * kConv3Channels)),
        scratch_(FloatBytes(Conv3BackwardScratchFloats(shape))) {
    const std::unique_ptr<Stream> stream = MakeCudaStream();
    behind_.Forward(gradient_.data(), between_.data(), HandleOf(*stream));
    before_.Forward(nullptr, src_.data(), HandleOf(*stream));
    stream->Synchronize();
  }

  void RunPasses(const NormLaunchConfig& config, cudaStream_t stream) const {
    NormBackward call = behind_.Backward(gradient_.data(), between_.data());
    call.config = config;
    call.diff_residual = residual_.data();
    RunNormBackward(behind_.shape(), behind_.scale(), call, stream);
    void* const diff_src = diff_src_[0].data();
    const ExpansionPasses::Operands operands = {.src = src_.data(),
                                                .diff_dst = between_.data(),
                                                .filter = filter_.data(),
                                                .diff_filter = diff_filter_[0].data(),
                                                .diff_src = diff_src,
                                                .before = before_.src(),
                                                .saved = before_.saved(),
                                                .sums = Sums()};
    passes_.backward_filter(operands, stream);
    passes_.backward_data(operands, stream);
    NormBackward last = before_.Backward(diff_src, diff_src);
    last.config = config;
    if (passes_.gates) {
      last.mask = nullptr;
      last.sums = Sums();
    }
    RunNormBackward(before_.shape(), before_.scale(), last, stream);
  }

  void RunKernel(void* diff_residual, cudaStream_t stream) const {
    const NormBackward first = behind_.Backward(gradient_.data(), nullptr);
    RunNormBackwardStatsOnly(behind_.shape(), behind_.scale(), first,
                             static_cast<float*>(coefficients_.data()), stream);
    void* const diff_src = diff_src_[1].data();
    RunConv3Backward(shape_,
                     {.gradient = gradient_.data(),
                      .mask = behind_.mask(),
                      .convolved = behind_.src(),
                      .means = behind_.saved(),
                      .coefficients = static_cast<const float*>(coefficients_.data()),
                      .diff_residual = diff_residual,
                      .filter = filter_.data(),
                      .diff_filter = diff_filter_[1].data(),
                      .before = before_.src(),
                      .saved = before_.saved(),
                      .diff_src = diff_src,
                      .sums = Sums(),
                      .scratch = static_cast<float*>(scratch_.data())},
                     stream);
    NormBackward last = before_.Backward(diff_src, diff_src);
    last.mask = nullptr;
    last.sums = Sums();
    RunNormBackward(before_.shape(), before_.scale(), last, stream);
  }
  void RunKernel(cudaStream_t stream) const { RunKernel(residual_.data(), stream); }

  // Whether both give the same.
  bool Agree() const {
    const std::unique_ptr<Stream> stream = MakeCudaStream();
    RunPasses({}, HandleOf(*stream));
    const std::vector<float> of_passes = ChannelGradients(*stream);
    void* const residual = between_.data();  // which only the passes need
    RunKernel(residual, HandleOf(*stream));
    const std::vector<float> of_kernel = ChannelGradients(*stream);
    double errors = 0;
    double squares = 0;
    for (std::size_t i = 0; i < of_passes.size(); ++i) {
      const double error = double{of_kernel[i]} - of_passes[i];
      errors += error * error;
      squares += double{of_passes[i]} * of_passes[i];
    }
    return AreClose(errors, squares) &&
           AreClose(residual, residual_.data(), TensorBytes(behind_.shape()), *stream) &&
           AreClose(diff_src_[1].data(), diff_src_[0].data(), TensorBytes(before_.shape()),
                    *stream) &&
           AreClose(diff_filter_[1].data(), diff_filter_[0].data(), FilterBytes(), *stream);
  }

 private:
  std::size_t FilterBytes() const {
    return std::size_t{kConv3Filters} * kConv3Channels * SizeOf(shape_.dtype);
  }
  float* Sums() const { return static_cast<float*>(sums_.data()); }

  // Of the batch norm before: diff_scale, then diff_shift.
  std::vector<float> ChannelGradients(Stream& stream) const {
    std::vector<float> values(std::size_t{2} * kConv3Channels);
    CheckCuda(cudaMemcpyAsync(values.data(), before_.diff_scale(), values.size() * sizeof(float),
                              cudaMemcpyDeviceToHost, HandleOf(stream)),
              "reading gradients of a batch norm");
    stream.Synchronize();
    return values;
  }

  // False where either is no number.
  bool AreClose(double errors, double squares) const {
    return squares > 0 && std::sqrt(errors / squares) <= LargestExpansionError(shape_.dtype);
  }
  bool AreClose(const void* values, const void* expected, std::size_t bytes, Stream& stream) const {
    const ScratchMemory partial(std::size_t{2} * kDifferenceBlocks * sizeof(float));
    SumSquaredDifferences(
        values, expected, shape_.dtype, static_cast<std::int64_t>(bytes / SizeOf(shape_.dtype)),
        static_cast<float(*)[kDifferenceBlocks]>(partial.data()), HandleOf(stream));
    std::vector<float> sums(std::size_t{2} * kDifferenceBlocks);
    CheckCuda(cudaMemcpyAsync(sums.data(), partial.data(), sums.size() * sizeof(float),
                              cudaMemcpyDeviceToHost, HandleOf(stream)),
              "reading the differences of results");
    stream.Synchronize();
    const auto middle = sums.begin() + kDifferenceBlocks;
    const double errors = std::accumulate(sums.begin(), middle, 0.0);
    const double squares = std::accumulate(middle, sums.end(), 0.0);
    return AreClose(errors, squares);
  }

  const Conv3BackwardShape shape_;
  const ExpansionPasses& passes_;
  const NormCandidate behind_, before_;
  const ScratchMemory gradient_, between_, residual_, src_;
  const ScratchMemory diff_src_[2], filter_, diff_filter_[2];  // of the passes, of the kernel
  const ScratchMemory coefficients_, sums_, scratch_;
};

bool ExpansionWins(const Conv3BackwardShape& shape, const ExpansionPasses& passes) {
  const ExpansionAutotuner candidates(shape, passes);
  if (!candidates.Agree()) return false;
  return FastestOf(1 + kNormLaunchConfigs.size(), [&](std::size_t i, cudaStream_t stream) {
           if (i == 0) return candidates.RunKernel(stream);
           candidates.RunPasses(kNormLaunchConfigs[i - 1], stream);
         }) == 0;
}

}  // namespace

bool TakesExpansionKernel(const Conv3BackwardShape& shape, const ExpansionPasses& passes,
                          const DevicePlanCache& plans) {
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  const std::string name = ToString(shape);
  // All back ends of the process compute alike.
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, bool> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find({device, name});
  if (found != known.end()) return found->second;
  const std::optional<std::string> kept = plans.Find(name);
  const bool is_known = kept == kExpansionPlan || kept == kPassesPlan;
  const bool takes = is_known ? kept == kExpansionPlan : ExpansionWins(shape, passes);
  if (!is_known) plans.Add(name, takes ? kExpansionPlan : kPassesPlan);
  return known.emplace(std::pair(device, name), takes).first->second;
}

}  // namespace trainer
