// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kChannels = 3;

// Row-major planes: what oneDNN's first convolution reads, on every instruction set.
class CpuInputTransform final : public InputTransform {
 public:
  explicit CpuInputTransform(const Shape& images) : dst_(RowMajor(images, DType::kFloat32)) {
    for (int c = 0; c < kChannels; ++c) {
      for (int pixel = 0; pixel < 256; ++pixel) {
        value_[c][pixel] = (static_cast<float>(pixel) - kMean[c]) / kDeviation[c];
      }
    }
  }

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
               const Tensor& dst, Stream& /*stream*/) override {
    const std::int64_t batch = dst_.shape[0];
    const std::int64_t height = dst_.shape[2];
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t h = 0; h < height; ++h) {
        const std::int64_t other = batch - 1 - n;
        const float own = lambda == nullptr ? 1.0F : lambda[n];
        if (own == 1.0F) {
          Row(pixels, mirror, n, h, dst.As<float>());
        } else {
          MixedRow(pixels, mirror, n, other, h, own, dst.As<float>());
        }
      }
    }
  }

 private:
  // The pixels of one row and where to start reading them, in which direction.
  struct Source {
    const std::uint8_t* first;
    std::int64_t step;
  };
  Source SourceOf(const std::uint8_t* pixels, const std::uint8_t* mirror, std::int64_t n,
                  std::int64_t h) const {
    const std::int64_t width = dst_.shape[3];
    const std::uint8_t* row = pixels + (n * dst_.shape[2] + h) * width * kChannels;
    if (mirror[n] != 0) return {row + (width - 1) * kChannels, -kChannels};
    return {row, kChannels};
  }

  float* DstRow(float* dst, std::int64_t n, std::int64_t c, std::int64_t h) const {
    return dst + ((n * kChannels + c) * dst_.shape[2] + h) * dst_.shape[3];
  }

  void Row(const std::uint8_t* pixels, const std::uint8_t* mirror, std::int64_t n, std::int64_t h,
           float* dst) const {
    const Source source = SourceOf(pixels, mirror, n, h);
    for (int c = 0; c < kChannels; ++c) {
      float* row = DstRow(dst, n, c, h);
      for (std::int64_t w = 0; w < dst_.shape[3]; ++w) {
        row[w] = value_[c][source.first[w * source.step + c]];
      }
    }
  }

  void MixedRow(const std::uint8_t* pixels, const std::uint8_t* mirror, std::int64_t n,
                std::int64_t other, std::int64_t h, float lambda, float* dst) const {
    const Source a = SourceOf(pixels, mirror, n, h);
    const Source b = SourceOf(pixels, mirror, other, h);
    for (int c = 0; c < kChannels; ++c) {
      float* row = DstRow(dst, n, c, h);
      for (std::int64_t w = 0; w < dst_.shape[3]; ++w) {
        row[w] = lambda * value_[c][a.first[w * a.step + c]] +
                 (1.0F - lambda) * value_[c][b.first[w * b.step + c]];
      }
    }
  }

  TensorDesc dst_;
  std::array<std::array<float, 256>, kChannels> value_{};
};

}  // namespace

std::unique_ptr<InputTransform> MakeCpuInputTransform(const Shape& images) {
  DDL_CHECK(images.rank() == 4 && images[1] == kChannels && images.elements() > 0);
  return std::make_unique<CpuInputTransform>(images);
}

}  // namespace trainer
