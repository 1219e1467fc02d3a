// SPDX-License-Identifier: Apache-2.0
//
// A back end with a stream and all the memory a test makes on it.  Memory starts as NaN, so that an
// op that leaves an output unwritten, or reads scratch, is found out.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backend/registry.h"
#include "trainer/core/philox.h"

namespace trainer {

using Floats = std::vector<float>;

// The back ends of this build that work here, and those that compute in reduced types once for
// each: "cuda", "cuda_fp16", "cuda_bf16", "cpu", "reference".
std::vector<std::string> TestedBackends();
// Behind such a name: one that was told to give the same bits each time.
inline constexpr std::string_view kRepeating = "_repeating";
std::unique_ptr<Backend> MakeTestedBackend(std::string name, int threads);

class Device {
 public:
  // `name`: of TestedBackends().
  explicit Device(const std::string& name, int threads = 1);

  Backend& backend() { return *backend_; }
  Stream& stream() { return *stream_; }

  // Not-a-number in each of the floating-point types.
  void* Scratch(std::size_t bytes);
  void Poison(void* memory, std::size_t bytes);
  Tensor Make(const TensorDesc& desc) { return {desc, Scratch(desc.bytes)}; }
  Tensor Make(const TensorDesc& desc, const Floats& values);
  // Same for fp32 row-major ones.
  Tensor Make(const Shape& shape, const Floats& values);
  void Import(const Floats& values, const Tensor& tensor);
  Floats Export(const Tensor& tensor);

  // A plain array on the device.
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    void* memory = Scratch(values.size() * sizeof(T));
    backend_->CopyToDevice(memory, values.data(), values.size() * sizeof(T), *stream_);
    stream_->Synchronize();
    return static_cast<T*>(memory);
  }
  template <typename T>
  std::vector<T> Download(const void* memory, std::size_t count) {
    std::vector<T> values(count);
    backend_->CopyToHost(values.data(), memory, count * sizeof(T), *stream_);
    stream_->Synchronize();
    return values;
  }

  // How the back end describes images of `shape` that an op made.
  TensorDesc Images(const Shape& shape);

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
  std::vector<Buffer> buffers_;
};

// Normal numbers, cut at 2 and rounded to multiples of 1/64: exact in bfloat16 and half, so that
// every back end starts from the same values.
Floats RandomFloats(std::int64_t count, std::uint64_t seed);

double RootMeanSquare(const Floats& values);

// max |a - b| over the root mean square of b (or over `floor`, if that is larger); infinite if a is
// not a number anywhere.
double RelativeError(const Floats& a, const Floats& b, double floor = 1e-2);

}  // namespace trainer
