// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by cuBLASLt, for row-major matrices without gaps.

#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/backend/plan_cache.h"
#include "trainer/core/dtype.h"

namespace trainer {

// D = op(A) * op(B) [+ bias, to each row] [+ what D held].  D is rows x columns; op(A) is rows x
// inner, stored transposed (inner x rows) if transpose_a; op(B) is inner x columns, stored columns
// x inner if transpose_b.  Sums are fp32.  Rows of every stored matrix begin at multiples of 16
// bytes, so that tensor cores can always be used.
struct MatmulSpec {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  DType input = DType::kFloat32;   // of A and B
  DType output = DType::kFloat32;  // of D: kFloat32 or that of A and B
  bool bias = false;               // columns fp32 values; only with fp32 output
  bool adds = false;               // to what D holds
  bool tf32 = false;               // tensor cores for fp32
  bool deterministic = false;      // the algorithm is not chosen by timing

  bool operator==(const MatmulSpec&) const = default;
};

// "product 256x1000x2048 of F16 to F32".
std::string ToString(const MatmulSpec& spec);

// An algorithm as a plan of PlanCache, "cublaslt" and its words in hexadecimal.  None of a plan
// that is no such.  cuBLASLt may be given it again by another process, if it is of the same
// version.
std::string PlanOf(const cublasLtMatmulAlgo_t& algorithm);
std::optional<cublasLtMatmulAlgo_t> AlgorithmOf(const std::string& plan);

// A product on the current device.  Used from one thread at a time.
class Matmul {
 public:
  // Chooses the algorithm once for each spec, device and process: the one in `plans`, or by timing
  // a few.  Throws Error (EX_UNAVAILABLE), which names the spec, if there is none.
  Matmul(const MatmulSpec& spec, const DevicePlanCache& plans);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  std::size_t workspace_bytes() const;

  // Matrices, bias and workspace begin at multiples of 16 bytes.  `bias` is null unless spec.bias.
  void Run(const void* a, const void* b, const float* bias, void* d, void* workspace,
           cudaStream_t stream) const;

 private:
  struct Descriptors;
  std::unique_ptr<Descriptors> descriptors_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

}  // namespace trainer
