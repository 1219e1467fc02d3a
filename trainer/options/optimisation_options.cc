// SPDX-License-Identifier: Apache-2.0

#include "trainer/options/optimisation_options.h"

#include <cmath>

#include "trainer/options/option_access.h"

namespace trainer {
namespace {

support::Option Recipe(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::recipe>(row, options), {"none", "bede", "nvidia", "mlperf"});
}
support::Option Precision(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::precision>(row, options), {"fp32", "tf32", "fp16", "bf16"});
}
support::Option Seed(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::seed>(row, options),
                 NeedsNumber("a number from 0", [](double x) { return x >= 0; }));
}

support::Option StaticLossScale(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::static_loss_scale>(row, options),
                 NeedsNumber("a number above 0, or -1 for one that adapts",
                             [](double x) { return x == -1 || (x > 0 && std::isfinite(x)); }));
}

}  // namespace

std::vector<OptionRow> OptimisationOptions() {
  constexpr bool kNvidia = true;
  constexpr bool kOurs = false;
  constexpr bool kIsSwitch = true;
  constexpr RankRule kSame = RankRule::kSame;
  constexpr RankRule kOtherName = RankRule::kOtherName;
  const char* const group = "Optimisation";
  return {
      {"recipe", group,
       "set learning rate, decay, optimizer and length, each unless it is given, as others have "
       "published them for as many images in a step: bede, nvidia (both SGD) or mlperf (LARS); "
       "the log has every value and its source",
       kOurs, false, kSame, With<&Options::recipe>(Recipe)},
      {"lr_init", group,
       "learning rate at a global batch of 256, scaled by --lr_scaling to the images of a step",
       kNvidia, false, kSame, kNotNegative<&Options::schedule, &ScheduleConfig::lr_init>},
      {"lr_warmup_epochs", group, "epochs over which the learning rate rises from 0", kNvidia,
       false, kSame, kNotNegative<&Options::schedule, &ScheduleConfig::lr_warmup_epochs>},
      {"lr_scaling", group,
       "what the images of a step make of --lr_init: linear, x images / 256; sqrt, x the root of "
       "that; none, it is the learning rate",
       kOurs, false, kSame, kNamed<kRateScalings, &Options::schedule, &ScheduleConfig::lr_scaling>},
      {"lr_schedule", group,
       "decay behind the warm-up: steps, x0.1 at epochs 30, 60, 80 and 90; cosine; or polynomial, "
       "with the power 2 down to --lr_end, as MLPerf's reference has it",
       kOurs, false, kSame, kNamed<kRateDecays, &Options::schedule, &ScheduleConfig::lr_schedule>},
      {"lr_end", group, "learning rate at the end of --lr_schedule=polynomial", kOurs, false, kSame,
       kNotNegative<&Options::schedule, &ScheduleConfig::lr_end>},
      {"lr_decay_steps", group,
       "steps from the end of the warm-up to --lr_end, of --lr_schedule=polynomial; 0: those that "
       "are left of the training",
       kOurs, false, kSame, kNotNegative<&Options::schedule, &ScheduleConfig::lr_decay_steps>},
      {"use_cosine_lr", group, "--lr_schedule=cosine where that option is not given", kNvidia,
       kIsSwitch, kSame, kSwitch<&Options::use_cosine_lr>},
      {"cosine_lr", group, "the same as --use_cosine_lr", kNvidia, false, kOtherName,
       kFlag<&Options::use_cosine_lr>},
      {"optimizer", group,
       "sgd, with momentum; or lars, for large batches: SGD whose learning rate goes by the norms "
       "of each tensor of weights",
       kOurs, false, kSame, kNamed<kOptimizers, &Options::optimizer>},
      {"momentum", group, "momentum of --optimizer, without Nesterov", kNvidia, false, kSame,
       kFraction<&Options::momentum>},
      {"weight_decay", group, "factor of the L2 loss over everything but batch norm", kNvidia,
       false, kSame, kNotNegative<&Options::weight_decay>},
      {"label_smoothing", group, "share of the target spread over all classes", kNvidia, false,
       kSame, kFraction<&Options::label_smoothing>},
      {"weight_init", group, "variance scaling by fan_in or fan_out", kNvidia, false, kSame,
       kNamed<kWeightInits, &Options::weight_init>},
      {"zero_init_residual", group, "start every residual branch as zero", kOurs, false, kSame,
       kFlag<&Options::zero_init_residual>},
      {"seed", group, "of weights, order and augmentation; the same on all ranks", kNvidia, false,
       kSame, With<&Options::seed>(Seed)},
      {"precision", group,
       "what a GPU holds activations in: fp32, tf32 (fp32 with shorter products), fp16 or bf16; a "
       "CPU computes in fp32 whatever is given",
       kNvidia, false, kSame, With<&Options::precision>(Precision)},
      {"use_tf_amp", group,
       "mixed precision: --precision=fp16 instead of fp32 or tf32, as in NVIDIA's scripts", kNvidia,
       kIsSwitch, kSame, kSwitch<&Options::use_tf_amp>},
      {"amp", group, "the same as --use_tf_amp", kNvidia, false, kOtherName,
       kFlag<&Options::use_tf_amp>},
      {"deterministic", group, "the same bits each time on a GPU too, which costs speed", kOurs,
       false, kSame, kFlag<&Options::deterministic>},
      {"loss_scale", group, "static loss scale, or the first of a dynamic one", kNvidia, false,
       kSame, kPositive<&Options::loss_scale>},
      {"use_static_loss_scaling", group, "keep the loss scale; without it a 16-bit run adapts it",
       kNvidia, kIsSwitch, kSame, kSwitch<&Options::use_static_loss_scaling>},
      {"static_loss_scale", group,
       "--loss_scale with --use_static_loss_scaling in one; -1: the loss scale adapts", kNvidia,
       false, kOtherName, With<&Options::loss_scale>(StaticLossScale)},
      {"freeze_batch_norm", group, "use the running statistics and leave them as they are", kOurs,
       false, kSame, kFlag<&Options::freeze_batch_norm>},
      {"on_nan", group,
       "what a NaN or infinite loss or gradient does: stop the run; skip the update of its step, "
       "of up to 10 steps in a row; or rollback: load the newest checkpoint and continue after "
       "the images of its step, up to 3 times; an overflow that lowers the loss scale is none of "
       "it",
       kOurs, false, kSame, kNamed<kOnNans, &Options::on_nan>},
      {"ema", group,
       "evaluate and export a moving average of the weights: after each update, average = ema * "
       "average + (1 - ema) * weight, from the first one on with this same decay, such as 0.9999; "
       "training continues with the weights.  Without it: none",
       kOurs, false, kSame, kDecay<&Options::ema>},
  };
}

}  // namespace trainer
