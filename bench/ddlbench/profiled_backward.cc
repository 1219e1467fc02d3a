// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/profiled_backward.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "support/file.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::array<std::size_t, 4> kBottlenecks = {3, 4, 6, 3};

// The block that a layer, as --profile names it, is part of; nothing for the update, and for what
// ResNet-50 does not have.
std::optional<std::size_t> BlockOf(std::string_view layer) {
  for (const std::string_view name : {"conv1", "bn1", "stem", "input", "maxpool"}) {
    if (layer == name) return 0;
  }
  for (const std::string_view name : {"avgpool", "fc", "loss"}) {
    if (layer == name) return scaling::kBlocks - 1;
  }
  // "layer3.5.conv2": the sixth bottleneck of the third group.
  if (!layer.starts_with("layer")) return {};
  const std::string_view group = layer.substr(5, 2);
  const std::size_t end = layer.find('.', 7);
  if (end == std::string_view::npos) return {};
  const auto bottleneck = support::WholeNumber<std::size_t>(layer.substr(7, end - 7));
  std::size_t first = 1;
  for (std::size_t i = 0; i < kBottlenecks.size(); ++i) {
    if (group == std::to_string(i + 1) + ".") {
      if (!bottleneck || *bottleneck >= kBottlenecks[i]) return {};
      return first + *bottleneck;
    }
    first += kBottlenecks[i];
  }
  return {};
}

bool IsBackward(std::string_view op) {
  return op.find("backward") != std::string_view::npos ||
         op.find("gradient sums") != std::string_view::npos;  // in older profiles
}

}  // namespace

ProfiledBackward ParseProfiledBackward(std::string_view text, const std::string& path) {
  const auto rejected = [&](const std::string& why) {
    return Error(EX_DATAERR, path + ": " + why +
                                 "; profile.json is written by ddltraind --profile "
                                 "--results_dir=DIR");
  };
  ProfiledBackward backward;
  double all = 0;
  double of_blocks = 0;
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    for (const nlohmann::json& row : document.at("ops")) {
      const double seconds = row.at("seconds").get<double>();
      const auto layer = row.at("layer").get<std::string>();
      const auto block = BlockOf(layer);
      if (!(seconds >= 0)) throw rejected("an op took " + row.at("seconds").dump() + " seconds");
      if (!block && layer != "update") {
        throw rejected("'" + layer + "' is no layer of ResNet-50, which alone is predicted");
      }
      all += seconds;
      if (!block || !IsBackward(row.at("op").get<std::string>())) continue;
      backward.times[*block] += seconds;
      of_blocks += seconds;
    }
  } catch (const nlohmann::json::exception&) {
    throw rejected("no profile of ddltraind");
  }
  const auto of_bottlenecks = std::pair(backward.times.begin() + 1, backward.times.end() - 1);
  if (std::find(of_bottlenecks.first, of_bottlenecks.second, 0.0) != of_bottlenecks.second) {
    throw rejected("not all of the 16 bottlenecks of ResNet-50 have gone backward in it");
  }
  backward.share = of_blocks / all;
  return backward;
}

ProfiledBackward ReadProfiledBackward(const std::string& path) {
  const support::WholeFile file = support::ReadWholeFile(path, kMaxBytes, support::FileKind::kAny);
  if (file.problem == support::ReadProblem::kTooLong) {
    throw Error(EX_DATAERR, path + ": longer than 16 MiB: no profile of ddltraind");
  }
  if (file.problem != support::ReadProblem::kNone) {
    throw Error(EX_NOINPUT, "--profile: " + path + " cannot be read");
  }
  return ParseProfiledBackward(file.content, path);
}

}  // namespace bench
