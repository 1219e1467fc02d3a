// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/onednn.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using dnnl::memory;

// Weight and activations stay row-major: the layer is a thousandth of a network's work.
struct LinearPrimitives {
  dnnl::inner_product_forward::primitive_desc forward;
  dnnl::inner_product_backward_data::primitive_desc backward_data;
  dnnl::inner_product_backward_weights::primitive_desc backward_weight;

  LinearPrimitives(const dnnl::engine& engine, const LinearSpec& spec,
                   const TensorDesc& weight_desc, const TensorDesc& dst_desc) {
    const memory::desc src = ToMemoryDesc(spec.src);
    const memory::desc weight = ToMemoryDesc(weight_desc);
    const memory::desc bias = ToMemoryDesc(RowMajor({spec.out_features}, DType::kFloat32));
    const memory::desc dst = ToMemoryDesc(dst_desc);
    forward = DescribeForward<dnnl::inner_product_forward>(
        engine, dnnl::prop_kind::forward_training, src, weight, bias, dst);
    DDL_CHECK(forward);
    backward_data =
        DescribeBackward<dnnl::inner_product_backward_data>(engine, forward, src, weight, dst);
    backward_weight = DescribeBackward<dnnl::inner_product_backward_weights>(engine, forward, src,
                                                                             weight, bias, dst);
    DDL_CHECK(backward_data && backward_weight);
  }
};

class CpuLinear final : public Linear {
 public:
  CpuLinear(const OneDnn& onednn, const TensorDesc& weight, const TensorDesc& dst,
            const LinearPrimitives& primitives)
      : weight_(weight),
        dst_(dst),
        forward_(Call::Make<dnnl::inner_product_forward>(
            onednn, primitives.forward,
            {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST})),
        backward_data_(Call::Make<dnnl::inner_product_backward_data>(
            onednn, primitives.backward_data,
            {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC})),
        backward_weight_(Call::Make<dnnl::inner_product_backward_weights>(
            onednn, primitives.backward_weight,
            {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS})) {}

  const TensorDesc& weight() const override { return weight_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override {
    return std::max({forward_.scratchpad_bytes(), backward_data_.scratchpad_bytes(),
                     backward_weight_.scratchpad_bytes()});
  }

  void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
               void* workspace, Stream& /*stream*/) override {
    forward_.Run({{DNNL_ARG_SRC, src.data},
                  {DNNL_ARG_WEIGHTS, weight.data},
                  {DNNL_ARG_BIAS, bias.data},
                  {DNNL_ARG_DST, dst.data}},
                 workspace);
  }

  void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                void* workspace, Stream& /*stream*/) override {
    backward_weight_.Run({{DNNL_ARG_SRC, src.data},
                          {DNNL_ARG_DIFF_DST, diff_dst.data},
                          {DNNL_ARG_DIFF_WEIGHTS, diff_weight.data},
                          {DNNL_ARG_DIFF_BIAS, diff_bias.data}},
                         workspace);
    backward_data_.Run({{DNNL_ARG_DIFF_DST, diff_dst.data},
                        {DNNL_ARG_WEIGHTS, weight.data},
                        {DNNL_ARG_DIFF_SRC, diff_src.data}},
                       workspace);
  }

 private:
  TensorDesc weight_;
  TensorDesc dst_;
  Call forward_;
  Call backward_data_;
  Call backward_weight_;
};

}  // namespace

std::unique_ptr<Linear> MakeCpuLinear(const OneDnn& onednn, const LinearSpec& spec) {
  DDL_CHECK(spec.src.shape.rank() == 2 && spec.src.layout == Layout::kRowMajor);
  DDL_CHECK(spec.out_features > 0);
  const TensorDesc weight = RowMajor({spec.out_features, spec.src.shape[1]}, DType::kFloat32);
  const TensorDesc dst = RowMajor({spec.src.shape[0], spec.out_features}, DType::kFloat32);
  return std::make_unique<CpuLinear>(onednn, weight, dst,
                                     LinearPrimitives(onednn.engine, spec, weight, dst));
}

}  // namespace trainer
