// SPDX-License-Identifier: Apache-2.0

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/backend/cpu/cpu_backend.h"
#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/loops.h"
#include "trainer/backend/host_backend.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

int ChooseThreads(int wanted) {
  return wanted > 0 ? wanted : std::min(omp_get_max_threads(), omp_get_num_procs());
}

// OpenMP's runtime ends the process where a thread cannot be had, so that is tried first.  Its own
// are made at once and stay, before others take their place.
void StartThreads(int threads) {
  omp_set_num_threads(threads);
  if (threads == 1) return;
  TryThreads(std::to_string(threads) + " threads of the back end", threads - 1);
#pragma omp parallel num_threads(threads)
  {
#pragma omp barrier
  }
}

// The number of an instruction set holds the bits of those that it extends, so one that came later
// counts as the best known here.
std::string InstructionSet() {
  const auto best = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto extends = [best](dnnl::cpu_isa isa) {
    const auto bits = static_cast<unsigned>(isa);
    return (best & bits) == bits;
  };
  if (extends(dnnl::cpu_isa::avx512_core)) return "AVX-512";
  if (extends(dnnl::cpu_isa::avx2)) return "AVX2";
  if (extends(dnnl::cpu_isa::avx)) return "AVX";
  if (extends(dnnl::cpu_isa::sse41)) return "SSE4.1";
  return "generic code";
}

class CpuBackend final : public HostBackend {
 public:
  explicit CpuBackend(const BackendOptions& options) : threads_(ChooseThreads(options.threads)) {
    StartThreads(threads_);
  }

  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return "cpu: " + arithmetic() + ", " + std::to_string(threads_) +
           (threads_ == 1 ? " thread" : " threads");
  }
  // oneDNN can be told to leave out what the processor has; the loops beside it cannot.
  int threads() const override { return threads_; }
  std::string arithmetic() const override {
    const dnnl_version_t* version = dnnl_version();
    const std::string loops = detail::InstructionSetOfBestLoops();
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch) + ", " + InstructionSet() +
           (loops == InstructionSet() ? "" : " beside loops of " + loops) + ", fp32";
  }
  DType compute_type() const override { return DType::kFloat32; }

  // Fresh pages of the system are zero.  Large ones save a step 2 to 8 % of its time.
  Buffer AllocateDevice(std::size_t bytes) override {
    if (bytes == 0) return {};
    const std::size_t mapped = bytes + kHugePage;
    void* base = mapped < bytes ? MAP_FAILED
                                : mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      throw OutOfMemory("no memory: " + std::to_string(bytes) +
                        " bytes were asked for; use a smaller --batch_size");
    }
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    void* data = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
    madvise(data, bytes, MADV_HUGEPAGE);  // advice: without it the pages are just smaller
    return {data, bytes, [base, mapped](void*) { munmap(base, mapped); }};
  }

  // One piece for each thread: large ones go past the caches.
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& /*stream*/) override {
    const std::size_t piece = bytes / static_cast<std::size_t>(threads_) + 1;
#pragma omp parallel for schedule(static)
    for (int t = 0; t < threads_; ++t) {
      const std::size_t begin = std::min(bytes, static_cast<std::size_t>(t) * piece);
      const std::size_t end = std::min(bytes, begin + piece);
      if (begin == end) continue;
      std::memcpy(static_cast<std::byte*>(dst) + begin, static_cast<const std::byte*>(src) + begin,
                  end - begin);
    }
  }

  void Add(const void* src, DType type, float* dst, std::size_t count,
           Stream& /*stream*/) override {
    DDL_CHECK(type == DType::kFloat32);
    const auto* values = static_cast<const float*>(src);
    const auto& loops = detail::BestLoops();
    const std::size_t piece = count / static_cast<std::size_t>(threads_) + 1;
#pragma omp parallel for schedule(static)
    for (int t = 0; t < threads_; ++t) {
      const std::size_t begin = std::min(count, static_cast<std::size_t>(t) * piece);
      const std::size_t end = std::min(count, begin + piece);
      if (begin < end) loops.add(values + begin, dst + begin, end - begin);
    }
  }

  void Import(const float* src, const Tensor& dst, Stream& /*stream*/) override {
    const dnnl::memory::desc plain = ToMemoryDesc(RowMajor(dst.desc.shape, DType::kFloat32));
    Reorder(plain, src, ToMemoryDesc(dst.desc), dst.data);
  }
  void Export(const Tensor& src, float* dst, Stream& /*stream*/) override {
    const dnnl::memory::desc plain = ToMemoryDesc(RowMajor(src.desc.shape, DType::kFloat32));
    Reorder(ToMemoryDesc(src.desc), src.data, plain, dst);
  }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return MakeCpuInputTransform(images);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return MakeCpuConvolution(onednn_, spec);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return MakeCpuBatchNorm(spec);
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return MakeCpuMaxPool(onednn_, spec);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return MakeCpuGlobalAveragePool(src);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return MakeCpuLinear(onednn_, spec);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return MakeCpuSoftmaxCrossEntropy(spec);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    return MakeCpuOptimizer(kind, std::move(segments));
  }

 private:
  void Reorder(const dnnl::memory::desc& src_desc, const void* src,
               const dnnl::memory::desc& dst_desc, void* dst) {
    if (src_desc == dst_desc) {
      std::memcpy(dst, src, src_desc.get_size());
      return;
    }
    Call call = Call::Reorder(onednn_, src_desc, dst_desc);
    const Buffer scratchpad = AllocateHost(call.scratchpad_bytes());
    call.Run({{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}}, scratchpad.data());
  }

  int threads_;
  OneDnn onednn_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const BackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace trainer
