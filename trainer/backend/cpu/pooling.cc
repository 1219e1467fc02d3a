// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/onednn.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using dnnl::memory;

Shape PooledShape(const MaxPoolSpec& spec) {
  const auto extent = [&spec](std::int64_t src) {
    DDL_CHECK(src + 2 * spec.padding >= spec.kernel);
    return (src + 2 * spec.padding - spec.kernel) / spec.stride + 1;
  };
  const Shape& src = spec.src.shape;
  return {src[0], src[1], extent(src[2]), extent(src[3])};
}

struct MaxPoolPrimitives {
  PoolingForward::primitive_desc forward;
  PoolingBackward::primitive_desc backward;

  MaxPoolPrimitives(const OneDnn& onednn, const MaxPoolSpec& spec) {
    const dnnl::engine& engine = onednn.engine;
    const memory::dims kernel{spec.kernel, spec.kernel};
    const memory::dims strides{spec.stride, spec.stride};
    const memory::dims padding{spec.padding, spec.padding};
    const memory::dims no_dilation{0, 0};
    const auto algorithm = dnnl::algorithm::pooling_max;
    const memory::desc src = ToMemoryDesc(spec.src);
    const memory::desc dst = MemoryDesc(PooledShape(spec), onednn.activations);
    forward =
        DescribeForward<PoolingForward>(engine, dnnl::prop_kind::forward_training, algorithm, src,
                                        dst, strides, kernel, no_dilation, padding, padding);
    DDL_CHECK(forward);
    backward = DescribeBackward<PoolingBackward>(engine, forward, algorithm, src, dst, strides,
                                                 kernel, no_dilation, padding, padding);
    DDL_CHECK(backward);
  }
};

// oneDNN's workspace holds the position of the winner in each window.
class CpuMaxPool final : public MaxPool {
 public:
  CpuMaxPool(const OneDnn& onednn, const MaxPoolSpec& spec, const MaxPoolPrimitives& primitives)
      : dst_(ToTensorDesc(PooledShape(spec), primitives.forward.dst_desc())),
        forward_(Call::Make<PoolingForward>(onednn, primitives.forward,
                                            {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE})),
        backward_(Call::Make<PoolingBackward>(
            onednn, primitives.backward,
            {DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE, DNNL_ARG_DIFF_SRC})),
        saved_bytes_(primitives.forward.workspace_desc().get_size()),
        scratchpad_(std::max(forward_.scratchpad_bytes(), backward_.scratchpad_bytes())) {}

  const TensorDesc& dst() const override { return dst_; }
  std::size_t saved_bytes() const override { return saved_bytes_; }

  void Forward(const Tensor& src, const Tensor& dst, void* saved, Stream& /*stream*/) override {
    forward_.Run({{DNNL_ARG_SRC, src.data}, {DNNL_ARG_DST, dst.data}, {DNNL_ARG_WORKSPACE, saved}},
                 scratchpad_.data());
  }

  void Backward(const Tensor& diff_dst, const void* saved, const Tensor& diff_src,
                Stream& /*stream*/) override {
    backward_.Run({{DNNL_ARG_DIFF_DST, diff_dst.data},
                   {DNNL_ARG_WORKSPACE, saved},
                   {DNNL_ARG_DIFF_SRC, diff_src.data}},
                  scratchpad_.data());
  }

 private:
  TensorDesc dst_;
  Call forward_;
  Call backward_;
  std::size_t saved_bytes_;
  std::vector<std::byte> scratchpad_;
};

class CpuGlobalAveragePool final : public GlobalAveragePool {
 public:
  explicit CpuGlobalAveragePool(const TensorDesc& src)
      : layout_(ChannelBlocksOf(src)),
        dst_(RowMajor({layout_.batch, layout_.channels}, DType::kFloat32)) {}

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const Tensor& src, const Tensor& dst, Stream& /*stream*/) override {
    const float scale = 1.0F / static_cast<float>(layout_.rows);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < layout_.batch; ++n) {
      for (std::int64_t b = 0; b < layout_.blocks; ++b) {
        const float* rows = src.As<float>() + layout_.offset(n, b);
        float* mean = dst.As<float>() + n * layout_.channels + b * layout_.block;
        const std::int64_t width = WidthOf(b);
        std::fill_n(mean, width, 0.0F);
        for (std::int64_t r = 0; r < layout_.rows; ++r) {
          for (std::int64_t c = 0; c < width; ++c) mean[c] += rows[r * layout_.block + c];
        }
        for (std::int64_t c = 0; c < width; ++c) mean[c] *= scale;
      }
    }
  }

  void Backward(const Tensor& diff_dst, const Tensor& diff_src, Stream& /*stream*/) override {
    const float scale = 1.0F / static_cast<float>(layout_.rows);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t n = 0; n < layout_.batch; ++n) {
      for (std::int64_t b = 0; b < layout_.blocks; ++b) {
        const float* mean = diff_dst.As<float>() + n * layout_.channels + b * layout_.block;
        float* rows = diff_src.As<float>() + layout_.offset(n, b);
        const std::int64_t width = WidthOf(b);
        for (std::int64_t r = 0; r < layout_.rows; ++r) {
          float* row = rows + r * layout_.block;
          for (std::int64_t c = 0; c < width; ++c) row[c] = mean[c] * scale;
          std::fill(row + width, row + layout_.block, 0.0F);
        }
      }
    }
  }

 private:
  // Channels of block b, padding not counted.
  std::int64_t WidthOf(std::int64_t b) const {
    return std::min(layout_.block, layout_.channels - b * layout_.block);
  }

  ChannelBlocks layout_;
  TensorDesc dst_;
};

}  // namespace

std::unique_ptr<MaxPool> MakeCpuMaxPool(const OneDnn& onednn, const MaxPoolSpec& spec) {
  DDL_CHECK(spec.src.shape.rank() == 4 && spec.src.shape.elements() > 0);
  DDL_CHECK(spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
  return std::make_unique<CpuMaxPool>(onednn, spec, MaxPoolPrimitives(onednn, spec));
}

std::unique_ptr<GlobalAveragePool> MakeCpuGlobalAveragePool(const TensorDesc& src) {
  return std::make_unique<CpuGlobalAveragePool>(src);
}

}  // namespace trainer
