// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cublaslt.h"

#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// How many of the algorithms that cuBLASLt recommends are timed.
constexpr int kTimedAlgorithms = 8;
constexpr std::size_t kWorkspaceLimit = std::size_t{32} << 20;
constexpr std::uint32_t kAlignment = 16;

void CheckCublas(cublasStatus_t status, const std::string& action) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  CheckDevice("cuBLASLt: " + action);
  const std::string text = "cuBLASLt: " + action + ": " + cublasLtGetStatusString(status);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  const bool rejected =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_NOT_INITIALIZED;
  throw Error(rejected ? EX_UNAVAILABLE : EX_SOFTWARE, text);
}

cudaDataType_t CublasType(DType dtype) {
  DDL_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (dtype == DType::kFloat16) return CUDA_R_16F;
  return dtype == DType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

// A row-major matrix is a column-major one of the other shape.
class MatrixLayout {
 public:
  MatrixLayout(DType dtype, std::int64_t rows, std::int64_t columns) {
    CheckCublas(
        cublasLtMatrixLayoutCreate(&layout_, CublasType(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
        "describing a matrix");
  }
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Preference {
 public:
  Preference() { CheckCublas(cublasLtMatmulPreferenceCreate(&preference_), "a preference"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

  template <typename T>
  void Set(cublasLtMatmulPreferenceAttributes_t name, const T& value) {
    CheckCublas(cublasLtMatmulPreferenceSetAttribute(preference_, name, &value, sizeof value),
                "setting a preference");
  }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

int CurrentDevice() {
  int device = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  return device;
}

// One for each device and process; never destroyed: CUDA may end before static objects do.
// cuBLASLt lets threads share it.
cublasLtHandle_t HandleOfDevice(int device) {
  static std::mutex mutex;
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  const std::scoped_lock lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) CheckCublas(cublasLtCreate(&handle), "starting");
  return handle;
}

cublasComputeType_t ComputeType(const MatmulSpec& spec) {
  const bool tf32 = spec.tf32 && spec.input == DType::kFloat32;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

std::string ToString(const MatmulSpec& spec) {
  std::string text = "product " + std::to_string(spec.rows) + "x" + std::to_string(spec.columns) +
                     "x" + std::to_string(spec.inner) + " of " + std::string(NameOf(spec.input)) +
                     " to " + std::string(NameOf(spec.output));
  if (spec.transpose_a) text += ", A transposed";
  if (spec.transpose_b) text += ", B transposed";
  if (spec.bias) text += ", with bias";
  if (spec.adds) text += ", added to what is there";
  if (spec.tf32) text += ", TF32";
  return text;
}

std::string PlanOf(const cublasLtMatmulAlgo_t& algorithm) {
  std::string plan = "cublaslt";
  for (const std::uint64_t word : algorithm.data) {
    char digits[16];
    const auto end = std::to_chars(digits, std::end(digits), word, 16).ptr;
    plan.append(" ").append(digits, end);
  }
  return plan;
}

std::optional<cublasLtMatmulAlgo_t> AlgorithmOf(const std::string& plan) {
  cublasLtMatmulAlgo_t algorithm = {};
  std::string_view rest = plan;
  if (!rest.starts_with("cublaslt")) return std::nullopt;
  rest.remove_prefix(std::string_view("cublaslt").size());
  for (std::uint64_t& word : algorithm.data) {
    if (!rest.starts_with(' ')) return std::nullopt;
    const auto read = std::from_chars(rest.data() + 1, rest.data() + rest.size(), word, 16);
    if (read.ec != std::errc()) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
  }
  return rest.empty() ? std::optional(algorithm) : std::nullopt;
}

// What cuBLASLt is told.  It has column-major matrices only, which are the transposes of ours:
// transpose(D) = transpose(op(B)) * transpose(op(A)), so B goes first.
struct Matmul::Descriptors {
  cublasLtHandle_t handle;
  MatmulSpec spec;
  MatrixLayout b, a, d;
  cublasLtMatmulDesc_t operation = nullptr;

  explicit Descriptors(const MatmulSpec& of)
      : handle(HandleOfDevice(CurrentDevice())),
        spec(of),
        b(of.input, of.transpose_b ? of.columns : of.inner, of.transpose_b ? of.inner : of.columns),
        a(of.input, of.transpose_a ? of.inner : of.rows, of.transpose_a ? of.rows : of.inner),
        d(of.output, of.rows, of.columns) {
    CheckCublas(cublasLtMatmulDescCreate(&operation, ComputeType(of), CUDA_R_32F),
                "describing a product");
    Set(CUBLASLT_MATMUL_DESC_TRANSA, of.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, of.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (!of.bias) return;
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // Algorithms are chosen before there is a bias: any address that is aligned as it will be.
    SetBias(reinterpret_cast<const float*>(std::uintptr_t{kAlignment}));
  }
  ~Descriptors() { cublasLtMatmulDescDestroy(operation); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t name, const T& value) {
    CheckCublas(cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value),
                "describing a product");
  }

  void SetBias(const float* bias) {
    Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  }

  void Run(const cublasLtMatmulHeuristicResult_t& algorithm, const void* a_data, const void* b_data,
           const float* bias, void* d_data, void* workspace, cudaStream_t stream) {
    const float one = 1;
    const float of_d = spec.adds ? 1 : 0;
    if (spec.bias) SetBias(bias);
    CheckCublas(cublasLtMatmul(handle, operation, &one, b_data, b.get(), a_data, a.get(), &of_d,
                               d_data, d.get(), d_data, d.get(), &algorithm.algo, workspace,
                               algorithm.workspaceSize, stream),
                "running the " + ToString(spec));
  }

  std::vector<cublasLtMatmulHeuristicResult_t> Recommended() {
    Preference preference;
    preference.Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceLimit});
    // Parts of a sum are added in fp32, always in the same order.
    preference.Set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      preference.Set(name, kAlignment);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results(kTimedAlgorithms);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation, b.get(), a.get(), d.get(), d.get(),
                                       preference.get(), kTimedAlgorithms, results.data(), &count);
    // To have none to recommend is a status too.
    results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::erase_if(results,
                  [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    if (results.empty()) {
      throw Error(EX_UNAVAILABLE, "cuBLASLt has no algorithm on this GPU for the " +
                                      ToString(spec) + ": " + cublasLtGetStatusString(status));
    }
    return results;
  }

  // What `plans` has, if it can still be had; else the fastest, which they have then.
  cublasLtMatmulHeuristicResult_t Choose(const DevicePlanCache& plans) {
    if (spec.deterministic) return Recommended()[0];
    const std::string name = ToString(spec);
    const std::optional<std::string> kept = plans.Find(name);
    if (kept) {
      const auto again = Again(*kept);
      if (again) return *again;
    }
    const auto algorithms = Recommended();
    const auto& fastest = algorithms[Fastest(algorithms)];
    plans.Add(name, PlanOf(fastest.algo));
    return fastest;
  }

  std::optional<cublasLtMatmulHeuristicResult_t> Again(const std::string& plan) {
    const auto algorithm = AlgorithmOf(plan);
    if (!algorithm) return std::nullopt;
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, operation, b.get(), a.get(),
                                                          d.get(), d.get(), &*algorithm, &result);
    if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspaceLimit) {
      return std::nullopt;
    }
    result.algo = *algorithm;
    return result;
  }

  std::size_t Fastest(const std::vector<cublasLtMatmulHeuristicResult_t>& algorithms) {
    const auto bytes = [](std::int64_t rows, std::int64_t columns, DType dtype) {
      return static_cast<std::size_t>(rows * columns) * SizeOf(dtype);
    };
    const ScratchMemory a_data(bytes(spec.rows, spec.inner, spec.input));
    const ScratchMemory b_data(bytes(spec.inner, spec.columns, spec.input));
    const ScratchMemory d_data(bytes(spec.rows, spec.columns, spec.output));
    const ScratchMemory bias(bytes(1, spec.columns, DType::kFloat32));
    const ScratchMemory workspace(kWorkspaceLimit);
    return FastestOf(algorithms.size(), [&](std::size_t i, cudaStream_t stream) {
      Run(algorithms[i], a_data.data(), b_data.data(), static_cast<const float*>(bias.data()),
          d_data.data(), workspace.data(), stream);
    });
  }
};

Matmul::Matmul(const MatmulSpec& spec, const DevicePlanCache& plans) {
  DDL_CHECK(spec.rows > 0 && spec.columns > 0 && spec.inner > 0);
  DDL_CHECK(spec.output == DType::kFloat32 || (spec.output == spec.input && !spec.bias));
  descriptors_ = std::make_unique<Descriptors>(spec);
  struct Choice {
    int device;
    MatmulSpec spec;
    cublasLtMatmulHeuristicResult_t algorithm;
  };
  static std::mutex mutex;
  static std::vector<Choice> choices;
  const std::scoped_lock lock(mutex);
  const int device = CurrentDevice();
  for (const Choice& choice : choices) {
    if (choice.device != device || choice.spec != spec) continue;
    algorithm_ = choice.algorithm;
    return;
  }
  algorithm_ = descriptors_->Choose(plans);
  choices.push_back({device, spec, algorithm_});
}

Matmul::~Matmul() = default;

std::size_t Matmul::workspace_bytes() const { return algorithm_.workspaceSize; }

void Matmul::Run(const void* a, const void* b, const float* bias, void* d, void* workspace,
                 cudaStream_t stream) const {
  descriptors_->Run(algorithm_, a, b, bias, d, workspace, stream);
}

}  // namespace trainer
