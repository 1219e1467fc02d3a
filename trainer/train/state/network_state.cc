// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/network_state.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"

namespace trainer {

std::vector<float> ExportStatistics(const Network& network, Stream& stream, Network::Part part) {
  std::vector<float> row;
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const std::vector<float> values = network.Export(part, parameter, stream);
    std::copy(values.begin(), values.end(), std::back_inserter(row));
  }
  return row;
}

void ImportStatistics(Network& network, std::span<const float> row, Stream& stream,
                      Network::Part part) {
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.spec.statistic) continue;
    const auto count = static_cast<std::size_t>(parameter.spec.shape.elements());
    network.Import(part, parameter, row.first(count), stream);
    row = row.subspan(count);
  }
}

std::vector<float> GatherRows(std::span<const float> own, Communicator& communicator) {
  std::vector<float> rows;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    std::vector<float> row(own.begin(), own.end());
    communicator.Broadcast(row.data(), row.size() * sizeof(float), rank);
    std::copy(row.begin(), row.end(), std::back_inserter(rows));
  }
  return rows;
}

std::vector<float> MeanOfRows(std::span<const float> rows, int ranks) {
  const std::size_t count = rows.size() / static_cast<std::size_t>(ranks);
  std::vector<float> mean(count);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t k = i; k < rows.size(); k += count) sum += rows[k];
    mean[i] = static_cast<float>(sum / ranks);
  }
  return mean;
}

std::vector<float> MeanOverRanks(std::span<const float> own, Communicator& communicator) {
  return MeanOfRows(GatherRows(own, communicator), communicator.size());
}

namespace {

bool Has(Network::Part part, const Parameter& parameter, std::string_view left_out = {}) {
  if (!left_out.empty() && parameter.name.starts_with(left_out)) return false;
  return part != Network::Part::kMomentum || !parameter.spec.statistic;
}

// "layer1.0.bn1.num_batches_tracked" for "layer1.0.bn1.running_mean"; "" for other parameters.
std::string CounterBeside(const Parameter& parameter) {
  const std::string& name = parameter.name;
  constexpr std::string_view kMean = "running_mean";
  if (!name.ends_with(kMean)) return "";
  return name.substr(0, name.size() - kMean.size()) + "num_batches_tracked";
}

// A file need not be aligned.
template <typename T>
std::vector<T> Unaligned(std::span<const std::byte> data) {
  std::vector<T> elements(data.size() / sizeof(T));
  std::memcpy(elements.data(), data.data(), elements.size() * sizeof(T));
  return elements;
}

}  // namespace

std::vector<HostTensor> ExportPart(const Network& network, Network::Part part,
                                   const std::string& prefix, Stream& stream) {
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : network.parameters()) {
    if (!Has(part, parameter)) continue;
    tensors.push_back(
        {prefix + parameter.name, parameter.spec.shape, network.Export(part, parameter, stream)});
  }
  return tensors;
}

void RejectNotFinite(std::span<const TensorReader> tensors) {
  for (const TensorReader& tensor : tensors) {
    DDL_CHECK(tensor.dtype == DType::kFloat32);
    const std::span values(static_cast<const float*>(tensor.data),
                           static_cast<std::size_t>(tensor.shape.elements()));
    const auto bad =
        std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (bad == values.end()) continue;
    throw NotFinite("the weights are not written: " + tensor.name + " has the value " +
                    std::to_string(*bad) +
                    ", training has diverged; start again from the last checkpoint, if there is "
                    "one, with a smaller --lr_init or more --lr_warmup_epochs");
  }
}

std::vector<TensorReader> SourcesOf(const std::vector<HostTensor>& tensors) {
  std::vector<TensorReader> sources;
  for (const HostTensor& tensor : tensors) {
    sources.push_back({tensor.name, DType::kFloat32, tensor.shape, tensor.values.data()});
  }
  return sources;
}

std::vector<ExpectedTensor> ExpectedTensors(const Network& network, Network::Part part,
                                            std::string_view left_out) {
  std::vector<ExpectedTensor> expected;
  for (const Parameter& parameter : network.parameters()) {
    if (!Has(part, parameter, left_out)) continue;
    expected.push_back({parameter.name, DType::kFloat32, parameter.spec.shape, false});
    if (std::string counter = CounterBeside(parameter); !counter.empty()) {
      expected.push_back({std::move(counter), DType::kInt64, Shape(), true});
    }
  }
  return expected;
}

std::vector<float> ReadValues(const SafetensorsFile& file, const TensorEntry& entry) {
  const std::span<const std::byte> data = file.Data(entry);
  if (entry.dtype == DType::kFloat32) return Unaligned<float>(data);
  DDL_CHECK(entry.dtype == DType::kFloat16 || entry.dtype == DType::kBFloat16);
  const bool is_half = entry.dtype == DType::kFloat16;
  std::vector<float> values;
  for (const std::uint16_t bits : Unaligned<std::uint16_t>(data)) {
    values.push_back(is_half ? WidenFloat16(bits) : WidenBFloat16(bits));
  }
  return values;
}

void RejectUnusable(const SafetensorsFile& file, const Network& network,
                    std::string_view left_out) {
  for (const Parameter& parameter : network.parameters()) {
    if (!Has(Network::Part::kValue, parameter, left_out)) continue;
    const TensorEntry* entry = file.Find(parameter.name);
    DDL_CHECK(entry != nullptr);
    const bool is_variance = parameter.name.ends_with("running_var");
    for (const float value : ReadValues(file, *entry)) {
      if (std::isfinite(value) && !(is_variance && value < 0)) continue;
      throw Error(EX_DATAERR,
                  file.path() + ": " + parameter.name + " has the value " + std::to_string(value) +
                      ": weights that are NaN or infinite, and variances below 0, cannot be used");
    }
  }
}

void ImportPart(Network& network, Network::Part part, const SafetensorsFile& file, Stream& stream,
                std::string_view left_out) {
  for (const Parameter& parameter : network.parameters()) {
    if (!Has(part, parameter, left_out)) continue;
    const TensorEntry* entry = file.Find(parameter.name);
    DDL_CHECK(entry != nullptr);
    network.Import(part, parameter, ReadValues(file, *entry), stream);
  }
}

void BroadcastPart(Network& network, Network::Part part, Communicator& communicator,
                   Stream& stream) {
  if (communicator.size() == 1) return;
  for (const Parameter& parameter : network.parameters()) {
    if (!Has(part, parameter)) continue;
    std::vector<float> values = network.Export(part, parameter, stream);
    communicator.Broadcast(values.data(), values.size() * sizeof(float), 0);
    network.Import(part, parameter, values, stream);
  }
}

void SwapInEma(Network& network, Stream& stream, const std::function<void()>& use) {
  if (!network.has_ema()) {
    use();
    return;
  }
  constexpr auto kValue = Network::Part::kValue;
  std::vector<std::vector<float>> values;
  for (const Parameter& parameter : network.parameters()) {
    values.push_back(network.Export(kValue, parameter, stream));
    network.Import(kValue, parameter, network.Export(Network::Part::kAverage, parameter, stream),
                   stream);
  }
  const auto swap_back = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) {
      network.Import(kValue, network.parameters()[i], values[i], stream);
    }
  };
  try {
    use();
  } catch (...) {
    swap_back();
    throw;
  }
  swap_back();
}

namespace {

// The header and the data, in the order of the file.
std::vector<std::span<const std::byte>> PiecesOf(const std::string& header,
                                                 const std::vector<HostTensor>& tensors,
                                                 const std::vector<std::size_t>& order) {
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header))};
  for (const std::size_t i : order) pieces.push_back(std::as_bytes(std::span(tensors[i].values)));
  return pieces;
}

}  // namespace

void WriteTensorFile(const std::filesystem::path& path, const std::vector<HostTensor>& tensors,
                     const SafetensorsMetadata& metadata, std::string_view instead) {
  const std::vector<TensorReader> sources = SourcesOf(tensors);
  const std::string header = MakeSafetensorsHeader(sources, metadata);
  const WriteHook no_hook;
  ReplaceFile(path, PiecesOf(header, tensors, DataOrder(sources)), {no_hook, instead});
}

std::vector<HostTensor> StateForDump(const Network& network, const FlatGradients& gradients,
                                     double gradient_scale, Stream& stream) {
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : network.parameters()) {
    const auto add = [&](const std::string& prefix, std::vector<float> values) {
      tensors.push_back({prefix + parameter.name, parameter.spec.shape, std::move(values)});
    };
    const std::vector<float> value = network.Export(Network::Part::kValue, parameter, stream);
    if (parameter.spec.statistic) {
      add("statistic.", value);
      continue;
    }
    std::vector<float> gradient = network.ExportGradient(gradients, parameter, stream);
    for (float& g : gradient) g = static_cast<float>(g * gradient_scale);
    add("weight.", value);
    add("gradient.", std::move(gradient));
    add("momentum.", network.Export(Network::Part::kMomentum, parameter, stream));
  }
  return tensors;
}

}  // namespace trainer
