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

bool IsFp32(const Parameter& parameter) { return parameter.spec.desc.dtype == DType::kFloat32; }

// Places those that `belongs` names at the end of a memory of `end` elements.  Returns where each
// block's begin.
template <typename Belongs>
std::vector<std::size_t> Append(ParameterLayout& layout, std::size_t& end, const Belongs& belongs) {
  std::vector<std::size_t> begins;
  for (std::size_t block = 0; block + 1 < layout.first_of_block.size(); ++block) {
    begins.push_back(end);
    for (std::size_t i = layout.first_of_block[block]; i < layout.first_of_block[block + 1]; ++i) {
      Parameter& parameter = layout.parameters[i];
      if (!belongs(parameter)) continue;
      parameter.begin = end;
      end += AlignUp(parameter.count);
      if (parameter.spec.statistic) continue;
      Extend(layout.segments, end, parameter.spec.decay);
      const bool is_weight = parameter.spec.decay && parameter.spec.shape.rank() > 1;
      layout.tensors.push_back({parameter.begin, parameter.count, is_weight});
    }
  }
  return begins;
}

}  // namespace

ParameterLayout LayOutParameters(std::span<const BlockParameters> blocks) {
  DDL_CHECK(!blocks.empty());
  ParameterLayout layout;
  layout.parameters = ListParameters(blocks, layout.first_of_block);
  Append(layout, layout.statistic_elements, [](const Parameter& p) { return p.spec.statistic; });
  const std::vector<std::size_t> fp32_begins = Append(
      layout, layout.elements, [](const Parameter& p) { return !p.spec.statistic && IsFp32(p); });
  layout.compute_from = layout.elements;
  const std::vector<std::size_t> compute_begins = Append(
      layout, layout.elements, [](const Parameter& p) { return !p.spec.statistic && !IsFp32(p); });
  layout.complete_from = layout.compute_from < layout.elements ? compute_begins : fp32_begins;
  layout.complete_from.front() = 0;
  return layout;
}

}  // namespace trainer
