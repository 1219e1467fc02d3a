// SPDX-License-Identifier: Apache-2.0
//
// What back ends that compute on the host have in common: device memory is host memory, a copy is a
// memcpy, and every call is complete when it returns.

#pragma once

#include <limits>
#include <memory>

#include "trainer/backend/backend.h"

namespace trainer {

class HostBackend : public Backend {
 public:
  bool is_host() const override { return true; }
  // The system promises more memory than it has.
  std::size_t free_bytes() const override { return std::numeric_limits<std::size_t>::max(); }
  // Aligned to MemoryPlanner::kAlignment.
  Buffer AllocateDevice(std::size_t bytes) override;
  Buffer AllocateHost(std::size_t bytes) override { return AllocateDevice(bytes); }
  void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override;
  void CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& stream) override;
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override;
  void Zero(void* dst, std::size_t bytes, Stream& stream) override;
  // Back ends on the host compute in fp32: a copy.
  void Widen(const void* src, float* dst, std::size_t count, Stream& stream) override;
  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override;
  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override;

  std::unique_ptr<Stream> MakeStream() override;
  std::unique_ptr<Event> MakeEvent() override;
};

}  // namespace trainer
