// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/ddlbench/predict.h"
#include "support/number.h"

namespace bench {
namespace {

using scaling::Prediction;

std::vector<int> RanksOf(const PredictOptions& options, const PredictionBasis& basis) {
  if (!options.ranks.empty()) return options.ranks;
  std::vector<int> ranks;
  for (const int nodes : options.nodes) {
    ranks.push_back(nodes * basis.training.links.gpus_per_node);
  }
  return ranks;
}

double Ms(double seconds) { return 1e3 * seconds; }

std::string DescribeAllReduce(const PredictOptions& options, const PredictionBasis& basis) {
  std::string text = options.sums == "fp32" ? "fp32" : "16 bits";
  text += basis.training.work.overlaps ? ", beside backward" : ", behind backward";
  if (options.cycle_ms > 0) text += fmt::format(", every {} ms", options.cycle_ms);
  if (options.staging_gbs > 0) {
    text += fmt::format(", through host memory at {} GB/s", options.staging_gbs);
  }
  return text;
}

std::string DescribeInput(const scaling::Input& input) {
  if (input.node_images <= 0 && input.file_system <= 0) return "never waited for (assumed)";
  std::string text;
  if (input.file_system > 0) {
    text = fmt::format("{:g} GB/s of files of {:g} kB", input.file_system / 1e9,
                       input.image_bytes / 1e3);
  }
  if (input.node_images > 0) {
    text +=
        fmt::format("{}{:g} images/s in each node", text.empty() ? "" : ", ", input.node_images);
  }
  return text;
}

std::string RowOf(const Prediction& at, const PredictionBasis& basis) {
  std::string row = fmt::format(
      "| {:<5} | {:<5} | {:<8.0f} | {:<7.1f} | {:<10.3f} | {:<7.1f} | {:<7.1f} | {:<7.1f} | "
      "{:<7.1f} | {:<12} |",
      at.nodes, at.ranks, at.images_per_second, Ms(at.step), at.efficiency, Ms(at.parts.compute),
      Ms(at.parts.exposed + at.parts.wait), Ms(at.parts.slowest), Ms(at.input),
      scaling::NameOf(at.bound));
  if (!basis.measured.empty()) {
    const auto found = basis.measured.find(at.ranks);
    row += fmt::format(" {:<8} |", found == basis.measured.end()
                                       ? std::string()
                                       : fmt::format("{:.0f}", found->second));
  }
  return row + "\n";
}

}  // namespace

std::string FormatPrediction(const PredictOptions& options, const PredictionBasis& basis) {
  const scaling::Training& training = basis.training;
  const double speed = training.batch / training.work.alone;
  std::string text = fmt::format("one GPU   {:.0f} images/s, {:g} images in a step: {}\n", speed,
                                 training.batch, basis.speed_source);
  text += "links     " + basis.links + "\n";
  if (training.others.nodes > 0) {
    const double wait = scaling::Predict(training, 1).kinds_wait;
    text +=
        "others    " + basis.others +
        fmt::format("; the quicker GPUs wait {:.1f} ms for the others in each step\n", Ms(wait));
  }
  text += "sums      " + DescribeAllReduce(options, basis) + "\n";
  text += fmt::format("backward  {:.1f} % of a step: {}\n", 100 * training.work.backward_share,
                      basis.backward_source);
  text += "input     " + DescribeInput(training.input) + "\n";
  text += fmt::format("ranks     {}\n",
                      training.work.spread > 0
                          ? fmt::format("steps {:.1f} % apart, as the speed of one node says",
                                        100 * training.work.spread / training.work.alone)
                          : std::string("all alike (assumed)"));
  if (!basis.calibration.reason.empty()) text += "note      " + basis.calibration.reason + "\n";
  const bool has_measured = !basis.measured.empty();
  text +=
      "\n| nodes | ranks | images/s | ms      | efficiency | compute | sums    | slowest | "
      "input   | bound by     |";
  text += has_measured ? " measured |\n" : "\n";
  text +=
      "| ----- | ----- | -------- | ------- | ---------- | ------- | ------- | ------- | "
      "------- | ------------ |";
  text += has_measured ? " -------- |\n" : "\n";
  const std::vector<int> all_ranks = RanksOf(options, basis);
  for (const int ranks : all_ranks) text += RowOf(scaling::Predict(training, ranks), basis);
  text += "\nFaster on " + support::Counted(all_ranks.back() + training.others.ranks(), "GPU") +
          " would be:\n";
  for (const scaling::Change& change : scaling::ChangesThatHelp(training, all_ranks.back())) {
    text += fmt::format("  {:<42} {:.0f} images/s\n", change.what, change.images_per_second);
  }
  return text;
}

std::string PredictionAsJson(const PredictOptions& options, const PredictionBasis& basis) {
  const scaling::Training& training = basis.training;
  nlohmann::ordered_json json;
  json["one_gpu"] = {{"images_per_s", training.batch / training.work.alone},
                     {"batch_size", training.batch},
                     {"source", basis.speed_source}};
  json["links"] = basis.links;
  if (training.others.nodes > 0) json["others"] = basis.others;
  json["sums"] = DescribeAllReduce(options, basis);
  json["backward"] = {{"share", training.work.backward_share}, {"source", basis.backward_source}};
  json["input"] = DescribeInput(training.input);
  json["spread_s"] = training.work.spread;
  json["waits"] = basis.calibration.waits;
  json["reason"] = basis.calibration.reason;
  json["predictions"] = nlohmann::ordered_json::array();
  for (const int ranks : RanksOf(options, basis)) {
    const Prediction at = scaling::Predict(training, ranks);
    nlohmann::ordered_json changes = nlohmann::ordered_json::array();
    for (const scaling::Change& change : scaling::ChangesThatHelp(training, at.ranks)) {
      changes.push_back({{"what", change.what}, {"images_per_s", change.images_per_second}});
    }
    nlohmann::ordered_json row = {{"nodes", at.nodes},
                                  {"ranks", at.ranks},
                                  {"images_per_s", at.images_per_second},
                                  {"step_s", at.step},
                                  {"efficiency", at.efficiency},
                                  {"compute_s", at.parts.compute},
                                  {"sums_s", at.parts.sums},
                                  {"exposed_sums_s", at.parts.exposed},
                                  {"slowest_rank_s", at.parts.slowest},
                                  {"wait_s", at.parts.wait},
                                  {"kinds_wait_s", at.kinds_wait},
                                  {"input_s", at.input},
                                  {"bound_by", scaling::NameOf(at.bound)},
                                  {"faster", changes}};
    const auto found = basis.measured.find(at.ranks);
    if (found != basis.measured.end()) row["measured_images_per_s"] = found->second;
    json["predictions"].push_back(row);
  }
  return json.dump() + "\n";
}

}  // namespace bench
