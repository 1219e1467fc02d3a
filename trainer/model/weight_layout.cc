// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/weight_layout.h"

#include <cstddef>
#include <numeric>
#include <string>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kExact = std::size_t{1} << 24;  // fp32 holds the whole numbers up to this

// A layout that only the back end knows shows itself by what becomes of numbers that count up.
std::string OrderOf(const TensorDesc& desc, Backend& backend, Stream& stream) {
  if (desc.layout == Layout::kRowMajor) return "row by row";
  if (desc.layout == Layout::kChannelsLast) return "channels last";
  DDL_CHECK(desc.dtype == DType::kFloat32);
  std::vector<float> places(desc.bytes / sizeof(float));
  DDL_CHECK(places.size() <= kExact);
  std::iota(places.begin(), places.end(), 0.0F);
  const Buffer memory = backend.AllocateDevice(desc.bytes);
  backend.CopyToDevice(memory.data(), places.data(), desc.bytes, stream);
  std::vector<float> elements(static_cast<std::size_t>(desc.shape.elements()));
  backend.Export({desc, memory.data()}, elements.data(), stream);
  Fingerprint order;
  for (const float place : elements) order.Add(static_cast<std::uint64_t>(place));
  return "in the order " + order.hex();
}

}  // namespace

std::vector<ConsistencyItem> WeightLayout(const Network& network, Backend& backend,
                                          Stream& stream) {
  std::vector<ConsistencyItem> items;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) continue;
    items.push_back({parameter.name, parameter.name + " from element " +
                                         std::to_string(parameter.begin) + " on, " +
                                         OrderOf(parameter.spec.desc, backend, stream)});
  }
  return items;
}

}  // namespace trainer
