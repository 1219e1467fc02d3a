// SPDX-License-Identifier: Apache-2.0
//
// cuda_libraries.h without NVIDIA's libraries: plain loops, sums in fp32.  Padding is computed like
// everything else, as cuDNN does: it comes out as zero if and only if it went in as zero.

#include "tests/trainer/backend/cuda_emulator/emulated_libraries.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace {

std::atomic<int> forwards_until_spoilt = 0;

}  // namespace

void cuda_emulator::SpoilForward(int number) { forwards_until_spoilt = number; }

namespace trainer {
namespace {

using Index = std::int64_t;
using Floats = std::vector<float>;

// Nothing is kept in it; it is filled with not-a-number to find out who else uses it.
constexpr std::size_t kWorkspaceBytes = 256;

void AddScaled(float* to, const float* from, float factor, Index count) {
  for (Index i = 0; i < count; ++i) to[i] += from[i] * factor;
}

void UseWorkspace(void* workspace) {
  DDL_CHECK(cuda_emulator::IsForKernels(workspace));
  std::memset(workspace, 0xFF, kWorkspaceBytes);
}

Floats Load(const Tensor& tensor) {
  DDL_CHECK(cuda_emulator::IsForKernels(tensor.data));
  Floats values(tensor.desc.bytes / SizeOf(tensor.desc.dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (tensor.desc.dtype) {
      case DType::kFloat16:
        values[i] = __half2float(tensor.As<const __half>()[i]);
        break;
      case DType::kBFloat16:
        values[i] = __bfloat162float(tensor.As<const __nv_bfloat16>()[i]);
        break;
      default:
        values[i] = tensor.As<const float>()[i];
    }
  }
  return values;
}

void Store(const Floats& values, const Tensor& tensor) {
  DDL_CHECK(values.size() == tensor.desc.bytes / SizeOf(tensor.desc.dtype));
  DDL_CHECK(cuda_emulator::IsForKernels(tensor.data));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (tensor.desc.dtype) {
      case DType::kFloat16:
        tensor.As<__half>()[i] = __float2half_rn(values[i]);
        break;
      case DType::kBFloat16:
        tensor.As<__nv_bfloat16>()[i] = __float2bfloat16_rn(values[i]);
        break;
      default:
        tensor.As<float>()[i] = values[i];
    }
  }
}

Floats Zeros(const TensorDesc& desc) { return Floats(desc.bytes / SizeOf(desc.dtype)); }

class EmulatedConvolution final : public CudaConvolution {
 public:
  EmulatedConvolution(const ConvolutionSpec& spec, const ConvolutionFusions& fusions, DType storage)
      : spec_(spec), fusions_(fusions) {
    const Shape& src = spec.src.shape;
    DDL_CHECK(spec.src.layout == Layout::kChannelsLast && spec.src.dtype == storage &&
              spec.src.bytes == CudaImages(src, storage).bytes);
    DDL_CHECK(spec.out_channels > 0 && spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
    DDL_CHECK(src[2] + 2 * spec.padding >= spec.kernel && src[3] + 2 * spec.padding >= spec.kernel);
    const Index height = (src[2] + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    const Index width = (src[3] + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    filter_ = CudaFilter({spec.out_channels, src[1], spec.kernel, spec.kernel}, storage);
    dst_ = CudaImages({src[0], spec.out_channels, height, width}, storage);
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return kWorkspaceBytes; }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    QueueForward(src, filter, dst, nullptr, workspace, stream);
  }

  // In 16 bits, as cuDNN.
  std::size_t bn_stats_bytes() const override {
    const bool has_sums = fusions_.bn_stats && dst_.dtype != DType::kFloat32;
    return has_sums ? 2 * static_cast<std::size_t>(PaddedChannels(dst_.shape[1])) * sizeof(float)
                    : 0;
  }
  void ForwardWithBnStats(const Tensor& src, const Tensor& filter, const Tensor& dst, float* sums,
                          void* workspace, Stream& stream) override {
    DDL_CHECK(bn_stats_bytes() > 0);
    QueueForward(src, filter, dst, sums, workspace, stream);
  }

  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      ComputeDataGradient(diff_dst, filter, diff_src, workspace);
    });
  }

  // In fp16, as cuDNN, but of all shapes: the sum of products and the sum; the other arrays are
  // cuDNN's and of no use.
  std::size_t drelu_sums_bytes() const override {
    return fusions_.drelu && dst_.dtype == DType::kFloat16 ? 5 * SrcChannels() * sizeof(float) : 0;
  }
  void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter, const void* z,
                                const float* saved, const Tensor& diff_src, float* sums,
                                void* workspace, Stream& stream) override {
    DDL_CHECK(drelu_sums_bytes() > 0 && !spec_.adds_diff_src);
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      ComputeDataGradient(diff_dst, filter, diff_src, workspace);
      ReluMask(z, saved, diff_src, sums);
    });
  }

  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      UseWorkspace(workspace);
      const Floats x = Load(src);
      const Floats y = Load(diff_dst);
      Floats f = Zeros(filter_);
      ForEachProduct(
          [&](Index i, Index j, Index k, Index in) { AddScaled(&f[j], &x[i], y[k], in); });
      Store(f, diff_filter);
    });
  }

 private:
  std::size_t SrcChannels() const {
    return static_cast<std::size_t>(PaddedChannels(spec_.src.shape[1]));
  }

  void ComputeDataGradient(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                           void* workspace) const {
    UseWorkspace(workspace);
    const Floats y = Load(diff_dst);
    const Floats f = Load(filter);
    Floats x = spec_.adds_diff_src ? Load(diff_src) : Zeros(spec_.src);
    ForEachProduct([&](Index i, Index j, Index k, Index in) { AddScaled(&x[i], &f[j], y[k], in); });
    Store(x, diff_src);
  }

  // As cuDNN's graph does it: the ReLU's input is computed again from what the batch norm has
  // saved.
  void ReluMask(const void* z, const float* mean, const Tensor& diff_src, float* sums) const {
    const std::size_t channels = SrcChannels();
    const float* inverse = mean + channels;
    const float* scale = inverse + channels;
    const float* shift = scale + channels;
    const Floats x = Load({diff_src.desc, const_cast<void*>(z)});
    Floats gradient = Load(diff_src);
    std::fill_n(sums, 2 * channels, 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % channels;
      const float normalized = (x[i] - mean[c]) * inverse[c];
      if (!(normalized * scale[c] + shift[c] > 0)) gradient[i] = 0;
      sums[c] += gradient[i] * normalized;
      sums[channels + c] += gradient[i];
    }
    Store(gradient, diff_src);
  }

  void QueueForward(const Tensor& src, const Tensor& filter, const Tensor& dst, float* sums,
                    void* workspace, Stream& stream) {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      UseWorkspace(workspace);
      const Floats x = Load(src);
      const Floats f = Load(filter);
      Floats y = Zeros(dst_);
      ForEachProduct([&](Index i, Index j, Index k, Index in) {
        y[k] = std::inner_product(&x[i], &x[i] + in, &f[j], y[k]);
      });
      if (--forwards_until_spoilt == 0) y[0] = NAN;
      Store(y, dst);
      if (sums == nullptr) return;
      const auto channels = static_cast<std::size_t>(PaddedChannels(dst_.shape[1]));
      std::fill_n(sums, 2 * channels, 0.0F);
      const Floats stored = Load(dst);
      for (std::size_t i = 0; i < stored.size(); ++i) {
        sums[i % channels] += stored[i];
        sums[channels + i % channels] += stored[i] * stored[i];
      }
    });
  }

  // dst[k] is the sum of products of src and filter elements: calls use(i, j, k, in) for those of i
  // and j, and of the in - 1 pairs that follow them.
  template <typename Use>
  void ForEachProduct(Use use) const {
    const Shape& src = spec_.src.shape;
    const Shape& dst = dst_.shape;
    const Index in = PaddedChannels(src[1]);
    const Index out = PaddedChannels(dst[1]);
    const Index taps = spec_.kernel * spec_.kernel;
    for (Index pixel = 0; pixel < dst[0] * dst[2] * dst[3]; ++pixel) {
      const Index n = pixel / (dst[2] * dst[3]);
      for (Index tap = 0; tap < taps; ++tap) {
        const Index h = pixel / dst[3] % dst[2] * spec_.stride - spec_.padding + tap / spec_.kernel;
        const Index w = pixel % dst[3] * spec_.stride - spec_.padding + tap % spec_.kernel;
        if (h < 0 || h >= src[2] || w < 0 || w >= src[3]) continue;
        const Index src_pixel = (n * src[2] + h) * src[3] + w;
        for (Index k = 0; k < out; ++k) {
          use(src_pixel * in, (k * taps + tap) * in, pixel * out + k, in);
        }
      }
    }
  }

  ConvolutionSpec spec_;
  ConvolutionFusions fusions_;
  TensorDesc filter_;
  TensorDesc dst_;
};

class EmulatedLinear final : public Linear {
 public:
  EmulatedLinear(const LinearSpec& spec, DType storage)
      : batch_(spec.src.shape[0]), in_(spec.src.shape[1]), out_(spec.out_features) {
    DDL_CHECK(spec.src.layout == Layout::kRowMajor && out_ > 0);
    weight_ = RowMajor({out_, in_}, storage);
    dst_ = RowMajor({batch_, out_}, DType::kFloat32);
  }

  const TensorDesc& weight() const override { return weight_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return kWorkspaceBytes; }

  void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
               void* workspace, Stream& stream) override {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      UseWorkspace(workspace);
      const Floats x = Load(src);
      const Floats w = Load(weight);
      const Floats b = Load(bias);
      Floats y = Zeros(dst_);
      for (Index i = 0; i < batch_ * out_; ++i) y[i] = b[i % out_];
      ForEachProduct([&](Index i, Index j, Index k) { y[k] += x[i] * w[j]; });
      Store(y, dst);
    });
  }

  void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                void* workspace, Stream& stream) override {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      UseWorkspace(workspace);
      const Floats x = Load(src);
      const Floats w = Load(weight);
      const Floats y = Load(diff_dst);
      Floats diff_x(x.size());
      Floats diff_w(w.size());
      Floats diff_b(out_);
      ForEachProduct([&](Index i, Index j, Index k) {
        diff_x[i] += w[j] * y[k];
        diff_w[j] += x[i] * y[k];
      });
      for (Index i = 0; i < batch_ * out_; ++i) diff_b[i % out_] += y[i];
      Store(diff_x, diff_src);
      Store(diff_w, diff_weight);
      Store(diff_b, diff_bias);
    });
  }

 private:
  // As above, for src, weight and dst.
  template <typename Use>
  void ForEachProduct(Use use) const {
    for (Index n = 0; n < batch_; ++n) {
      for (Index k = 0; k < out_; ++k) {
        for (Index c = 0; c < in_; ++c) use(n * in_ + c, k * in_ + c, n * out_ + k);
      }
    }
  }

  Index batch_;
  Index in_;
  Index out_;
  TensorDesc weight_;
  TensorDesc dst_;
};

class EmulatedLibraries final : public CudaLibraries {
 public:
  EmulatedLibraries(DType storage, bool deterministic, DevicePlanCache plans)
      : storage_(storage), deterministic_(deterministic), plans_(std::move(plans)) {}

  std::string versions() const override { return "plain loops instead of cuDNN and cuBLASLt"; }
  std::unique_ptr<CudaConvolution> MakeConvolution(const ConvolutionSpec& spec,
                                                   const ConvolutionFusions& fusions) override {
    if (!plans_.Find("convolution")) plans_.Add("convolution", "loops");
    // As the libraries: nothing is done together with it where results must repeat.
    return std::make_unique<EmulatedConvolution>(
        spec, deterministic_ ? ConvolutionFusions{} : fusions, storage_);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return std::make_unique<EmulatedLinear>(spec, storage_);
  }
  bool deterministic() const override { return deterministic_; }
  Autotuner& autotuner() override { return autotuner_; }

 private:
  // What takes longer here says nothing of a GPU.
  class NoClock final : public Autotuner {
   public:
    std::size_t Choose(const std::string& /*what*/, std::span<const std::string> /*plans*/,
                       const std::function<std::size_t()>& /*autotune*/) override {
      return 0;
    }
  };

  DType storage_;
  bool deterministic_;
  DevicePlanCache plans_;
  NoClock autotuner_;
};

}  // namespace

std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision, bool deterministic,
                                                 std::shared_ptr<PlanCache> plans,
                                                 const std::string& device) {
  return std::make_unique<EmulatedLibraries>(precision.storage, deterministic,
                                             DevicePlanCache(std::move(plans), device));
}

}  // namespace trainer
