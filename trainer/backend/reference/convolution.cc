// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

using Index = std::int64_t;

// Every method is the one formula of ops.h, solved for its own output. Rows are walked by pointers:
// most of the tests' time is here.
class ReferenceConvolution final : public Convolution {
 public:
  explicit ReferenceConvolution(const ConvolutionSpec& spec) : spec_(spec) {
    CheckRowMajor(spec.src, 4);
    DDL_CHECK(spec.out_channels > 0 && spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
    const Shape& src = spec.src.shape;
    DDL_CHECK(src[2] + 2 * spec.padding >= spec.kernel && src[3] + 2 * spec.padding >= spec.kernel);
    const Index height = (src[2] + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    const Index width = (src[3] + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    filter_ = RowMajor({spec.out_channels, src[1], spec.kernel, spec.kernel}, DType::kFloat32);
    dst_ = RowMajor({src[0], spec.out_channels, height, width}, DType::kFloat32);
    images_ = src[0];
    channels_ = src[1];
    src_height_ = src[2];
    src_width_ = src[3];
    dst_height_ = height;
    dst_width_ = width;
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return 0; }

  void Forward(const Tensor& src_tensor, const Tensor& filter_tensor, const Tensor& dst_tensor,
               void* /*workspace*/, Stream& /*stream*/) override {
    const TensorView src(src_tensor);
    const TensorView filter(filter_tensor);
    const TensorView dst(dst_tensor);
    const Index stride = spec_.stride;
    std::vector<double> sums(static_cast<std::size_t>(dst_width_));  // of a row of dst
    for (Index n = 0; n < images_; ++n) {
      for (Index k = 0; k < spec_.out_channels; ++k) {
        for (Index p = 0; p < dst_height_; ++p) {
          std::ranges::fill(sums, 0.0);
          double* const sum = sums.data();
          for (Index c = 0; c < channels_; ++c) {
            for (Index r = 0; r < spec_.kernel; ++r) {
              const Index h = p * stride - spec_.padding + r;
              if (h < 0 || h >= src_height_) continue;
              const float* const src_row = &src(n, c, h, 0);
              for (Index s = 0; s < spec_.kernel; ++s) {
                const double weight = filter(k, c, r, s);
                const Index shift = s - spec_.padding;
                const auto [begin, end] = ColumnsInside(s);
                for (Index q = begin; q < end; ++q) sum[q] += src_row[q * stride + shift] * weight;
              }
            }
          }
          for (Index q = 0; q < dst_width_; ++q) dst(n, k, p, q) = static_cast<float>(sum[q]);
        }
      }
    }
  }

  void BackwardData(const Tensor& diff_dst_tensor, const Tensor& filter_tensor,
                    const Tensor& diff_src_tensor, void* /*workspace*/,
                    Stream& /*stream*/) override {
    const TensorView diff_dst(diff_dst_tensor);
    const TensorView filter(filter_tensor);
    const TensorView diff_src(diff_src_tensor);
    ForEach(spec_.src.shape, [&](Index n, Index c, Index h, Index w) {
      double sum = 0;
      for (Index r = 0; r < spec_.kernel; ++r) {
        for (Index s = 0; s < spec_.kernel; ++s) {
          const Index p = (h + spec_.padding - r) / spec_.stride;
          const Index q = (w + spec_.padding - s) / spec_.stride;
          const bool exact = p * spec_.stride - spec_.padding + r == h &&
                             q * spec_.stride - spec_.padding + s == w;
          if (!exact || !InDst(p, q)) continue;
          for (Index k = 0; k < spec_.out_channels; ++k) {
            sum += double{diff_dst(n, k, p, q)} * filter(k, c, r, s);
          }
        }
      }
      if (spec_.adds_diff_src) sum += diff_src(n, c, h, w);
      diff_src(n, c, h, w) = static_cast<float>(sum);
    });
  }

  void BackwardFilter(const Tensor& src_tensor, const Tensor& diff_dst_tensor,
                      const Tensor& diff_filter_tensor, void* /*workspace*/,
                      Stream& /*stream*/) override {
    const TensorView src(src_tensor);
    const TensorView diff_dst(diff_dst_tensor);
    const TensorView diff_filter(diff_filter_tensor);
    const Index stride = spec_.stride;
    ForEach(filter_.shape, [&](Index k, Index c, Index r, Index s) {
      const Index shift = s - spec_.padding;
      const auto [begin, end] = ColumnsInside(s);
      double sum = 0;
      for (Index n = 0; n < images_; ++n) {
        for (Index p = 0; p < dst_height_; ++p) {
          const Index h = p * stride - spec_.padding + r;
          if (h < 0 || h >= src_height_) continue;
          const float* const src_row = &src(n, c, h, 0);
          const float* const diff_row = &diff_dst(n, k, p, 0);
          for (Index q = begin; q < end; ++q) {
            sum += double{src_row[q * stride + shift]} * diff_row[q];
          }
        }
      }
      diff_filter(k, c, r, s) = static_cast<float>(sum);
    });
  }

 private:
  // Which columns q of dst have column s of their window inside src, 0 <= q * stride - padding + s
  // < width: the first, and the one after the last.
  std::pair<Index, Index> ColumnsInside(Index s) const {
    const Index min = spec_.padding - s;
    const Index max = min + src_width_ - 1;
    const Index begin = min > 0 ? (min + spec_.stride - 1) / spec_.stride : 0;
    return {begin, max < 0 ? begin : std::min(dst_width_, max / spec_.stride + 1)};
  }
  bool InDst(Index p, Index q) const {
    return p >= 0 && p < dst_height_ && q >= 0 && q < dst_width_;
  }

  ConvolutionSpec spec_;
  TensorDesc filter_;
  TensorDesc dst_;
  // Of the inner loops: to ask a shape each time would take most of their time.
  Index images_;
  Index channels_;
  Index src_height_;
  Index src_width_;
  Index dst_height_;
  Index dst_width_;
};

}  // namespace

std::unique_ptr<Convolution> MakeReferenceConvolution(const ConvolutionSpec& spec) {
  return std::make_unique<ReferenceConvolution>(spec);
}

}  // namespace trainer
