// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/linear.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/libraries/cublaslt.h"
#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::size_t AlignedBytes(std::int64_t elements, DType dtype) {
  constexpr std::size_t kAlignment = 256;
  return (static_cast<std::size_t>(elements) * SizeOf(dtype) + kAlignment - 1) / kAlignment *
         kAlignment;
}

// A dense matrix whose rows tensor cores cannot read: its copy in the workspace has rows and
// columns added, zeros all.  No copy is needed when nothing is added.
class PaddedMatrix {
 public:
  PaddedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t padded_rows,
               std::int64_t padded_columns, DType dtype)
      : rows_(static_cast<std::size_t>(rows)),
        row_bytes_(static_cast<std::size_t>(columns) * SizeOf(dtype)),
        padded_rows_(static_cast<std::size_t>(padded_rows)),
        padded_row_bytes_(static_cast<std::size_t>(padded_columns) * SizeOf(dtype)) {}

  bool dense() const { return rows_ == padded_rows_ && row_bytes_ == padded_row_bytes_; }

  // What to read: `dense`, or its copy.
  const void* In(const void* dense_data, void* copy, cudaStream_t stream) const {
    if (dense()) return dense_data;
    CheckCuda(cudaMemsetAsync(copy, 0, padded_rows_ * padded_row_bytes_, stream),
              "padding a matrix");
    CheckCuda(cudaMemcpy2DAsync(copy, padded_row_bytes_, dense_data, row_bytes_, row_bytes_, rows_,
                                cudaMemcpyDeviceToDevice, stream),
              "padding a matrix");
    return copy;
  }
  // Where to write; then Out brings it to `dense`.
  void* Target(void* dense_data, void* copy) const { return dense() ? dense_data : copy; }
  void Out(const void* copy, void* dense_data, cudaStream_t stream) const {
    if (dense()) return;
    CheckCuda(cudaMemcpy2DAsync(dense_data, row_bytes_, copy, padded_row_bytes_, row_bytes_, rows_,
                                cudaMemcpyDeviceToDevice, stream),
              "copying a padded matrix");
  }

 private:
  std::size_t rows_, row_bytes_, padded_rows_, padded_row_bytes_;
};

class CublasLinear final : public Linear {
 public:
  CublasLinear(const LinearSpec& spec, bool tf32, bool deterministic, const DevicePlanCache& plans)
      : dtype_(spec.src.dtype),
        rows_(spec.src.shape[0]),
        outputs_(spec.out_features),
        padded_inputs_(PaddedChannels(spec.src.shape[1])),
        padded_outputs_(PaddedChannels(spec.out_features)),
        weight_(RowMajor({outputs_, spec.src.shape[1]}, dtype_)),
        dst_(RowMajor({rows_, outputs_}, DType::kFloat32)),
        src_matrix_(rows_, spec.src.shape[1], rows_, padded_inputs_, dtype_),
        weight_matrix_(outputs_, spec.src.shape[1], padded_outputs_, padded_inputs_, dtype_),
        bias_matrix_(1, outputs_, 1, padded_outputs_, DType::kFloat32),
        dst_matrix_(rows_, outputs_, rows_, padded_outputs_, DType::kFloat32),
        forward_({.rows = rows_,
                  .columns = padded_outputs_,
                  .inner = padded_inputs_,
                  .transpose_b = true,
                  .input = dtype_,
                  .output = DType::kFloat32,
                  .bias = true,
                  .tf32 = tf32,
                  .deterministic = deterministic},
                 plans),
        backward_data_({.rows = rows_,
                        .columns = padded_inputs_,
                        .inner = padded_outputs_,
                        .input = dtype_,
                        .output = dtype_,
                        .tf32 = tf32,
                        .deterministic = deterministic},
                       plans),
        backward_weight_({.rows = padded_outputs_,
                          .columns = padded_inputs_,
                          .inner = rows_,
                          .transpose_a = true,
                          .input = dtype_,
                          .output = dtype_,
                          .tf32 = tf32,
                          .deterministic = deterministic},
                         plans) {
    const std::size_t gemm_bytes =
        std::max({forward_.workspace_bytes(), backward_data_.workspace_bytes(),
                  backward_weight_.workspace_bytes()});
    src_at_ = AlignedBytes(static_cast<std::int64_t>(gemm_bytes), DType::kUint8);
    weight_at_ = src_at_ + BytesUnlessDense(src_matrix_, rows_ * padded_inputs_, dtype_);
    bias_at_ =
        weight_at_ + BytesUnlessDense(weight_matrix_, padded_outputs_ * padded_inputs_, dtype_);
    dst_at_ = bias_at_ + BytesUnlessDense(bias_matrix_, padded_outputs_, DType::kFloat32);
    rounded_at_ = dst_at_ + BytesUnlessDense(dst_matrix_, rows_ * padded_outputs_, DType::kFloat32);
    workspace_bytes_ = rounded_at_;
    if (dtype_ != DType::kFloat32)
      workspace_bytes_ += AlignedBytes(rows_ * padded_outputs_, dtype_);
  }

  const TensorDesc& weight() const override { return weight_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
               void* workspace, Stream& stream) override {
    const cudaStream_t queue = HandleOf(stream);
    std::byte* const scratch = static_cast<std::byte*>(workspace);
    const void* const a = src_matrix_.In(src.data, scratch + src_at_, queue);
    const void* const b = weight_matrix_.In(weight.data, scratch + weight_at_, queue);
    const void* const c = bias_matrix_.In(bias.data, scratch + bias_at_, queue);
    forward_.Run(a, b, static_cast<const float*>(c),
                 dst_matrix_.Target(dst.data, scratch + dst_at_), workspace, queue);
    dst_matrix_.Out(scratch + dst_at_, dst.data, queue);
  }

  void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                void* workspace, Stream& stream) override {
    const cudaStream_t queue = HandleOf(stream);
    std::byte* const scratch = static_cast<std::byte*>(workspace);
    SumRows(diff_dst.As<const float>(), diff_bias.As<float>(), rows_, outputs_, queue);
    const void* const diff = RoundedDiff(diff_dst, scratch, queue);

    // The copies of src and weight are read first and hold the gradients then.
    const void* const b = weight_matrix_.In(weight.data, scratch + weight_at_, queue);
    backward_data_.Run(diff, b, nullptr, src_matrix_.Target(diff_src.data, scratch + src_at_),
                       workspace, queue);
    src_matrix_.Out(scratch + src_at_, diff_src.data, queue);

    const void* const a = src_matrix_.In(src.data, scratch + src_at_, queue);
    backward_weight_.Run(diff, a, nullptr,
                         weight_matrix_.Target(diff_weight.data, scratch + weight_at_), workspace,
                         queue);
    weight_matrix_.Out(scratch + weight_at_, diff_weight.data, queue);
  }

 private:
  static std::size_t BytesUnlessDense(const PaddedMatrix& matrix, std::int64_t padded_elements,
                                      DType dtype) {
    return matrix.dense() ? 0 : AlignedBytes(padded_elements, dtype);
  }

  // diff_dst with padded rows in the type of src and weight: both factors of a product have one.
  const void* RoundedDiff(const Tensor& diff_dst, std::byte* scratch, cudaStream_t queue) const {
    const void* const diff = dst_matrix_.In(diff_dst.data, scratch + dst_at_, queue);
    if (dtype_ == DType::kFloat32) return diff;
    void* const rounded = scratch + rounded_at_;
    ConvertFromFloat(static_cast<const float*>(diff), rounded, dtype_, rows_ * padded_outputs_,
                     queue);
    return rounded;
  }

  DType dtype_;
  std::int64_t rows_, outputs_, padded_inputs_, padded_outputs_;
  TensorDesc weight_, dst_;
  PaddedMatrix src_matrix_, weight_matrix_, bias_matrix_, dst_matrix_;
  Matmul forward_, backward_data_, backward_weight_;
  // Where the copies are in the workspace; what cuBLASLt needs is at its beginning.
  std::size_t src_at_ = 0, weight_at_ = 0, bias_at_ = 0, dst_at_ = 0, rounded_at_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Linear> MakeCublasLinear(const LinearSpec& spec, bool tf32, bool deterministic,
                                         const DevicePlanCache& plans) {
  DDL_CHECK(spec.src.shape.rank() == 2 && spec.src.layout == Layout::kRowMajor);
  DDL_CHECK(spec.src.shape.elements() > 0 && spec.out_features > 0);
  return std::make_unique<CublasLinear>(spec, tf32, deterministic, plans);
}

}  // namespace trainer
