// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/cudnn_descriptor.h"

#include <algorithm>
#include <utility>

#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

int ExitCodeOf(cudnnStatus_t status) {
  // From 9 on each kind of refusal has a number of its own.
  const bool rejected = status == CUDNN_STATUS_NOT_SUPPORTED ||
                        status == CUDNN_STATUS_NOT_INITIALIZED || (status >= 3000 && status < 4000);
  return rejected ? EX_UNAVAILABLE : EX_SOFTWARE;
}

// What cuDNN has to say about the last failure, in one line.
std::string LastText() {
#if CUDNN_VERSION >= 90000
  char text[512] = "";
  cudnnGetLastErrorString(text, sizeof text);
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.empty() ? "" : " (" + line + ")";
#else
  return "";
#endif
}

}  // namespace

void CheckCudnn(cudnnStatus_t status, const std::string& action) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  CheckDevice(action);
  const std::string text = action + ": " + cudnnGetErrorString(status) + LastText();
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw OutOfMemory(text);
  throw Error(ExitCodeOf(status), text);
}

cudnnDataType_t CudnnType(DType dtype) {
  DDL_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (dtype == DType::kFloat16) return CUDNN_DATA_HALF;
  return dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  CheckCudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "cuDNN: creating a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t handle = value.get();
  SetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                          const std::vector<CudnnDescriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& value : values) handles.push_back(value.get());
  Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles);
}

cudnnStatus_t CudnnDescriptor::TryFinalize() { return cudnnBackendFinalize(descriptor_); }

void CudnnDescriptor::Finalize() { CheckCudnn(TryFinalize(), "cuDNN: finalizing a descriptor"); }

std::vector<CudnnDescriptor> CudnnDescriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  const std::int64_t max = GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < max; ++i) handles.push_back(found.emplace_back(type).get());
  if (max == 0) return found;
  const std::int64_t count = GetArray(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max, handles.data());
  while (std::cmp_greater(found.size(), count)) found.pop_back();
  return found;
}

void CudnnDescriptor::SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               std::int64_t count, const void* values) {
  CheckCudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
             "cuDNN: setting attribute " + std::to_string(name));
}

std::int64_t CudnnDescriptor::GetArray(cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t max,
                                       void* values) const {
  std::int64_t count = 0;
  CheckCudnn(cudnnBackendGetAttribute(descriptor_, name, type, max, &count, values),
             "cuDNN: reading attribute " + std::to_string(name));
  return count;
}

}  // namespace trainer
