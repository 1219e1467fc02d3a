// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/state_dump.h"

#include <span>
#include <string>
#include <system_error>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"

namespace trainer {
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
  const WriteContext context{no_hook, instead};
  RemoveStalePartials(path);
  const std::filesystem::path partial = PartialName(path);
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);  // of an earlier process with our number
  try {
    WriteNewFile(partial, PiecesOf(header, tensors, DataOrder(sources)), context);
    Rename(partial, path, context);
  } catch (const Error&) {
    // The first error is the one to tell.
    std::filesystem::remove(partial, ignored);
    throw;
  }
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
