// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include "trainer/core/error.h"
#include "trainer/options/option_names.h"

namespace trainer {
namespace {

// Of mlperf.
struct ConvergencePoint {
  double batch;
  double base_rate;
  double warmup_epochs;
  double momentum;
  double weight_decay;
  double end_epochs;     // where the decay ends
  double target_epochs;  // when the target was reached, the mean of its runs
};
constexpr ConvergencePoint kPoints[] = {{1632, 7.4, 2, 0.9, 5e-5, 37, 35},
                                        {3264, 10.5, 2, 0.9, 5e-5, 37, 35.2},
                                        {4096, 10, 5, 0.9, 2e-4, 42, 40},
                                        {8192, 17, 5, 0.9, 2e-4, 44, 42},
                                        {13056, 12.8, 9, 0.9, 2.5e-5, 48, 45.4},
                                        {32768, 21.2, 16, 0.94, 2.5e-5, 58, 56},
                                        {49152, 19.405, 24, 0.951807, 1e-4, 71, 68},
                                        {58880, 23.246, 29, 0.951807, 1e-4, 82, 79.9},
                                        {65536, 24.699, 31, 0.951807, 1e-4, 89, 84.5},
                                        {67840, 24.699, 31, 0.951807, 1e-4, 91, 85.9}};
constexpr double kTarget = 75.9;  // percent

struct Setting {
  std::string name;  // with its dashes
  std::string value;
  std::string source;
};

struct Recipe {
  std::string source;
  std::vector<Setting> settings;
};

bool IsWithin(std::int64_t images, double first, double last) {
  return static_cast<double>(images) >= first && static_cast<double>(images) <= last;
}

void RequireWithin(const Options& options, int ranks, double first, double last) {
  const GlobalBatch batch = GlobalBatchOf(options, ranks);
  if (IsWithin(batch.images(), first, last)) return;
  throw Error(
      EX_USAGE,
      fmt::format("--recipe={} is published for {:.0f} to {:.0f} images in a step, not {} ({}): "
                  "give another {}, or leave --recipe out and say how to learn yourself",
                  options.recipe, first, last, batch.images(), DescribeSplit(batch),
                  batch.is_fixed ? "--global_batch_size"
                                 : "--batch_size, --accumulate or number of ranks"));
}

Recipe OfSgd(const std::string& source, const std::vector<Setting>& more, int epochs) {
  Recipe recipe = {source,
                   {{"--optimizer", "sgd", ""},
                    {"--lr_init", "0.256", "at 256 images"},
                    {"--lr_scaling", "linear", "arXiv 1706.02677"},
                    {"--lr_warmup_epochs", "8", ""},
                    {"--lr_schedule", "cosine", ""},
                    {"--momentum", "0.875", ""},
                    {"--weight_decay", "3.0517578125e-05", "1/32768"},
                    {"--label_smoothing", "0.1", ""},
                    {"--iter_unit", "epoch", ""},
                    {"--num_iter", std::to_string(epochs), ""}}};
  recipe.settings.insert(recipe.settings.end(), more.begin(), more.end());
  return recipe;
}

// At `images`, and where that is from.
ConvergencePoint PointAt(std::int64_t images, std::string& source) {
  const auto batch = static_cast<double>(images);
  const auto* above = std::ranges::find_if(
      kPoints, [batch](const ConvergencePoint& point) { return point.batch >= batch; });
  if (above->batch == batch) {
    source = fmt::format("the row of {}", images);
    return *above;
  }
  const ConvergencePoint& a = *std::prev(above);
  const ConvergencePoint& b = *above;
  source = fmt::format("interpolated between the rows of {:.0f} and {:.0f}", a.batch, b.batch);
  const double share = std::log(batch / a.batch) / std::log(b.batch / a.batch);
  const auto between = [share](double from, double to) { return from + share * (to - from); };
  return {batch,
          between(a.base_rate, b.base_rate),
          between(a.warmup_epochs, b.warmup_epochs),
          between(a.momentum, b.momentum),
          a.weight_decay * std::pow(b.weight_decay / a.weight_decay, share),
          between(a.end_epochs, b.end_epochs),
          between(a.target_epochs, b.target_epochs)};
}

Recipe OfMlperf(std::int64_t images) {
  std::string row;
  const ConvergencePoint point = PointAt(images, row);
  const std::string rules = "MLPerf's reference";
  return {fmt::format("MLPerf's reference convergence points (mlcommons/logging, training_4.0.0, "
                      "rcps_resnet.json), {}: {:.3g} epochs to {} % on average",
                      row, point.target_epochs, kTarget),
          {{"--optimizer", "lars", rules},
           {"--lr_init", fmt::format("{:.5g}", point.base_rate), row},
           {"--lr_scaling", "none", "the rows have the rate of their batch"},
           {"--lr_warmup_epochs", fmt::format("{:.0f}", point.warmup_epochs), row},
           {"--lr_schedule", "polynomial", rules + ", power 2"},
           {"--lr_end", "0.0001", rules},
           {"--lr_decay_steps", "0", "to the end of training, see --num_iter"},
           {"--momentum", fmt::format("{:.6g}", point.momentum), row},
           {"--weight_decay", fmt::format("{:.3g}", point.weight_decay), row},
           {"--label_smoothing", "0.1", rules},
           {"--iter_unit", "epoch", ""},
           {"--num_iter", fmt::format("{:.0f}", std::ceil(point.end_epochs)),
            row + ", end of its decay"},
           {"--eval_every", "4", "MLPerf's rules"},
           {"--stop_at_top1", fmt::format("{}", kTarget), "MLPerf's target"}}};
}

Recipe FindRecipe(const Options& options, int ranks) {
  const std::string nvidia = "DeepLearningExamples, TensorFlow/Classification/ConvNets";
  if (options.recipe == "mlperf") {
    RequireWithin(options, ranks, std::begin(kPoints)->batch, std::rbegin(kPoints)->batch);
    return OfMlperf(GlobalBatchOf(options, ranks).images());
  }
  if (options.recipe == "nvidia") {
    RequireWithin(options, ranks, 256, 2048);
    return OfSgd("NVIDIA's trainer on 1 to 8 GPUs (" + nvidia + ")",
                 {{"--weight_init", "fan_in", "NVIDIA's scripts"}}, 90);
  }
  RequireWithin(options, ranks, 256, 8192);
  return OfSgd("Bede's page on IBM WMLCE, 1 to 32 GPUs, with the values of NVIDIA's trainer (" +
                   nvidia + ")",
               {}, 50);
}

// The option that is given instead of a setting, as it was spelled; "" where there is none.
std::string GivenFor(const std::string& name, const std::set<std::string>& given) {
  std::vector<std::string> spellings = {name};
  if (name == "--lr_schedule") spellings = {name, "--use_cosine_lr", "--cosine_lr"};
  for (const std::string& spelling : spellings) {
    if (given.contains(spelling)) return spelling;
  }
  return "";
}

// Whether a run of this kind has a use for it: a benchmark has a length of its own, targets are of
// ImageNet, and evaluations are counted in what the user counts.
bool IsOfUse(const std::string& name, const ParsedOptions& parsed) {
  const Options& options = parsed.options;
  const bool counts_otherwise =
      parsed.given.contains("--iter_unit") && options.schedule.iter_unit == IterationUnit::kBatch;
  const bool is_length = name == "--iter_unit" || name == "--num_iter";
  if (name == "--lr_end" || name == "--lr_decay_steps") {
    return GivenFor("--lr_schedule", parsed.given).empty() ||
           options.schedule.lr_schedule == RateDecay::kPolynomial;
  }
  if (is_length) return options.mode != RunMode::kTrainingBenchmark && !counts_otherwise;
  if (name == "--eval_every" || name == "--stop_at_top1") {
    return options.mode == RunMode::kTrainAndEvaluate && !counts_otherwise &&
           options.classes == 1000;
  }
  return true;
}

}  // namespace

OptionsOfRecipe ApplyRecipe(const ParsedOptions& parsed, const std::vector<std::string>& arguments,
                            int ranks) {
  const Options& requested = parsed.options;
  if (requested.recipe == "none") return {requested, {}};
  const Recipe recipe = FindRecipe(requested, ranks);
  const std::string head = "recipe " + requested.recipe;
  OptionsOfRecipe result;
  result.lines.push_back(fmt::format("{} for {} images in a step: {}", head,
                                     GlobalBatchOf(requested, ranks).images(), recipe.source));
  std::vector<std::string> all;
  for (const Setting& setting : recipe.settings) {
    if (!IsOfUse(setting.name, parsed)) continue;
    const std::string text = setting.name + "=" + setting.value;
    const std::string given = GivenFor(setting.name, parsed.given);
    if (given.empty()) all.push_back(text);
    const std::string source = setting.source.empty() ? "" : " (" + setting.source + ")";
    result.lines.push_back(fmt::format("{}: {}{}", head, text,
                                       given.empty() ? source : ", but " + given + " is given"));
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.emplace_back("--recipe=none");  // parsing holds what came of it to all rules
  result.options = ParseOptions(all).options;
  result.options.recipe = requested.recipe;
  result.options.batch_size = requested.batch_size;
  result.options.accumulate = requested.accumulate;
  result.options.short_ranks = requested.short_ranks;
  return result;
}

}  // namespace trainer
