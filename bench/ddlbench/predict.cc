// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bench/base/site_machine.h"
#include "bench/ddlbench/log_analysis/extract.h"
#include "scaling/links.h"
#include "scaling/machine.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

// All that a prediction is made from.
struct PredictionBasis {
  scaling::Training training;
  scaling::Calibration calibration;
  std::string links;               // in words
  std::string speed_source;        // of one GPU
  std::string backward_source;     // of when gradients are there
  std::string others;              // nodes of another kind, in words; "": there are none
  std::map<int, double> measured;  // images/s by ranks, of `from`
};

void RequireAtLeast(double value, double min, const std::string& option) {
  if (value >= min && value < 1e12) return;
  throw Error(EX_USAGE, option + " must be " + (min > 0 ? "above 0" : "0 or more"));
}

void CheckNumbers(const PredictOptions& options) {
  for (const int nodes : options.nodes) RequireRange("--nodes", nodes, 1, scaling::kMaxNodes);
  if (options.nodes.empty()) throw Error(EX_USAGE, "--nodes is empty: --nodes=1,2,4");
  for (const int ranks : options.ranks) {
    RequireRange("--ranks", ranks, 1, 64LL * scaling::kMaxNodes);
  }
  if (options.batch_size < 1 || options.batch_size > 1000000) {
    throw Error(EX_USAGE, "--batch_size must be from 1 to 1000000");
  }
  RequireAtLeast(options.speed, 0, "--speed");
  RequireAtLeast(options.node_speed, 0, "--node_speed");
  RequireAtLeast(options.two_nodes_speed, 0, "--two_nodes_speed");
  RequireAtLeast(options.other_speed, 0, "--other_speed");
  RequireRange("--other_nodes", options.other_nodes, 0, scaling::kMaxNodes);
  if (options.other_nodes > 0 && options.other_site.empty()) {
    throw Error(EX_USAGE, "--other_nodes: which? Give --other_site=FILE|NAME");
  }
  if (options.other_nodes == 0 && (!options.other_site.empty() || options.other_speed > 0)) {
    throw Error(EX_USAGE,
                std::string(options.other_site.empty() ? "--other_speed" : "--other_site") +
                    ": how many nodes of this kind? Give --other_nodes=N");
  }
  RequireAtLeast(options.delay_us, 0, "--delay_us");
  RequireAtLeast(options.cycle_ms, 0, "--cycle_ms");
  RequireAtLeast(options.staging_gbs, 0, "--staging_gbs");
  RequireAtLeast(options.node_input, 0, "--node_input");
  RequireAtLeast(options.image_kb, 1e-6, "--image_kb");
  if (!(options.backward_share > 0 && options.backward_share < 1)) {
    throw Error(EX_USAGE, "--backward_share must be between 0 and 1");
  }
  if (!options.from.empty() &&
      (options.speed > 0 || options.node_speed > 0 || options.two_nodes_speed > 0)) {
    throw Error(EX_USAGE,
                "--from says the speeds: leave out --speed, --node_speed and --two_nodes_speed");
  }
}

scaling::Machine ReadMachine(const PredictOptions& options) {
  scaling::Machine machine;
  if (!options.site.empty()) {
    machine = MachineOfSite(options.site);
  }
  for (const auto& [key, value] : options.machine) {
    if (value.empty()) continue;
    const std::string expected = scaling::SetMachineValue(machine, key, value);
    if (!expected.empty()) {
      throw Error(EX_USAGE, "--" + key + "=" + value + " must be " + expected);
    }
  }
  return machine;
}

// A whole file that has so many MiB at most.
std::string ReadText(const std::string& option, const std::string& path, std::size_t max_mebibytes,
                     const std::string& what) {
  const support::WholeFile file =
      support::ReadWholeFile(path, max_mebibytes << 20, support::FileKind::kAny);
  if (file.problem == support::ReadProblem::kTooLong) {
    throw Error(EX_DATAERR,
                path + ": longer than " + std::to_string(max_mebibytes) + " MiB: no " + what);
  }
  if (file.problem != support::ReadProblem::kNone) {
    throw Error(EX_NOINPUT, option + ": " + path + " cannot be read");
  }
  return file.content;
}

std::vector<scaling::BusRate> ReadTable(const std::string& path) {
  const scaling::BusRateTable table =
      scaling::ParseBusRates(ReadText("--table", path, 1, "table of all_reduce_perf"));
  if (!table.problem.empty()) throw Error(EX_DATAERR, path + ":" + table.problem);
  return table.rates;
}

// The one directory of logs in what --from names, and its one model.
std::vector<CaseSpeed> ReadSweep(const std::string& directory, Diagnostics& diagnostics) {
  const std::vector<std::filesystem::path> directories = FindLogDirectories(directory, diagnostics);
  if (directories.empty())
    throw Error(EX_DATAERR, directory + ": no directory of logs such as 1n1g in it");
  if (directories.size() > 1) {
    throw Error(EX_USAGE, "--from: " + directory + " has " + std::to_string(directories.size()) +
                              " directories of logs: name one, such as " +
                              directories.front().string());
  }
  const ModelSpeeds models = ReadLogDirectory(directories.front(), WindowOf({}), diagnostics);
  if (models.size() != 1) {
    throw Error(EX_DATAERR, directories.front().string() +
                                ": logs of one network are needed, not of " +
                                std::to_string(models.size()));
  }
  return models.begin()->second;
}

// Takes speeds, batch and, where nobody has said them, GPUs per node from a sweep.
scaling::Speeds TakeSweep(const std::vector<CaseSpeed>& sweep, const std::string& directory,
                          scaling::Machine& machine, PredictionBasis& basis) {
  int max = 1;
  for (const CaseSpeed& row : sweep) max = std::max(max, row.name.gpus);
  if (!machine.gpus_per_node) machine.gpus_per_node = max;
  scaling::Speeds speeds;
  for (const CaseSpeed& row : sweep) {
    if (row.batch != sweep.front().batch) {
      throw Error(EX_DATAERR, directory + ": logs of one batch are needed");
    }
    // A part of a node on several nodes is another machine.
    if (row.name.nodes > 1 && row.name.gpus != *machine.gpus_per_node) continue;
    basis.measured[row.name.ranks()] = row.median;
    if (row.name.ranks() == 1) speeds.one_gpu = row.median;
    if (row.name.gpus != *machine.gpus_per_node) continue;
    if (row.name.nodes == 1) speeds.one_node = row.median;
    if (row.name.nodes == 2) speeds.two_nodes = row.median;
  }
  if (speeds.one_gpu <= 0) {
    throw Error(EX_DATAERR,
                directory + ": no log of 1n1g, one GPU, which all else is compared with");
  }
  basis.training.batch = static_cast<double>(sweep.front().batch);
  basis.speed_source = "measured in " + directory;
  return speeds;
}

scaling::Speeds TakeOptions(const PredictOptions& options, const scaling::Machine& machine,
                            PredictionBasis& basis) {
  basis.training.batch = static_cast<double>(options.batch_size);
  scaling::Speeds speeds{options.speed, options.node_speed, options.two_nodes_speed};
  basis.speed_source = "given by --speed";
  if (speeds.one_gpu > 0) return speeds;
  const scaling::Gpu* const gpu = scaling::FindGpu(machine.gpu);
  speeds.one_gpu = gpu == nullptr ? 0 : scaling::SpeedOf(*gpu, options.precision);
  if (speeds.one_gpu <= 0) {
    const std::string of =
        machine.gpu.empty() ? "" : " (" + machine.gpu + ", " + options.precision + ": not known)";
    throw Error(EX_USAGE,
                "how fast is one GPU" + of +
                    "? Give --speed=IMAGES_PER_S, --gpu=V100 (A100, H100, H200), or --from=DIR of "
                    "ddlbench sweep");
  }
  basis.speed_source = std::string(gpu->source);
  return speeds;
}

void TakeOtherNodes(const PredictOptions& options, PredictionBasis& basis) {
  const scaling::Machine machine = MachineOfSite(options.other_site);
  const scaling::Gpu* const gpu = scaling::FindGpu(machine.gpu);
  double speed = options.other_speed;
  std::string source = "given by --other_speed";
  if (speed <= 0 && gpu != nullptr) {
    speed = scaling::SpeedOf(*gpu, options.precision);
    source = gpu->source;
  }
  if (speed <= 0) {
    throw Error(EX_USAGE,
                "how fast is one GPU of " + options.other_site +
                    "? Give --other_speed=IMAGES_PER_S, or a site whose gpu: is V100, A100, "
                    "H100 or H200");
  }
  scaling::OtherNodes& others = basis.training.others;
  others.nodes = options.other_nodes;
  others.alone = basis.training.batch / speed;
  others.links = scaling::LinksOf(machine);
  others.links.more_delay = options.delay_us * 1e-6;
  basis.others = support::Counted(others.nodes, "node") + ": one GPU " +
                 std::to_string(std::llround(speed)) + " images/s, " + source + "; " +
                 scaling::DescribeLinks(machine);
  basis.measured.clear();  // was without them
}

PredictionBasis ReadPredictionBasis(const PredictOptions& options, Diagnostics& diagnostics) {
  CheckNumbers(options);
  scaling::Machine machine = ReadMachine(options);
  PredictionBasis basis;
  const scaling::Speeds speeds =
      options.from.empty()
          ? TakeOptions(options, machine, basis)
          : TakeSweep(ReadSweep(options.from, diagnostics), options.from, machine, basis);
  scaling::Training& training = basis.training;
  training.links = scaling::LinksOf(machine);
  training.links.more_delay = options.delay_us * 1e-6;
  basis.links = scaling::DescribeLinks(machine);
  if (!options.table.empty()) {
    training.links.measured = ReadTable(options.table);
    basis.links += ", sums between nodes as in " + options.table;
  }
  training.sums =
      options.sums == "fp32" ? scaling::AllReduceModel::kFp32 : scaling::AllReduceModel::kHalf;
  training.rule = options.buckets == "ddltraind" ? scaling::BucketRule::kDdltraind
                                                 : scaling::BucketRule::kPytorch;
  training.input = {.node_images = options.node_input,
                    .file_system = 1e9 * machine.file_system_gbs.value_or(0),
                    .image_bytes = 1e3 * options.image_kb};
  scaling::StepWork work;
  work.backward_share = options.backward_share;
  basis.backward_source =
      options.backward_share == kTypicalShare ? "typical (assumed)" : "given by --backward_share";
  if (!options.profile.empty()) {
    const ProfiledBackward profiled = ParseProfiledBackward(
        ReadText("--profile", options.profile, 16, "profile of ddltraind"), options.profile);
    training.backward = profiled.times;
    work.backward_share = profiled.share;
    basis.backward_source = "measured in " + options.profile;
  }
  work.buckets = scaling::ResNet50Buckets(training.sums, training.rule, training.backward);
  work.cycle = options.cycle_ms / 1e3;
  work.staging_rate = 1e9 * options.staging_gbs;
  const scaling::Overlap overlap = options.overlap == "auto"  ? scaling::Overlap::kAuto
                                   : options.overlap == "yes" ? scaling::Overlap::kYes
                                                              : scaling::Overlap::kNo;
  basis.calibration = scaling::Calibrate(work, training.links, training.batch, speeds, overlap);
  training.work = basis.calibration.work;
  if (options.other_nodes > 0) TakeOtherNodes(options, basis);
  return basis;
}

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

// A table, and what would be faster than its last line.
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
    const auto document = support::ParseJson<>(
        text, {.bytes = std::size_t{1} << 28, .depth = 16, .values = 10'000'000});
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

std::string RunPredict(const PredictOptions& options, Diagnostics& diagnostics) {
  const PredictionBasis basis = ReadPredictionBasis(options, diagnostics);
  return options.json ? PredictionAsJson(options, basis) : FormatPrediction(options, basis);
}

}  // namespace bench
