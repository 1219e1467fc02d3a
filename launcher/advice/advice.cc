// SPDX-License-Identifier: Apache-2.0

#include "launcher/advice/advice.h"

#include <sysexits.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "launcher/base/error.h"
#include "scaling/machine.h"
#include "scaling/predict.h"
#include "support/number.h"

namespace launcher {
namespace {

template <typename Number>
Number Positive(const std::string& name, const std::string& value) {
  const std::optional<Number> number = support::WholeNumber<Number>(value);
  if (!number || !(*number > 0) || !(*number < static_cast<Number>(1000000000))) {
    throw LaunchError(EX_USAGE,
                      "--advise: ddltraind --" + name + "=" + value + " must be a number above 0");
  }
  return *number;
}

bool IsOn(const std::string& value) {
  return value.empty() || value == "1" || value == "true" || value == "True";
}

using Setter = std::function<void(TrainingRequest&, const std::string& name, const std::string&)>;

const std::map<std::string, Setter>& Setters() {
  using Name = const std::string&;
  static const std::map<std::string, Setter> setters = {
      {"mode", [](TrainingRequest& requested, Name, Name value) { requested.mode = value; }},
      {"arch", [](TrainingRequest& requested, Name, Name value) { requested.arch = value; }},
      {"precision",
       [](TrainingRequest& requested, Name, Name value) { requested.precision = value; }},
      {"data_dir",
       [](TrainingRequest& requested, Name, Name value) { requested.has_data = !value.empty(); }},
      {"reduce_precision", [](TrainingRequest& requested, Name,
                              Name value) { requested.half_sums = value == "16bit"; }},
      {"iter_unit", [](TrainingRequest& requested, Name,
                       Name value) { requested.counts_epochs = value != "batch"; }},
      {"batch_size", [](TrainingRequest& requested, Name name,
                        Name value) { requested.batch = Positive<std::int64_t>(name, value); }},
      {"accumulate",
       [](TrainingRequest& requested, Name name, Name value) {
         requested.accumulate = Positive<std::int64_t>(name, value);
       }},
      {"global_batch_size",
       [](TrainingRequest&, Name, Name) {
         throw LaunchError(
             EX_USAGE,
             "--advise shows what more nodes make of a --batch_size of each rank: give "
             "that instead of --global_batch_size");
       }},
      {"num_iter", [](TrainingRequest& requested, Name name,
                      Name value) { requested.num_iter = Positive<double>(name, value); }},
      {"lr_init", [](TrainingRequest& requested, Name name,
                     Name value) { requested.lr_init = Positive<double>(name, value); }},
      {"lr_scaling",
       [](TrainingRequest& requested, Name, Name value) { requested.lr_scaling = value; }},
      {"lr_schedule",
       [](TrainingRequest& requested, Name, Name value) { requested.lr_schedule = value; }},
      {"recipe", [](TrainingRequest& requested, Name, Name value) { requested.recipe = value; }},
      {"lr_warmup_epochs",
       [](TrainingRequest& requested, Name name, Name value) {
         requested.warmup_epochs = value == "0" ? 0 : Positive<double>(name, value);
       }},
  };
  return setters;
}

// Switches take no word behind them.
bool SetSwitch(TrainingRequest& requested, const std::string& name, const std::string& value) {
  if (name == "use_cosine_lr" || name == "cosine_lr") {
    requested.cosine = IsOn(value);
  } else if (name == "nouse_cosine_lr") {
    requested.cosine = false;
  } else if (name == "use_tf_amp") {
    if (IsOn(value)) requested.precision = "fp16";
  } else {
    return false;
  }
  return true;
}

}  // namespace

TrainingRequest ParseTrainingRequest(const std::vector<std::string>& arguments) {
  TrainingRequest requested;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) continue;
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = word.substr(2, has_value ? equals - 2 : std::string::npos);
    if (SetSwitch(requested, name, has_value ? word.substr(equals + 1) : "")) continue;
    const auto setter = Setters().find(name);
    if (setter == Setters().end()) continue;
    if (!has_value && i + 1 == arguments.size()) continue;
    setter->second(requested, name, has_value ? word.substr(equals + 1) : arguments[++i]);
  }
  return requested;
}

namespace {

constexpr double kImages = 1281167;  // of ImageNet's training set
constexpr double kLargestByRule = 8192;
constexpr char kAssumedGpu[] = "V100";

struct Assumed {
  double speed = 0;  // images/s of one GPU
  std::int64_t batch = 0;
  const scaling::Gpu* gpu = nullptr;  // null: not known
  std::string speed_source, batch_source;
};

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

// What a batch takes of a GPU's memory, the largest one, and what does the same where it does not
// fit.
std::string DescribeMemoryBudget(const TrainingRequest& requested, const std::string& gpu,
                                 std::int64_t batch, double memory) {
  constexpr char kSource[] = " (computed; ddltraind --dry_run on a node knows)";
  const double needed = scaling::EstimateMemory(requested.precision, batch) / 1e9;
  if (memory <= 0) return Format("some %.1f GB of a GPU", needed) + kSource;
  const auto largest = static_cast<long long>(scaling::LargestBatch(requested.precision, memory));
  std::string text = Format("some %.1f of the %.0f GB of a ", needed, memory / 1e9) + gpu;
  if (batch <= largest) return text + Format(", the largest is about %lld", largest) + kSource;
  text += Format(": DOES NOT FIT, the largest is about %lld", largest);
  for (long long parts = 2; largest > 0 && parts <= batch; ++parts) {
    if (batch % parts != 0 || batch / parts > largest) continue;
    text += Format("; as many images in a step: --batch_size=%lld --accumulate=%lld", batch / parts,
                   parts * requested.accumulate);
    break;
  }
  return text + kSource;
}

void RequireTraining(const TrainingRequest& requested) {
  if (!requested.mode.starts_with("train")) {
    throw LaunchError(EX_USAGE, "--advise: ddltraind --mode=" + requested.mode +
                                    " trains nothing; leave out --advise");
  }
  if (requested.arch != "resnet50") {
    throw LaunchError(EX_USAGE, "--advise knows resnet50 alone, not --arch=" + requested.arch +
                                    "; ddlbench sweep measures it");
  }
}

Assumed AssumedOf(const AdviceBasis& basis) {
  const TrainingRequest& requested = basis.requested;
  const std::string name = basis.machine.gpu.empty() ? kAssumedGpu : basis.machine.gpu;
  Assumed assumed;
  assumed.gpu = scaling::FindGpu(name);
  if (basis.images_per_s > 0) {
    assumed.speed = basis.images_per_s;
    assumed.speed_source = "as --advise says";
    if (basis.machine.gpu.empty()) assumed.gpu = nullptr;
  } else {
    assumed.speed =
        assumed.gpu == nullptr ? 0 : scaling::SpeedOf(*assumed.gpu, requested.precision);
    if (assumed.speed <= 0) {
      throw LaunchError(EX_USAGE, "--advise: how fast is one " + name + " in " +
                                      requested.precision + "? Give its images/s: --advise=400");
    }
    assumed.speed_source = name +
                           (basis.machine.gpu.empty() ? " (assumed: no site file says which GPU)"
                                                      : " (" + basis.site + ")") +
                           ", " + std::string(assumed.gpu->source);
  }
  const double memory = scaling::MemoryOf(name);
  const std::int64_t largest = memory > 0 ? scaling::LargestBatch(requested.precision, memory) : 0;
  assumed.batch = requested.batch;
  assumed.batch_source = "as --batch_size says";
  if (requested.batch == 0) {
    assumed.batch = requested.precision == "fp32" || requested.precision == "tf32" ? 128 : 256;
    if (largest > 0) assumed.batch = std::min(assumed.batch, largest);
    assumed.batch_source = "assumed, for --batch_size is missing";
  }
  assumed.batch_source += "; " + DescribeMemoryBudget(requested, name, assumed.batch, memory);
  return assumed;
}

scaling::Training TrainingOf(const AdviceBasis& basis, const Assumed& assumed) {
  scaling::Machine machine = basis.machine;
  if (basis.job.gpus_per_node > 0) machine.gpus_per_node = basis.job.gpus_per_node;
  const auto batches = static_cast<double>(basis.requested.accumulate);
  scaling::Training training;
  training.batch = static_cast<double>(assumed.batch) * batches;
  training.links = scaling::LinksOf(machine);
  training.sums =
      basis.requested.half_sums ? scaling::AllReduceModel::kHalf : scaling::AllReduceModel::kFp32;
  training.work.alone = training.batch / assumed.speed;
  training.work.backward_share /= batches;  // sums run beside that of the last batch
  training.work.buckets = scaling::ResNet50Buckets(training.sums, training.rule);
  if (basis.requested.has_data) {
    training.input.file_system = 1e9 * machine.file_system_gbs.value_or(0);
  }
  return training;
}

std::string DescribeTime(double seconds) {
  const long long minutes = std::llround(seconds / 60);
  if (minutes < 1) return Format("%.0f s", seconds);
  if (minutes < 60) return Format("%lld min", minutes);
  return Format("%lld h %02lld min", minutes / 60, minutes % 60);
}

double SecondsOf(const TrainingRequest& requested, const scaling::Prediction& at) {
  return requested.counts_epochs ? requested.num_iter * kImages / at.images_per_second
                                 : requested.num_iter * at.step;
}

std::string DescribeRate(const TrainingRequest& requested, double global_batch) {
  if (requested.recipe != "none") return "recipe";
  double factor = global_batch / 256;
  if (requested.lr_scaling == "sqrt") factor = std::sqrt(factor);
  if (requested.lr_scaling == "none") factor = 1;
  return Format("%.4g", requested.lr_init * factor);
}

std::string RowOf(const AdviceBasis& basis, const Assumed& assumed,
                  const scaling::Training& training, int nodes, int ranks) {
  const scaling::Prediction at = scaling::Predict(training, ranks);
  const double global_batch = training.batch * ranks;
  const double seconds = SecondsOf(basis.requested, at);
  const double gpu_hours = seconds / 3600 * ranks;
  const std::string energy =
      assumed.gpu == nullptr ? "-" : Format("%.1f", gpu_hours * assumed.gpu->watts / 1000);
  const bool is_this = nodes == basis.job.nodes && ranks == basis.job.ranks;
  return Format("%-6d %-6d %-13.0f %-14s %-9.0f %-11.3f %-13s %-10.1f %-8s %s%s\n", nodes, ranks,
                global_batch, DescribeRate(basis.requested, global_batch).c_str(),
                at.images_per_second, at.efficiency, DescribeTime(seconds).c_str(), gpu_hours,
                energy.c_str(), std::string(scaling::NameOf(at.bound)).c_str(),
                is_this ? "  <- this job" : "") +
         (global_batch > kLargestByRule && basis.requested.recipe != "mlperf"
              ? "       (no recipe is published for SGD beyond 8192 images: expect a lower top-1; "
                "ddltraind --recipe=mlperf has LARS to 67840)\n"
              : "");
}

std::string DescribeRecipe(const TrainingRequest& requested) {
  if (requested.recipe != "none") {
    return "--recipe=" + requested.recipe +
           " has one for each global batch, which ddltraind --dry_run prints";
  }
  std::string decay = requested.lr_schedule;
  if (decay.empty() && requested.cosine) decay = "cosine";
  if (decay.empty() || decay == "steps") decay = "x 0.1 at epochs 30, 60, 80 and 90";
  const char* scaling = " x global batch / 256";
  if (requested.lr_scaling == "sqrt") scaling = " x the root of (global batch / 256)";
  if (requested.lr_scaling == "none") scaling = "";
  return Format("lr_init %.4g%s, warm-up of %.4g epochs, %s: as ddltraind does", requested.lr_init,
                scaling, requested.warmup_epochs, decay.c_str());
}

}  // namespace

std::string AdviceText(const AdviceBasis& basis) {
  const TrainingRequest& requested = basis.requested;
  RequireTraining(requested);
  const Assumed assumed = AssumedOf(basis);
  const scaling::Training training = TrainingOf(basis, assumed);
  scaling::Machine machine = basis.machine;
  if (basis.job.gpus_per_node > 0) machine.gpus_per_node = basis.job.gpus_per_node;

  // (nodes, ranks)
  std::set<std::pair<int, int>> sizes;
  for (const int nodes : {1, 2, 4, 8, 16}) {
    sizes.emplace(nodes, nodes * training.links.gpus_per_node);
  }
  if (basis.job.gpus_per_node > 0) sizes.emplace(basis.job.nodes, basis.job.ranks);

  std::string text = "Predicted for this training on N nodes (sbatch -N), one rank per GPU:\n\n";
  text += Format("%-6s %-6s %-13s %-14s %-9s %-11s %-13s %-10s %-8s %s\n", "nodes", "ranks",
                 "global batch", "learning rate", "images/s", "efficiency", "time", "GPU-hours",
                 "GPU kWh", "bound by");
  for (const auto& [nodes, ranks] : sizes) text += RowOf(basis, assumed, training, nodes, ranks);

  text +=
      Format("\none GPU        %.0f images/s in %s: ", assumed.speed, requested.precision.c_str()) +
      assumed.speed_source + "\n";
  text += "links          " + scaling::DescribeLinks(machine) + "\n";
  text += "batch          " + std::to_string(assumed.batch) + " images of a GPU" +
          (requested.accumulate > 1
               ? ", " + std::to_string(requested.accumulate) + " batches for one update"
               : "") +
          ", " + assumed.batch_source + "\n";
  text += "learning rate  " + DescribeRecipe(requested) + "\n";
  text += requested.recipe == "mlperf"
              ? "recipe         LARS by MLPerf's reference convergence points, for 1632 to 67840 "
                "images; ddltraind refuses others\n"
              : "recipe         SGD with this linear rule is published up to 8192 images "
                "(arXiv 1706.02677)\n";
  text += "time           " +
          (requested.counts_epochs
               ? Format("%.4g", requested.num_iter) +
                     (requested.num_iter == 1 ? " epoch" : " epochs") + " of 1281167 images"
               : Format("%.0f", requested.num_iter) + " steps") +
          ", without start, evaluation and checkpoints\n";
  text += "energy         " +
          (assumed.gpu == nullptr
               ? std::string("not known for this GPU")
               : Format("at most: GPUs at their limit of %.0f W; nodes are not in it",
                        assumed.gpu->watts)) +
          "\n";
  text += "input          " +
          (training.input.file_system > 0
               ? Format("%.4g GB/s for all nodes, images of 110 kB (",
                        training.input.file_system / 1e9) +
                     basis.site + ")"
               : std::string(requested.has_data
                                 ? "never waited for (assumed: ddlbench loader measures it)"
                                 : "synthetic images, as there is no --data_dir")) +
          "\n";
  text += "ranks          all alike (assumed: ddlbench predict --from takes it from a sweep)\n";
  return text;
}

}  // namespace launcher
