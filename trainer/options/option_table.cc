// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <string>

#include "trainer/core/profiled_op.h"
#include "trainer/core/thread.h"
#include "trainer/options/option_access.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

constexpr bool kNvidia = true;
constexpr bool kOurs = false;
constexpr bool kIsSwitch = true;
constexpr RankRule kSame = RankRule::kSame;
constexpr RankRule kMustMatch = RankRule::kMustMatch;
constexpr RankRule kOwn = RankRule::kOwn;
constexpr RankRule kOtherName = RankRule::kOtherName;

// Which of these there are is known elsewhere: the network and the build.
support::Option Arch(const OptionRow& row, Options& options) {
  return Shaped(Value<&Options::arch>(row, options), "resnet50|resnet101|resnet152");
}
support::Option Backend(const OptionRow& row, Options& options) {
  return Shaped(Value<&Options::backend>(row, options), "auto|cuda|cpu|reference");
}

support::Option ScanCacheChoice(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::scan_cache>(row, options), {"auto", "off"});
}
support::Option Comm(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::comm>(row, options), {"auto", "nccl", "mpi"});
}
support::Option ResumeFrom(const OptionRow& row, Options& options) {
  return WithDefault(NotNegative<&Options::resume_from>(row, options), "");
}
support::Option StopMargin(const OptionRow& row, Options& options) {
  const auto is_margin = [](const std::string& text) {
    return text == "auto" || text == "off" || StopMarginSeconds(text);
  };
  return Checked(Shaped(Value<&Options::stop_margin>(row, options), "SECONDS|auto|off"),
                 Needs("auto, off or a number of seconds from 0", is_margin));
}
// Without a value it is the first.
support::Option DryRun(const OptionRow& row, Options& options) {
  return Shaped(
      WithDefault(Choice(Value<&Options::dry_run>(row, options), {"short", "full"}), "short"),
      "[short|full]");
}
support::Option Classes(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::classes>(row, options),
                 NeedsNumber("a number of 2 or more classes", [](double x) { return x >= 2; }));
}
support::Option LogFilename(const OptionRow& row, Options& options) {
  const auto reject = [](const std::string& text) {
    const bool fits = text.find('/') == std::string::npos && text != "." && text != "..";
    return fits ? std::string()
                : "needs the name of a file in --results_dir, not '" + text +
                      "': the directory is for --results_dir to say";
  };
  return Checked(Value<&Options::log_filename>(row, options), reject);
}
// Without a value it is steps behind those in which memory and threads are new.
support::Option Profile(const OptionRow& row, Options& options) {
  return Shaped(WithDefault(Steps<&Options::profile>(row, options), "4:10"), "[STEP:COUNT]");
}
support::Option Roofline(const OptionRow& row, Options& options) {
  const auto are_peaks = [](const std::string& text) { return ParsePeaks(text).has_value(); };
  return Checked(Shaped(Value<&Options::roofline>(row, options), "GFLOPS:GBS"),
                 Needs("GFLOPS:GBS, two numbers above 0, such as 989000:4800", are_peaks));
}
support::Option MllogDivision(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::mllog_division>(row, options), {"open", "closed"});
}
support::Option MllogStatus(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::mllog_status>(row, options),
                {"research", "onprem", "cloud", "preview"});
}
support::Option RunIter(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::schedule, &ScheduleConfig::run_iter>(row, options),
                 NeedsNumber("a number from 0, or -1 for all", [](double x) { return x >= -1; }));
}

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

std::vector<OptionRow> OptimisationOptions() {
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

std::vector<OptionRow> RowsBeforeOptimisation() {
  const char* const run = "What to do";
  const char* const data = "Data";
  return {
      {"mode", run,
       "train, train_and_evaluate, evaluate, predict, training_benchmark or inference_benchmark",
       kNvidia, false, kSame, kNamed<kModes, &Options::mode>},
      {"arch", run, "network: resnet50, resnet101 or resnet152 (tests use resnet_tiny)", kNvidia,
       false, kSame, With<&Options::arch>(Arch)},
      {"batch_size", run,
       "images that each rank computes together; required, more than 0; with --global_batch_size "
       "the most of them, and not required",
       kNvidia, false, kSame, kPositive<&Options::batch_size>},
      {"accumulate", run,
       "batches of --batch_size that each rank computes for one update of the weights, 1 to 65536: "
       "a step of training is all of them",
       kOurs, false, kSame, kBetween<1, 65536, &Options::accumulate>},
      {"global_batch_size", run,
       "images of all ranks in a step of training, whatever the number of ranks, 1 to 16777216: "
       "how "
       "many batches each rank computes for it, of how many images up to --batch_size, follows",
       kOurs, false, kSame, kBetweenIfGiven<1, 16777216, &Options::global_batch_size>},
      {"num_iter", run, "length of training, in --iter_unit", kNvidia, false, kSame,
       kPositive<&Options::schedule, &ScheduleConfig::num_iter>},
      {"run_iter", run,
       "how much of --num_iter to do in this launch, in --iter_unit; -1: all of it. "
       "train_and_evaluate evaluates behind it",
       kNvidia, false, kSame, With<&Options::schedule, &ScheduleConfig::run_iter>(RunIter)},
      {"iter_unit", run, "epoch or batch (a step)", kNvidia, false, kSame,
       kNamed<kIterUnits, &Options::schedule, &ScheduleConfig::iter_unit>},
      {"eval_every", run,
       "train_and_evaluate: evaluate every so many of --iter_unit too, not just at the end, and "
       "keep the best checkpoint; 0: no",
       kOurs, false, kSame, kNotNegative<&Options::eval_every>},
      {"stop_at_top1", run,
       "end training once an evaluation of --eval_every finds this top-1, in percent; 0: never",
       kOurs, false, kSame, kPercentOrNever<&Options::stop_at_top1>},
      {"warmup_steps", run, "steps before the measurement of a benchmark mode", kNvidia, false,
       kSame, kNotNegative<&Options::warmup_steps>},
      {"to_predict", run, "JPEG and PNG files, and directories of them, for --mode=predict",
       kNvidia, false, kSame, kPaths<&Options::to_predict>},
      {"labels", run, "for --mode=predict: file whose line n names label n, class n - 1", kOurs,
       false, kSame, kText<&Options::labels>},
      {"json", run, "--mode=predict prints JSON lines, an object for each image", kOurs, false,
       kSame, kFlag<&Options::json>},
      {"dry_run", run,
       "print the plan (steps, learning rate, memory, the largest batch that fits) and exit; full: "
       "every piece of the network's memory as well",
       kOurs, false, kSame, With<&Options::dry_run>(DryRun)},

      {"data_dir", data,
       "directory of the TFRecord files train-* and validation-*; without it: synthetic images",
       kNvidia, false, kMustMatch, kText<&Options::data_dir>},
      {"data_idx_dir", data,
       "directory of their index files (ddldata index); without it record boundaries are scanned",
       kNvidia, false, kOwn, kText<&Options::data_idx_dir>},
      {"scan_cache", data,
       "auto: one rank of a node scans, the others and later runs there read what it found; off: "
       "every rank scans",
       kOurs, false, kOwn, With<&Options::scan_cache>(ScanCacheChoice)},
      {"record_cache", data,
       "directory of this node, on its own disk or in memory (/dev/shm), where records stay once "
       "they "
       "were read from --data_dir, for all ranks and later runs; without it: nowhere",
       kOurs, false, kOwn, kText<&Options::record_cache>},
      {"record_cache_gb", data,
       "GB that all of --record_cache may take; 0: half of what is free there", kOurs, false, kOwn,
       kNotNegative<&Options::record_cache_gb>},
      {"image_size", data, "height and width of the network's input, 32 to 4096 pixels", kOurs,
       false, kSame, kBetween<32, 4096, &Options::image_size>},
      {"synthetic_data_size", data,
       "the same as --image_size where there is no --data_dir; without effect beside one", kNvidia,
       false, kOtherName,
       With<&Options::image_size>(Between<32, 4096, &Options::synthetic_data_size>)},
      {"classes", data, "number of classes; labels in the files are 1 to this", kOurs, false, kSame,
       With<&Options::classes>(Classes)},
      {"augment", data, "train: random crop and mirroring; none: centre crop, as in evaluation",
       kOurs, false, kSame, kNamed<kAugments, &Options::augment>},
      {"augmentation", data,
       "whose random crops --augment=train takes: tensorflow, those of NVIDIA's trainer; dali, "
       "those of its --use_dali; torchvision, those of RandomResizedCrop",
       kOurs, false, kSame, kNamed<kAugmentations, &Options::augmentation>},
      {"use_dali", data,
       "--augmentation=dali where that option is not given; images are decoded as without", kNvidia,
       kIsSwitch, kSame, kSwitch<&Options::use_dali>},
      {"dali", data, "the same as --use_dali", kNvidia, false, kOtherName,
       kFlag<&Options::use_dali>},
      {"shuffle", data, "epoch: a new order in every epoch; none: the order of the files", kOurs,
       false, kSame, kNamed<kShuffles, &Options::shuffle>},
      {"mixup", data,
       "mix pairs of images with a weight drawn from Beta(a, a) for each image; 0: off", kNvidia,
       false, kSame, kNotNegative<&Options::mixup>},
      {"bad_records", data, "stop at a record that cannot be used, or skip it", kOurs, false, kSame,
       kNamed<kBadRecords, &Options::bad_records>},
      {"max_bad_records", data, "records a rank may skip before it stops", kOurs, false, kSame,
       kNotNegative<&Options::max_bad_records>},
  };
}

support::Option DataFormat(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::data_format>(row, options), {"NHWC", "NCHW"});
}

std::vector<OptionRow> RowsAfterOptimisation() {
  const char* const files = "Files";
  const char* const logs = "Logs for other programs";
  const char* const how = "How";
  const char* const accepted = "Accepted for old command lines, without effect";
  return {
      {"results_dir", files, "directory for logs", kNvidia, false, kSame,
       kText<&Options::results_dir>},
      {"model_dir", files, "directory for checkpoints; without it --results_dir", kNvidia, false,
       kSame, kText<&Options::model_dir>},
      {"log_filename", files, "name of the DLLogger JSON log in --results_dir", kNvidia, false,
       kSame, With<&Options::log_filename>(LogFilename)},
      {"export_dir", files,
       "directory for model.safetensors: the weights with which a training ends or that an "
       "evaluation "
       "was of",
       kNvidia, false, kMustMatch, kText<&Options::export_dir>},
      {"init_from", files,
       "file to start from: safetensors, torchvision's names; of a run's directory: the best "
       "evaluated. Not read where the run has a checkpoint",
       kOurs, false, kMustMatch, kText<&Options::init_from>},
      {"new_head", files,
       "with --init_from: the last layer starts afresh, so that the file may be of other classes",
       kOurs, false, kSame, kFlag<&Options::new_head>},
      {"ignore_mismatched_classes", files,
       "use weights whose labels stand for other classes than those of DATA_DIR/labels.txt, which "
       "is refused otherwise",
       kOurs, false, kSame, kFlag<&Options::ignore_mismatched_classes>},
      {"finetune_checkpoint", files, "the same as --init_from", kNvidia, false, kOtherName,
       kText<&Options::init_from>},
      {"resume", files,
       "auto: resume from the newest valid checkpoint in --model_dir; never: start from scratch, "
       "and "
       "refuse a directory that has checkpoints",
       kOurs, false, kSame, kNamed<kResumes, &Options::resume>},
      {"resume_from", files,
       "resume from the checkpoint of step N of --model_dir instead of the newest; newer ones are "
       "set aside. Not for a restart by ddlrun or Slurm, which resumes from the newest",
       kOurs, false, kSame, With<&Options::resume_from>(ResumeFrom)},
      {"checkpoint_every", files, "steps between checkpoints; 0: only at the end", kOurs, false,
       kSame, kNotNegative<&Options::checkpoint_every>},
      {"keep_checkpoints", files, "newest checkpoints that are kept", kOurs, false, kSame,
       kPositive<&Options::keep_checkpoints>},
      {"keep_every", files,
       "every so many of the checkpoints of --checkpoint_every one is kept for ever; 0: none is",
       kOurs, false, kSame, kNotNegative<&Options::keep_every>},
      {"checkpoint_in_background", files,
       "on: training continues while a checkpoint is written, except for the last one; off: all "
       "ranks "
       "wait for each",
       kOurs, false, kSame, kNamed<kOnOrOff, &Options::checkpoint_in_background>},
      {"dump_state", files,
       "safetensors file for weights, gradients, momentum and statistics after a step", kOurs,
       false, kMustMatch, kText<&Options::dump_state>},
      {"dump_state_step", files, "the step after which --dump_state writes, counted from 1", kOurs,
       false, kSame, kPositive<&Options::dump_state_step>},

      {"mllog", logs,
       "file that gets the :::MLLOG lines of MLPerf (training 4.0); needs "
       "--mode=train_and_evaluate",
       kOurs, false, kMustMatch, kText<&Options::mllog>},
      {"mllog_division", logs,
       "division of MLPerf whose rules the run keeps, for --mllog; closed: a polynomial decay to "
       "0.0001, and a weight decay of 0.0001 times a power of two",
       kOurs, false, kSame, With<&Options::mllog_division>(MllogDivision)},
      {"mllog_org", logs, "who submits, for --mllog", kOurs, false, kSame,
       kValue<&Options::mllog_org>},
      {"mllog_platform", logs, "the system that is measured, for --mllog", kOurs, false, kSame,
       kValue<&Options::mllog_platform>},
      {"mllog_status", logs, "how the system can be had, for --mllog", kOurs, false, kSame,
       With<&Options::mllog_status>(MllogStatus)},
      {"prometheus_dir", logs,
       "directory of a text file for each rank and run, ddltraind-rank-00003-1f3a90c2.prom, with "
       "what it does now, for Prometheus' node exporter",
       kOurs, false, kMustMatch, kText<&Options::prometheus_dir>},
      {"tensorboard_dir", logs,
       "directory of event files for TensorBoard, with numbers of every --display_every-th step",
       kOurs, false, kMustMatch, kText<&Options::tensorboard_dir>},
      {"job_comment", logs,
       "show how far the training is as the comment of its Slurm job (scontrol, once a minute), "
       "which replaces the one it has",
       kOurs, false, kSame, kFlag<&Options::job_comment>},
      {"trace", logs,
       "write what all ranks did in COUNT steps from step STEP on (from 1) to trace.json in "
       "--results_dir, for Perfetto and Chrome",
       kOurs, false, kSame, kSteps<&Options::trace>},
      {"profile", logs,
       "time each op of rank 0 in COUNT steps from step STEP on (from 1; without a value 10 from "
       "the 4th), and print how far it is from what the machine allows, worst first; profile.json "
       "and profile.csv in --results_dir have all of it",
       kOurs, false, kSame, With<&Options::profile>(Profile)},
      {"roofline", logs,
       "what the machine allows, for --profile: GFLOP/s and GB/s of one rank; measured at the "
       "start where it is not given",
       kOurs, false, kSame, With<&Options::roofline>(Roofline)},
      {"variability_dir", logs,
       "directory that gets the files of the SC22 study of variability among GPUs: how long each "
       "iteration took, and every kernel of a GPU, or op, with clocks, power and temperature, for "
       "ddlbench variability",
       kOurs, false, kMustMatch, kText<&Options::variability_dir>},

      {"backend", how,
       "auto: the fastest that works here, but in a job that was granted GPUs no CPU; or a back "
       "end of this build (ddltraind --version lists them)",
       kOurs, false, kSame, With<&Options::backend>(Backend)},
      {"comm", how,
       "what sums gradients over the ranks: nccl, on the GPUs; mpi, in host memory, through what "
       "the ranks have met by; auto: nccl where each rank has a GPU, or NCCL lets them share",
       kOurs, false, kSame, With<&Options::comm>(Comm)},
      {"reduce_precision", how,
       "in which type gradients are all-reduced: fp32; or 16bit, that of --precision, "
       "with half the traffic, for which NCCL is needed",
       kOurs, false, kSame, kNamed<kReducePrecisions, &Options::reduce_precision>},
      {"nccl_max_ctas", how,
       "multiprocessors that NCCL may take from the computation beside it; 0: as many as it likes",
       kOurs, false, kSame, kNotNegative<&Options::nccl_max_ctas>},
      {"threads", how, "threads of the back end; 0: one for each core the rank may use", kOurs,
       false, kOwn, kBetween<0, kMaxThreads, &Options::threads>},
      {"data_threads", how,
       "threads that read and decode images; 0: one for each core the rank may use", kOurs, false,
       kOwn, kBetween<0, kMaxThreads, &Options::data_threads>},
      {"prefetch", how, "batches made ahead, 1 to 1000", kOurs, false, kOwn,
       kBetween<1, 1000, &Options::prefetch>},
      {"display_every", how,
       "steps between iterations in the NVLOG output; progress lines have times of their own",
       kNvidia, false, kOwn, kPositive<&Options::display_every>},
      {"graph", how,
       "auto: start a step, NCCL's sums among it, as one CUDA graph where that can be; on: and "
       "refuse to run otherwise; off: start its kernels one by one",
       kOurs, false, kSame, kNamed<kGraphs, &Options::graph>},
      {"plan_cache", how,
       "file that keeps which algorithms are the fastest on a GPU, so that the next start times "
       "none; auto: plans.txt in the directory for checkpoints, of a run that has some; off: none",
       kOurs, false, kOwn, kText<&Options::plan_cache>},
      {"hang_floor_seconds", how,
       "end a run that stands still for 5 times its longest step, and for no less than this; 0: "
       "never",
       kOurs, false, kSame, kNotNegative<&Options::hang_floor_seconds>},
      {"paranoid", how,
       "compare all ranks' weights and momentum every so many steps and before each checkpoint, "
       "and end with the name of the rank that has others; 0: never",
       kOurs, false, kSame, kNotNegative<&Options::paranoid>},
      {"replay_check", how,
       "compute one of every so many steps twice, from the same weights and images, before it is "
       "applied, and end with the name of the rank whose results differ: its GPU or memory is "
       "failing; 0: never",
       kOurs, false, kSame, kNotNegative<&Options::replay_check>},
      {"stop_margin", how,
       "when a training in a Slurm job stops with a checkpoint, to be started again: so many "
       "seconds and a step before the end of the job's time; auto: as many as its checkpoints "
       "need; off: it does not",
       kOurs, false, kSame, With<&Options::stop_margin>(StopMargin)},
      // What old command lines have and does nothing here.
      {"use_xla", accepted, "every step is compiled code already", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::use_xla>},
      {"xla", accepted, "every step is compiled code already", kNvidia, false, kOtherName,
       kFlag<&Options::use_xla>},
      {"data_format", accepted, "NHWC or NCHW: the back end chooses the layout", kNvidia, false,
       kSame, With<&Options::data_format>(DataFormat)},
      {"gpu_memory_fraction", accepted,
       "memory is planned before the first step (--dry_run shows it)", kNvidia, false, kSame,
       kFraction<&Options::gpu_memory_fraction>},
      {"gpu_id", accepted, "the launcher gives every rank its GPU", kNvidia, false, kOwn,
       kNotNegative<&Options::gpu_id>},
      {"cpu", accepted, "the back end is chosen by --backend", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::cpu>},
      {"use_final_conv", accepted, "the last layer is a linear layer, as torchvision stores it",
       kNvidia, kIsSwitch, kSame, kSwitch<&Options::use_final_conv>},
      {"quantize", accepted, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::quantize>},
      {"quant_delay", accepted, "there is no quantisation", kNvidia, false, kSame,
       kNotNegative<&Options::quant_delay>},
      {"use_qdq", accepted, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::use_qdq>},
      {"symmetric", accepted, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::symmetric>},
  };
}

}  // namespace

const std::vector<OptionRow>& OptionTable() {
  static const std::vector<OptionRow> table = [] {
    std::vector<OptionRow> rows = RowsBeforeOptimisation();
    for (const auto& more : {OptimisationOptions(), RowsAfterOptimisation()}) {
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  }();
  return table;
}

}  // namespace trainer
