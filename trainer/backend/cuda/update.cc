// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <limits>

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/update_kernels.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::vector<UpdateChunk> CutIntoChunks(const std::vector<ParameterSegment>& segments) {
  DDL_CHECK(segments.size() <= std::numeric_limits<std::uint16_t>::max());
  std::vector<UpdateChunk> chunks;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const ParameterSegment& segment = segments[s];
    for (std::size_t done = 0; done < segment.count; done += kUpdateChunk) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::size_t>(kUpdateChunk, segment.count - done));
      const std::uint16_t decay = segment.decay ? 1 : 0;
      chunks.push_back({segment.begin + done, count, decay, static_cast<std::uint16_t>(s)});
    }
  }
  return chunks;
}

// The first chunk of each segment, and how many there are.
std::vector<std::uint32_t> FirstChunks(const std::vector<ParameterSegment>& segments) {
  std::vector<std::uint32_t> first = {0};
  for (const ParameterSegment& segment : segments) {
    const std::size_t chunks = (segment.count + kUpdateChunk - 1) / kUpdateChunk;
    first.push_back(first.back() + static_cast<std::uint32_t>(chunks));
  }
  return first;
}

template <typename T>
Buffer Upload(Backend& backend, const std::vector<T>& values) {
  Buffer buffer = backend.AllocateDevice(values.size() * sizeof(T));
  const auto stream = backend.MakeStream();
  backend.CopyToDevice(buffer.data(), values.data(), buffer.bytes(), *stream);
  stream->Synchronize();
  return buffer;
}

// What both optimizers give their kernels.
class CudaOptimizer : public Optimizer {
 public:
  CudaOptimizer(Backend& backend, const std::vector<ParameterSegment>& segments, DType compute_type)
      : compute_type_(compute_type) {
    const std::vector<UpdateChunk> chunks = CutIntoChunks(segments);
    chunk_count_ = static_cast<int>(chunks.size());
    chunks_ = Upload(backend, chunks);
  }

  void Step(const UpdateParameters* call, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& stream) override {
    DDL_CHECK(gradients.compute == nullptr || gradients.compute_from % kUpdateAlignment == 0);
    UpdateKernelCall full;
    full.chunks = reinterpret_cast<const UpdateChunk*>(chunks_.data());
    full.chunk_count = chunk_count_;
    full.parameters = call;
    full.weight = weight;
    full.momentum = momentum;
    full.gradients = gradients;
    full.compute_copy = compute_copy;
    full.compute_type = compute_type_;
    Run(full, sums, HandleOf(stream));
  }

 protected:
  std::size_t chunk_count() const { return static_cast<std::size_t>(chunk_count_); }

 private:
  virtual void Run(const UpdateKernelCall& call, UpdateSums* sums, CUstream_st* stream) = 0;

  const DType compute_type_;
  int chunk_count_ = 0;
  Buffer chunks_;
};

class CudaSgd final : public CudaOptimizer {
 public:
  CudaSgd(Backend& backend, const std::vector<ParameterSegment>& segments, DType compute_type)
      : CudaOptimizer(backend, segments, compute_type),
        of_blocks_(backend.AllocateDevice(kUpdateBlocks * sizeof(UpdateSums))) {}

 private:
  void Run(const UpdateKernelCall& call, UpdateSums* sums, CUstream_st* stream) override {
    RunSgd(call, reinterpret_cast<UpdateSums*>(of_blocks_.data()), sums, stream);
  }

  Buffer of_blocks_;
};

class CudaLars final : public CudaOptimizer {
 public:
  CudaLars(Backend& backend, const std::vector<ParameterSegment>& tensors, DType compute_type)
      : CudaOptimizer(backend, tensors, compute_type),
        first_chunks_(Upload(backend, FirstChunks(tensors))),
        of_chunks_(backend.AllocateDevice(chunk_count() * sizeof(UpdateSums))),
        of_tensors_(backend.AllocateDevice(tensors.size() * sizeof(UpdateSums))),
        ratios_(backend.AllocateDevice(tensors.size() * sizeof(float))) {
    memory_.first_chunks = reinterpret_cast<const std::uint32_t*>(first_chunks_.data());
    memory_.tensor_count = static_cast<int>(tensors.size());
    memory_.of_chunks = reinterpret_cast<UpdateSums*>(of_chunks_.data());
    memory_.of_tensors = reinterpret_cast<UpdateSums*>(of_tensors_.data());
    memory_.ratios = reinterpret_cast<float*>(ratios_.data());
  }

 private:
  void Run(const UpdateKernelCall& call, UpdateSums* sums, CUstream_st* stream) override {
    RunLars(call, memory_, sums, stream);
  }

  Buffer first_chunks_;
  Buffer of_chunks_;
  Buffer of_tensors_;
  Buffer ratios_;
  LarsMemory memory_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeCudaOptimizer(OptimizerKind kind, Backend& backend,
                                             std::vector<ParameterSegment> segments,
                                             DType compute_type) {
  if (kind == OptimizerKind::kLars) {
    return std::make_unique<CudaLars>(backend, segments, compute_type);
  }
  return std::make_unique<CudaSgd>(backend, segments, compute_type);
}

}  // namespace trainer
