// SPDX-License-Identifier: Apache-2.0
//
// One descriptor of cuDNN's graph API, owned.  Everything of that API is a descriptor: it is
// created, given attributes and finalized; then it can be used and read.  cuDNN keeps what a
// finalized descriptor refers to alive.  Used from one thread at a time.

#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/core/dtype.h"

namespace trainer {

// Throws Error, "<action>: <cuDNN's text>", unless `status` is success: EX_OSERR when memory is
// short, EX_UNAVAILABLE for what cuDNN does not do on this device, EX_SOFTWARE for the rest.
void CheckCudnn(cudnnStatus_t status, const std::string& action);

cudnnDataType_t CudnnType(DType dtype);

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

}  // namespace trainer
