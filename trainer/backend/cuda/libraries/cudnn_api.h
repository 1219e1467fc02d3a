// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph API: its descriptors, the operations that graphs here are made of, and execution
// plans for them.

#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/core/dtype.h"

namespace trainer {

// Throws Error, "<action>: <cuDNN's text>", unless `status` is success: EX_OSERR when memory is
// short, EX_UNAVAILABLE for what cuDNN does not do on this device, EX_SOFTWARE for the rest.
void CheckCudnn(cudnnStatus_t status, const std::string& action);

cudnnDataType_t CudnnType(DType dtype);

// One descriptor of cuDNN's graph API, owned.  Everything of that API is a descriptor: it is
// created, given attributes and finalized; then it can be used and read.  cuDNN keeps what a
// finalized descriptor refers to alive.  Used from one thread at a time.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  // The attribute's C type must be the one that cuDNN documents for `type`.
  template <typename T>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    SetArray(name, type, 1, &value);
  }
  template <typename T>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const std::vector<T>& values) {
    SetArray(name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  void Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void Set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& values);

  // May fail for what is legal but not supported: the status says so.
  cudnnStatus_t TryFinalize();
  void Finalize();

  // REQUIRES: finalized.  At most `most` values; fewer if there are fewer.
  template <typename T>
  std::vector<T> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t max) const {
    std::vector<T> values(static_cast<std::size_t>(max));
    values.resize(static_cast<std::size_t>(GetArray(name, type, max, values.data())));
    return values;
  }
  // Descriptors are read into new ones of `type`.
  std::vector<CudnnDescriptor> GetDescriptors(cudnnBackendAttributeName_t name,
                                              cudnnBackendDescriptorType_t type) const;

 private:
  void SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                std::int64_t count, const void* values);
  // Returns how many were written.
  std::int64_t GetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t max, void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// Operations of such a graph, and what they read and write.  Computed in fp32.

enum class ConvolutionPass : std::uint8_t { kForward, kBackwardData, kBackwardFilter };

inline constexpr std::int64_t kTensorAlignment = 16;  // bytes

// (outer, channels, height, width), channels last in memory; `id` is its name in the graph.  A
// virtual one is never in memory.
struct TensorShape {
  std::int64_t outer = 1, channels = 1, height = 1, width = 1;
};
CudnnDescriptor MakeTensor(std::int64_t id, DType dtype, const TensorShape& shape,
                           bool is_virtual = false);

// src, filter, dst: tensors or their gradients, as the pass has it.  `adds`: to what is there.
struct ConvolutionTensors {
  const CudnnDescriptor& src;
  const CudnnDescriptor& filter;
  const CudnnDescriptor& dst;
};
CudnnDescriptor MakeConvolution(ConvolutionPass pass, std::int64_t stride, std::int64_t padding,
                                const ConvolutionTensors& tensors, bool adds = false);

// Of each channel of `src` the sum and the sum of squares.
CudnnDescriptor MakeGenStats(const CudnnDescriptor& src, const CudnnDescriptor& sum,
                             const CudnnDescriptor& squares);

// dst[i] = src[i] mode other[i].
CudnnDescriptor MakePointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& src,
                              const CudnnDescriptor& other, const CudnnDescriptor& dst);
CudnnDescriptor MakeRelu(const CudnnDescriptor& src, const CudnnDescriptor& dst);
// `src`: what the ReLU has read.
CudnnDescriptor MakeReluBackward(const CudnnDescriptor& src, const CudnnDescriptor& diff_dst,
                                 const CudnnDescriptor& diff_src);

// What a batch norm has read, and of each channel mean, 1 / deviation, scale and shift.
struct NormTensors {
  CudnnDescriptor src, mean, inverse, scale, shift;
};
// The gradients of its scale and shift, and three coefficients of that of src: kGradientSumArrays,
// of all channels each.
inline constexpr int kGradientSumArrays = 5;
CudnnDescriptor MakeBnBackwardWeights(
    const NormTensors& norm, const CudnnDescriptor& diff_dst,
    const std::array<CudnnDescriptor, kGradientSumArrays>& gradients);

// The device that plans are made for.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;           // a device that is here, or
  std::shared_ptr<CudnnDescriptor> device;  // one that is described, from cuDNN 9.8 on
};

// `handle` is null for a device that is described.
CudnnDescriptor MakeGraph(const std::vector<CudnnDescriptor>& operations, cudnnHandle_t handle);

// Configurations of engines that cuDNN recommends for a graph, in its order; none if it has no
// advice.
std::vector<CudnnDescriptor> RecommendedConfigs(const CudnnTarget& target,
                                                const CudnnDescriptor& graph,
                                                cudnnBackendHeurMode_t mode);
// None if the configuration does not fit the device, which cuDNN may recommend all the same.
std::optional<CudnnDescriptor> MakePlan(const CudnnTarget& target, const CudnnDescriptor& config);
std::size_t WorkspaceBytes(const CudnnDescriptor& plan);

// The tensors of a graph that are in memory: what it calls them, and where they are.
struct TensorPointers {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
};
// Queues the work on the handle's stream.
void Execute(cudnnHandle_t handle, const CudnnDescriptor& plan, const TensorPointers& tensors,
             void* workspace);

}  // namespace trainer
