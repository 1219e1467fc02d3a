// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/predict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>

#include "bench/base/site_machine.h"
#include "bench/ddlbench/log_analysis/extract.h"
#include "bench/ddlbench/profiled_backward.h"
#include "scaling/links.h"
#include "scaling/machine.h"
#include "support/file.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

constexpr std::size_t kMaxTableBytes = std::size_t{1} << 20;

void RequireAtLeast(double value, double min, const std::string& option) {
  if (value >= min && value < 1e12) return;
  throw Error(EX_USAGE, option + " must be " + (min > 0 ? "above 0" : "0 or more"));
}

void CheckNumbers(const PredictOptions& options) {
  for (const int nodes : options.nodes) {
    if (nodes < 1 || nodes > scaling::kMaxNodes) {
      throw Error(EX_USAGE, "--nodes=" + std::to_string(nodes) + " must be from 1 to " +
                                std::to_string(scaling::kMaxNodes));
    }
  }
  if (options.nodes.empty()) throw Error(EX_USAGE, "--nodes is empty: --nodes=1,2,4");
  for (const int ranks : options.ranks) {
    if (ranks < 1 || ranks > 64 * scaling::kMaxNodes) {
      throw Error(EX_USAGE, "--ranks=" + std::to_string(ranks) + " must be from 1 to " +
                                std::to_string(64 * scaling::kMaxNodes));
    }
  }
  if (options.batch_size < 1 || options.batch_size > 1000000) {
    throw Error(EX_USAGE, "--batch_size must be from 1 to 1000000");
  }
  RequireAtLeast(options.speed, 0, "--speed");
  RequireAtLeast(options.node_speed, 0, "--node_speed");
  RequireAtLeast(options.two_nodes_speed, 0, "--two_nodes_speed");
  RequireAtLeast(options.other_speed, 0, "--other_speed");
  if (options.other_nodes < 0 || options.other_nodes > scaling::kMaxNodes) {
    throw Error(EX_USAGE, "--other_nodes=" + std::to_string(options.other_nodes) +
                              " must be from 0 to " + std::to_string(scaling::kMaxNodes));
  }
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

std::vector<scaling::BusRate> ReadTable(const std::string& path) {
  const support::WholeFile file =
      support::ReadWholeFile(path, kMaxTableBytes, support::FileKind::kAny);
  if (file.problem == support::ReadProblem::kTooLong) {
    throw Error(EX_DATAERR, path + ": longer than 1 MiB: no table of all_reduce_perf");
  }
  if (file.problem != support::ReadProblem::kNone) {
    throw Error(EX_NOINPUT, "--table: " + path + " cannot be read");
  }
  const scaling::BusRateTable table = scaling::ParseBusRates(file.content);
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

}  // namespace

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
    const ProfiledBackward profiled = ReadProfiledBackward(options.profile);
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

std::string RunPredict(const PredictOptions& options, Diagnostics& diagnostics) {
  const PredictionBasis basis = ReadPredictionBasis(options, diagnostics);
  return options.json ? PredictionAsJson(options, basis) : FormatPrediction(options, basis);
}

}  // namespace bench
