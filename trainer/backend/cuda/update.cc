// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/update_kernels.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::vector<UpdateChunk> CutIntoChunks(const std::vector<ParameterSegment>& segments) {
  std::vector<UpdateChunk> chunks;
  for (const ParameterSegment& segment : segments) {
    for (std::size_t done = 0; done < segment.count; done += kUpdateChunk) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::size_t>(kUpdateChunk, segment.count - done));
      chunks.push_back({segment.begin + done, count, segment.decay ? 1U : 0U});
    }
  }
  return chunks;
}

class CudaSgd final : public Sgd {
 public:
  CudaSgd(Backend& backend, const std::vector<ParameterSegment>& segments, DType compute_type)
      : compute_type_(compute_type),
        of_blocks_(backend.AllocateDevice(kUpdateBlocks * sizeof(UpdateSums))) {
    const std::vector<UpdateChunk> chunks = CutIntoChunks(segments);
    chunk_count_ = static_cast<int>(chunks.size());
    chunks_ = backend.AllocateDevice(chunks.size() * sizeof(UpdateChunk));
    const auto stream = backend.MakeStream();
    backend.CopyToDevice(chunks_.data(), chunks.data(), chunks_.bytes(), *stream);
    stream->Synchronize();
  }

  void Step(const SgdParameters* call, float* weight, float* momentum,
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
    RunUpdate(full, reinterpret_cast<UpdateSums*>(of_blocks_.data()), sums, HandleOf(stream));
  }

 private:
  const DType compute_type_;
  int chunk_count_ = 0;
  Buffer chunks_;
  Buffer of_blocks_;
};

}  // namespace

std::unique_ptr<Sgd> MakeCudaSgd(Backend& backend, std::vector<ParameterSegment> segments,
                                 DType compute_type) {
  return std::make_unique<CudaSgd>(backend, segments, compute_type);
}

}  // namespace trainer
