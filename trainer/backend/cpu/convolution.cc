// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/backend/cpu/onednn.h"
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

// Whether oneDNN has only its plain loops for this, a hundred times slower than its other kernels.
bool IsReference(const dnnl::primitive_desc_base& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("ref");
}

// One of the backward passes.  The activations keep their layouts, the filter has the one that the
// kernel wants.  Where oneDNN has no kernel for that (AVX2: a 3x3 filter's gradient on 2x2 values;
// AVX: all), everything is row-major, which its matrix products can read.
template <typename Primitive>
typename Primitive::primitive_desc ChooseBackward(
    const OneDnn& onednn, const ConvolutionSpec& spec,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const memory::dims strides{spec.stride, spec.stride};
  const memory::dims padding{spec.padding, spec.padding};
  const auto describe = [&](const memory::desc& src, const memory::desc& filter,
                            const memory::desc& dst) {
    return DescribeBackward<Primitive>(onednn.engine, forward, dnnl::algorithm::convolution_direct,
                                       src, filter, dst, strides, padding, padding);
  };
  auto desc = describe(forward.src_desc(), MemoryDesc(FilterShape(spec), kAny), forward.dst_desc());
  DDL_CHECK(desc);
  if (!IsReference(desc)) return desc;
  constexpr memory::format_tag kRowMajor = memory::format_tag::abcd;
  auto row_major =
      describe(MemoryDesc(spec.src.shape, kRowMajor), MemoryDesc(FilterShape(spec), kRowMajor),
               MemoryDesc(DstShape(spec), kRowMajor));
  return row_major && !IsReference(row_major) ? row_major : desc;
}

// The three primitives of one convolution; the forward pass chooses the layouts of src and filter.
struct ConvolutionPrimitives {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_data::primitive_desc backward_data;
  dnnl::convolution_backward_weights::primitive_desc backward_filter;

  ConvolutionPrimitives(const OneDnn& onednn, const ConvolutionSpec& spec) {
    forward = DescribeForward<dnnl::convolution_forward>(
        onednn.engine, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        MemoryDesc(spec.src.shape, kAny), MemoryDesc(FilterShape(spec), kAny),
        MemoryDesc(DstShape(spec), onednn.activations), memory::dims{spec.stride, spec.stride},
        memory::dims{spec.padding, spec.padding}, memory::dims{spec.padding, spec.padding});
    DDL_CHECK(forward);
    backward_data = ChooseBackward<dnnl::convolution_backward_data>(onednn, spec, forward);
    backward_filter = ChooseBackward<dnnl::convolution_backward_weights>(onednn, spec, forward);
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
  CpuConvolution(const OneDnn& onednn, const ConvolutionSpec& spec,
                 const ConvolutionPrimitives& primitives)
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
        forward_src_(onednn, ToMemoryDesc(spec.src), primitives.forward.src_desc()),
        backward_data_diff_dst_(onednn, ToMemoryDesc(dst_),
                                primitives.backward_data.diff_dst_desc()),
        backward_data_filter_(onednn, primitives.forward.weights_desc(),
                              primitives.backward_data.weights_desc()),
        backward_data_diff_src_(onednn, primitives.backward_data.diff_src_desc(),
                                ToMemoryDesc(spec.src)),
        backward_filter_src_(onednn, ToMemoryDesc(spec.src), primitives.backward_filter.src_desc()),
        backward_filter_diff_dst_(onednn, ToMemoryDesc(dst_),
                                  primitives.backward_filter.diff_dst_desc()),
        backward_filter_diff_filter_(onednn, primitives.backward_filter.diff_weights_desc(),
                                     primitives.forward.weights_desc()) {
    scratchpad_bytes_ = std::max({forward_.scratchpad_bytes(), backward_data_.scratchpad_bytes(),
                                  backward_filter_.scratchpad_bytes()});
    for (const LayoutChange* change :
         {&forward_src_, &backward_data_diff_dst_, &backward_data_filter_, &backward_data_diff_src_,
          &backward_filter_src_, &backward_filter_diff_dst_, &backward_filter_diff_filter_}) {
      scratchpad_bytes_ = std::max(scratchpad_bytes_, change->scratchpad_bytes());
    }
    scratchpad_bytes_ = AlignedBytes(scratchpad_bytes_);
    src_copy_bytes_ = std::max({forward_src_.copy_bytes(), backward_data_diff_src_.copy_bytes(),
                                backward_filter_src_.copy_bytes()});
    filter_copy_bytes_ =
        std::max(backward_data_filter_.copy_bytes(), backward_filter_diff_filter_.copy_bytes());
    dst_copy_bytes_ =
        std::max(backward_data_diff_dst_.copy_bytes(), backward_filter_diff_dst_.copy_bytes());
    if (spec.adds_diff_src) addend_bytes_ = AlignedBytes(spec.src.bytes);
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    return scratchpad_bytes_ + src_copy_bytes_ + filter_copy_bytes_ + dst_copy_bytes_ +
           addend_bytes_;
  }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& /*stream*/) override {
    const void* src_data = forward_src_.Read(src.data, SrcCopy(workspace), workspace);
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
    const void* src_data = backward_filter_src_.Read(src.data, SrcCopy(workspace), workspace);
    const void* diff_dst_data =
        backward_filter_diff_dst_.Read(diff_dst.data, DstCopy(workspace), workspace);
    void* filter_copy = FilterCopy(workspace);
    backward_filter_.Run({{DNNL_ARG_SRC, src_data},
                          {DNNL_ARG_DIFF_DST, diff_dst_data},
                          {DNNL_ARG_DIFF_WEIGHTS,
                           backward_filter_diff_filter_.Target(diff_filter.data, filter_copy)}},
                         workspace);
    backward_filter_diff_filter_.Write(filter_copy, diff_filter.data, workspace);
  }

 private:
  void OverwriteDiffSrc(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                        void* workspace) {
    const void* filter_data =
        backward_data_filter_.Read(filter.data, FilterCopy(workspace), workspace);
    const void* diff_dst_data =
        backward_data_diff_dst_.Read(diff_dst.data, DstCopy(workspace), workspace);
    void* src_copy = SrcCopy(workspace);
    backward_data_.Run(
        {{DNNL_ARG_DIFF_DST, diff_dst_data},
         {DNNL_ARG_WEIGHTS, filter_data},
         {DNNL_ARG_DIFF_SRC, backward_data_diff_src_.Target(diff_src.data, src_copy)}},
        workspace);
    backward_data_diff_src_.Write(src_copy, diff_src.data, workspace);
  }

  // The workspace: the scratchpad of whatever runs, a copy of src, one of the filter, one of dst,
  // what is to be added.
  void* SrcCopy(void* workspace) const {
    return static_cast<std::byte*>(workspace) + scratchpad_bytes_;
  }
  void* FilterCopy(void* workspace) const {
    return static_cast<std::byte*>(workspace) + scratchpad_bytes_ + src_copy_bytes_;
  }
  void* DstCopy(void* workspace) const {
    return static_cast<std::byte*>(FilterCopy(workspace)) + filter_copy_bytes_;
  }
  void* Addend(void* workspace) const {
    return static_cast<std::byte*>(DstCopy(workspace)) + dst_copy_bytes_;
  }

  TensorDesc filter_;
  TensorDesc dst_;
  Call forward_;
  Call backward_data_;
  Call backward_filter_;
  // Of what a primitive reads or writes, where its layout is another than the tensor's.
  LayoutChange forward_src_;
  LayoutChange backward_data_diff_dst_;
  LayoutChange backward_data_filter_;
  LayoutChange backward_data_diff_src_;
  LayoutChange backward_filter_src_;
  LayoutChange backward_filter_diff_dst_;
  LayoutChange backward_filter_diff_filter_;
  std::size_t scratchpad_bytes_ = 0;
  std::size_t src_copy_bytes_ = 0;
  std::size_t filter_copy_bytes_ = 0;
  std::size_t dst_copy_bytes_ = 0;
  std::size_t addend_bytes_ = 0;  // 0: BackwardData overwrites
};

}  // namespace

std::unique_ptr<Convolution> MakeCpuConvolution(const OneDnn& onednn, const ConvolutionSpec& spec) {
  DDL_CHECK(spec.src.shape.rank() == 4 && spec.src.shape.elements() > 0);
  DDL_CHECK(spec.out_channels > 0 && spec.kernel > 0 && spec.stride > 0 && spec.padding >= 0);
  return std::make_unique<CpuConvolution>(onednn, spec, ConvolutionPrimitives(onednn, spec));
}

}  // namespace trainer
