// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/parameters.h"

#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

std::size_t AlignUp(std::size_t elements) {
  return (elements + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
}

std::vector<Parameter> ListParameters(std::span<const BlockParameters> blocks,
                                      std::vector<std::size_t>& first_of_block) {
  std::vector<Parameter> parameters;
  for (const BlockParameters& block : blocks) {
    first_of_block.push_back(parameters.size());
    for (const ParameterSpec& spec : block.specs) {
      DDL_CHECK(spec.desc.shape.elements() == spec.shape.elements());
      parameters.push_back(
          {block.prefix + spec.name, spec, 0, spec.desc.bytes / SizeOf(spec.desc.dtype)});
    }
  }
  first_of_block.push_back(parameters.size());
  return parameters;
}

// Adds [end of the last segment, end) to the list.
void Extend(std::vector<ParameterSegment>& segments, std::size_t end, bool decay) {
  const std::size_t begin = segments.empty() ? 0 : segments.back().begin + segments.back().count;
  if (!segments.empty() && segments.back().decay == decay) {
    segments.back().count += end - begin;
  } else {
    segments.push_back({begin, end - begin, decay});
  }
}

}  // namespace

ParameterLayout LayOutParameters(std::span<const BlockParameters> blocks) {
  ParameterLayout layout;
  layout.parameters = ListParameters(blocks, layout.first_of_block);

  for (std::size_t block = 0; block < blocks.size(); ++block) {
    layout.complete_from.push_back(layout.elements);
    for (std::size_t i = layout.first_of_block[block]; i < layout.first_of_block[block + 1]; ++i) {
      Parameter& parameter = layout.parameters[i];
      std::size_t& end = parameter.spec.statistic ? layout.statistic_elements : layout.elements;
      parameter.begin = end;
      end += AlignUp(parameter.count);
      if (!parameter.spec.statistic) Extend(layout.segments, end, parameter.spec.decay);
    }
  }
  return layout;
}

}  // namespace trainer
