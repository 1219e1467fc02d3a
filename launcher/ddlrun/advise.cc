// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/advise.h"

#include <sysexits.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "launcher/advice/advice.h"
#include "launcher/base/error.h"
#include "launcher/cli/user_program.h"

namespace launcher {
namespace {

JobShape ShapeOf(const LaunchPlan& plan) {
  JobShape shape{.nodes = static_cast<int>(plan.nodes.size()),
                 .ranks = static_cast<int>(plan.ranks.size())};
  for (const NodePlacement& node : plan.nodes)
    shape.gpus_per_node = std::max(shape.gpus_per_node, node.gpus);
  return shape;
}

}  // namespace

std::string Advice(const Options& options, const SiteConfig& site, const LaunchPlan& plan) {
  const std::optional<std::vector<std::string>> arguments = TrainerArguments(options.program);
  if (!arguments) {
    throw LaunchError(EX_USAGE, "--advise knows ddltraind alone, not '" + options.program.front() +
                                    "': ddlrun --advise ddltraind --batch_size=256 ...");
  }
  return AdviceText({.requested = ParseTrainingRequest(*arguments),
                     .job = ShapeOf(plan),
                     .machine = site.machine,
                     .site = site.path,
                     .images_per_s = options.advised_speed.value_or(0)});
}

std::string AdviceForDryRun(const Options& options, const SiteConfig& site,
                            const LaunchPlan& plan) {
  if (!TrainerArguments(options.program)) return "";
  try {
    return "\n" + Advice(options, site, plan);
  } catch (const LaunchError& error) {
    return std::string("\nno prediction: ") + error.what() + "\n";
  }
}

}  // namespace launcher
