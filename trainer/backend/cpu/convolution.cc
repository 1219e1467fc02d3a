// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/backend/cpu/primitives.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using dnnl::memory;

Shape FilterShape(const ConvolutionSpec& spec) {
  return {spec.out_channels, spec.src.shape[1], spec.kernel, spec.kernel};
}

Shape DstShape(const ConvolutionSpec& spec) {
  const auto extent = [&spec](std::int64_t src) {
    DDL_CHECK(src + 2 * spec.padding >= spec.kernel);
    return (src + 2 * spec.padding - spec.kernel) / spec.stride + 1;
  };
  return {spec.src.shape[0], spec.out_channels, extent(spec.src.shape[2]),
          extent(spec.src.shape[3])};
}

// The three primitives of one convolution.  The forward pass chooses the layouts of src and filter;
// the backward passes keep the activations in them and choose only how they want the filter.
struct Primitives {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backward_data;
  dnnl::convolution_backward_weights::primitive_desc backward_filter;

  Primitives(const OneDnn& onednn, const ConvolutionSpec& spec) {
    constexpr dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
    const memory::dims strides{spec.stride, spec.stride};
    const memory::dims padding{spec.padding, spec.padding};
    const memory::desc filter = MemoryDesc(FilterShape(spec), kAny);
    const memory::desc dst = MemoryDesc(DstShape(spec), onednn.activations);
    forward = DescribeForward<dnnl::convolution_forward>(
        onednn.engine, dnnl::prop_kind::forward_training, algorithm,
        MemoryDesc(spec.src.shape, kAny), filter, dst, strides, padding, padding);
    DDL_CHECK(forward);
    const memory::desc src = forward.src_desc();
    backward_data = DescribeBackward<dnnl::convolution_backward_data>(
        onednn.engine, forward, algorithm, src, filter, dst, strides, padding, padding);
    backward_filter = DescribeBackward<dnnl::convolution_backward_weights>(
        onednn.engine, forward, algorithm, src, filter, dst, strides, padding, padding);
    DDL_CHECK(backward_data && backward_filter);
  }
};

// dst += src; padding too: zeros to zeros.
void Add(const Tensor& src, const Tensor& dst) {
  constexpr std::size_t kPiece = 16384;
  const detail::Loops& loops = detail::BestLoops();
  const std::size_t count = dst.desc.bytes / sizeof(float);
#pragma omp parallel for schedule(static)
  for (std::size_t at = 0; at < count; at += kPiece) {
    loops.add(src.As<float>() + at, dst.As<float>() + at, std::min(kPiece, count - at));
  }
}

class CpuConvolution final : public Convolution {
 public:
  CpuConvolution(const OneDnn& onednn, const ConvolutionSpec& spec, const Primitives& primitives)
      : filter_(ToTensorDesc(FilterShape(spec), primitives.forward.weights_desc())),
        dst_(ToTensorDesc(DstShape(spec), primitives.forward.dst_desc())),
        forward_(Call::Make<dnnl::convolution_forward>(
            onednn, primitives.forward, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST})),
        backward_data_(Call::Make<dnnl::convolution_backward_data>(
            onednn, primitives.backward_data,
            {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC})),
        backward_filter_(Call::Make<dnnl::convolution_backward_weights>(
            onednn, primitives.backward_filter,
            {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS})),
        src_change_(onednn, ToMemoryDesc(spec.src), primitives.forward.src_desc()),
        diff_src_change_(onednn, primitives.forward.src_desc(), ToMemoryDesc(spec.src)),
        filter_change_(onednn, primitives.forward.weights_desc(),
                       primitives.backward_data.weights_desc()),
        diff_filter_change_(onednn, primitives.backward_filter.diff_weights_desc(),
                            primitives.forward.weights_desc()) {
    scratchpad_bytes_ = AlignedBytes(
        std::max({forward_.scratchpad_bytes(), backward_data_.scratchpad_bytes(),
                  backward_filter_.scratchpad_bytes(), src_change_.scratchpad_bytes(),
                  diff_src_change_.scratchpad_bytes(), filter_change_.scratchpad_bytes(),
                  diff_filter_change_.scratchpad_bytes()}));
    src_copy_bytes_ = std::max(src_change_.copy_bytes(), diff_src_change_.copy_bytes());
    filter_copy_bytes_ = std::max(filter_change_.copy_bytes(), diff_filter_change_.copy_bytes());
    if (spec.adds_diff_src) addend_bytes_ = AlignedBytes(spec.src.bytes);
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    return scratchpad_bytes_ + src_copy_bytes_ + filter_copy_bytes_ + addend_bytes_;
  }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& /*stream*/) override {
    const void* src_data = src_change_.Read(src.data, SrcCopy(workspace), workspace);
    forward_.Run(
        {{DNNL_ARG_SRC, src_data}, {DNNL_ARG_WEIGHTS, filter.data}, {DNNL_ARG_DST, dst.data}},
        workspace);
  }

  // oneDNN's backward pass cannot add: the sum is taken afterwards.
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& /*stream*/) override {
    if (addend_bytes_ == 0) return OverwriteDiffSrc(diff_dst, filter, diff_src, workspace);
    const Tensor addend{diff_src.desc, Addend(workspace)};
    OverwriteDiffSrc(diff_dst, filter, addend, workspace);
    Add(addend, diff_src);
  }

  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& /*stream*/) override {
    const void* src_data = src_change_.Read(src.data, SrcCopy(workspace), workspace);
    backward_filter_.Run({{DNNL_ARG_SRC, src_data},
                          {DNNL_ARG_DIFF_DST, diff_dst.data},
                          {DNNL_ARG_DIFF_WEIGHTS,
                           diff_filter_change_.Target(diff_filter.data, FilterCopy(workspace))}},
                         workspace);
    diff_filter_change_.Write(FilterCopy(workspace), diff_filter.data, workspace);
  }

 private:
  void OverwriteDiffSrc(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                        void* workspace) {
    const void* filter_data = filter_change_.Read(filter.data, FilterCopy(workspace), workspace);
    backward_data_.Run(
        {{DNNL_ARG_DIFF_DST, diff_dst.data},
         {DNNL_ARG_WEIGHTS, filter_data},
         {DNNL_ARG_DIFF_SRC, diff_src_change_.Target(diff_src.data, SrcCopy(workspace))}},
        workspace);
    diff_src_change_.Write(SrcCopy(workspace), diff_src.data, workspace);
  }

  // The workspace: the scratchpad of whatever runs, a copy of src, a copy of the filter, what is to
  // be added.
  void* SrcCopy(void* workspace) const {
    return static_cast<std::byte*>(workspace) + scratchpad_bytes_;
  }
  void* FilterCopy(void* workspace) const {
    return static_cast<std::byte*>(workspace) + scratchpad_bytes_ + src_copy_bytes_;
  }
  void* Addend(void* workspace) const {
    return static_cast<std::byte*>(workspace) + workspace_bytes() - addend_bytes_;
  }

  TensorDesc filter_;
  TensorDesc dst_;
  Call forward_;
  Call backward_data_;
  Call backward_filter_;
  LayoutChange src_change_;
  LayoutChange diff_src_change_;
  LayoutChange filter_change_;
  LayoutChange diff_filter_change_;
  std::size_t scratchpad_bytes_ = 0;
  std::size_t src_copy_bytes_ = 0;
  std::size_t filter_copy_bytes_ = 0;
  std::size_t addend_bytes_ = 0;  // 0: BackwardData overwrites
};

}  // namespace

std::unique_ptr<Convolution> MakeCpuConvolution(const OneDnn& onednn, const ConvolutionSpec& spec) {
  DDL_CHECK(spec.src.shape.rank() == 4 && spec.src.shape.elements() > 0);
  DDL_CHECK(spec.out_channels > 0 && spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
  if (auto winograd = MakeCpuWinograd(onednn, spec)) return winograd;
  return std::make_unique<CpuConvolution>(onednn, spec, Primitives(onednn, spec));
}

}  // namespace trainer
