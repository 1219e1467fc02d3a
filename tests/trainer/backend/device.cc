// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// "cuda_fp16" is the back end "cuda" that computes in fp16.
constexpr std::pair<std::string_view, DType> kReducedTypes[] = {{"_fp16", DType::kFloat16},
                                                                {"_bf16", DType::kBFloat16}};

}  // namespace

std::unique_ptr<Backend> MakeTestedBackend(std::string name, int threads) {
  BackendOptions options{.threads = threads};
  if (name.ends_with(kRepeating)) {
    name.resize(name.size() - kRepeating.size());
    options.deterministic = true;
  }
  for (const auto& [suffix, dtype] : kReducedTypes) {
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    options.compute_type = dtype;
  }
  return MakeBackend(name, options);
}

std::vector<std::string> TestedBackends() {
  std::vector<std::string> tested;
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;
    tested.push_back(name);
    if (name != "cuda") continue;
    for (const auto& [suffix, dtype] : kReducedTypes) tested.push_back(name + std::string(suffix));
  }
  return tested;
}

Device::Device(const std::string& name, int threads)
    : backend_(MakeTestedBackend(name, threads)), stream_(backend_->MakeStream()) {}

void* Device::Scratch(std::size_t bytes) {
  buffers_.push_back(backend_->AllocateDevice(bytes));
  Poison(buffers_.back().data(), bytes);
  return buffers_.back().data();
}

void Device::Poison(void* memory, std::size_t bytes) {
  const std::vector<std::uint8_t> ones(bytes, 0xFF);
  backend_->CopyToDevice(memory, ones.data(), bytes, *stream_);
  stream_->Synchronize();
}

Tensor Device::Make(const TensorDesc& desc, const Floats& values) {
  const Tensor tensor = Make(desc);
  Import(values, tensor);
  return tensor;
}

Tensor Device::Make(const Shape& shape, const Floats& values) {
  return Make(RowMajor(shape, DType::kFloat32), values);
}

void Device::Import(const Floats& values, const Tensor& tensor) {
  DDL_CHECK(static_cast<std::int64_t>(values.size()) == tensor.desc.shape.elements());
  backend_->Import(values.data(), tensor, *stream_);
}

Floats Device::Export(const Tensor& tensor) {
  Floats values(static_cast<std::size_t>(tensor.desc.shape.elements()));
  backend_->Export(tensor, values.data(), *stream_);
  return values;
}

TensorDesc Device::Images(const Shape& shape) {
  const auto input = backend_->MakeInputTransform({shape[0], 3, shape[2], shape[3]});
  return backend_->MakeConvolution({input->dst(), shape[1], 1, 1, 0})->dst();
}

Floats RandomFloats(std::int64_t count, std::uint64_t seed) {
  Random random(seed, RandomPurpose::kInit, 0);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(std::round(random.TruncatedNormal() * 64) / 64);
  }
  return values;
}

double RootMeanSquare(const Floats& values) {
  if (values.empty()) return 0;
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double RelativeError(const Floats& a, const Floats& b, double floor) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(double{a[i]} - b[i]);
    if (std::isnan(distance)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, distance);
  }
  return largest / std::max(RootMeanSquare(b), floor);
}

}  // namespace trainer
