// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <string>

#include "trainer/core/profiled_op.h"
#include "trainer/core/thread.h"
#include "trainer/options/option_access.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

constexpr const char* kScanCaches[] = {"auto", "off"};
constexpr const char* kComms[] = {"auto", "nccl", "mpi"};
constexpr const char* kRecipes[] = {"none", "bede", "nvidia", "mlperf"};
constexpr const char* kPrecisions[] = {"fp32", "tf32", "fp16", "bf16"};
constexpr const char* kDataFormats[] = {"NHWC", "NCHW"};

// Which of these there are is known elsewhere: the network and the build.
support::Option Arch(const OptionRow& row, Options& options) {
  return Shaped(Value<&Options::arch>(row, options), "resnet50|resnet101|resnet152");
}
support::Option Backend(const OptionRow& row, Options& options) {
  return Shaped(Value<&Options::backend>(row, options), "auto|cuda|cpu|reference");
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
support::Option RunIter(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::schedule, &ScheduleConfig::run_iter>(row, options),
                 NeedsNumber("a number from 0, or -1 for all", [](double x) { return x >= -1; }));
}

support::Option StaticLossScale(const OptionRow& row, Options& options) {
  return Checked(Value<&Options::static_loss_scale>(row, options),
                 NeedsNumber("a number above 0, or -1 for one that adapts",
                             [](double x) { return x == -1 || (x > 0 && std::isfinite(x)); }));
}

std::vector<OptionRow> OptimisationOptions() {
  return {
      {"recipe",
       "set learning rate, decay, optimizer and length, each unless it is given, as others have "
       "published them for as many images in a step: bede, nvidia (both SGD) or mlperf (LARS); the "
       "log has every value and its source",
       kOurs, kSame, kOneOf<kRecipes, &Options::recipe>},
      {"lr_init",
       "learning rate at a global batch of 256, scaled by --lr_scaling to the images of a step",
       kNvidia, kSame, kNotNegative<&Options::schedule, &ScheduleConfig::lr_init>},
      {"lr_warmup_epochs", "epochs over which the learning rate rises from 0", kNvidia, kSame,
       kNotNegative<&Options::schedule, &ScheduleConfig::lr_warmup_epochs>},
      {"lr_scaling",
       "what the images of a step make of --lr_init: linear, x images / 256; sqrt, x the root of "
       "that; none, it is the learning rate",
       kOurs, kSame, kNamed<kRateScalings, &Options::schedule, &ScheduleConfig::lr_scaling>},
      {"lr_schedule",
       "decay behind the warm-up: steps, x0.1 at epochs 30, 60, 80 and 90; cosine; or polynomial, "
       "with the power 2 down to --lr_end, as MLPerf's reference has it",
       kOurs, kSame, kNamed<kRateDecays, &Options::schedule, &ScheduleConfig::lr_schedule>},
      {"lr_end", "learning rate at the end of --lr_schedule=polynomial", kOurs, kSame,
       kNotNegative<&Options::schedule, &ScheduleConfig::lr_end>},
      {"lr_decay_steps",
       "steps from the end of the warm-up to --lr_end, of --lr_schedule=polynomial; 0: those that "
       "are left of the training",
       kOurs, kSame, kNotNegative<&Options::schedule, &ScheduleConfig::lr_decay_steps>},
      {"use_cosine_lr", "--lr_schedule=cosine where that option is not given", kNvidia, kSame,
       kSwitch<&Options::use_cosine_lr>},
      {"cosine_lr", "the same as --use_cosine_lr", kNvidia, kOtherName,
       kFlag<&Options::use_cosine_lr>},
      {"optimizer",
       "sgd, with momentum; or lars, for large batches: SGD whose learning rate goes by the norms "
       "of each tensor of weights",
       kOurs, kSame, kNamed<kOptimizers, &Options::optimizer>},
      {"momentum", "momentum of --optimizer, without Nesterov", kNvidia, kSame,
       kFraction<&Options::momentum>},
      {"weight_decay", "factor of the L2 loss over everything but batch norm", kNvidia, kSame,
       kNotNegative<&Options::weight_decay>},
      {"label_smoothing", "share of the target spread over all classes", kNvidia, kSame,
       kFraction<&Options::label_smoothing>},
      {"weight_init", "variance scaling by fan_in or fan_out", kNvidia, kSame,
       kNamed<kWeightInits, &Options::weight_init>},
      {"zero_init_residual", "start every residual branch as zero", kOurs, kSame,
       kFlag<&Options::zero_init_residual>},
      {"seed", "of weights, order and augmentation; the same on all ranks", kNvidia, kSame,
       kNotNegative<&Options::seed>},
      {"precision",
       "what a GPU holds activations in: fp32, tf32 (fp32 with shorter products), fp16 or bf16; a "
       "CPU computes in fp32 whatever is given",
       kNvidia, kSame, kOneOf<kPrecisions, &Options::precision>},
      {"use_tf_amp",
       "mixed precision: --precision=fp16 instead of fp32 or tf32, as in NVIDIA's scripts", kNvidia,
       kSame, kSwitch<&Options::use_tf_amp>},
      {"amp", "the same as --use_tf_amp", kNvidia, kOtherName, kFlag<&Options::use_tf_amp>},
      {"deterministic", "the same bits each time on a GPU too, which costs speed", kOurs, kSame,
       kFlag<&Options::deterministic>},
      {"programmatic_launch",
       "a GPU starts each kernel of ddltraind's own while the one in front of it ends (CUDA's "
       "programmatic dependent launch: compute capability 9.0 or later, CUDA 12.3 or later); "
       "whether that is faster has not been measured yet",
       kOurs, kSame, kFlag<&Options::programmatic_launch>},
      {"loss_scale", "static loss scale, or the first of a dynamic one", kNvidia, kSame,
       kPositive<&Options::loss_scale>},
      {"use_static_loss_scaling", "keep the loss scale; without it a 16-bit run adapts it", kNvidia,
       kSame, kSwitch<&Options::use_static_loss_scaling>},
      {"static_loss_scale",
       "--loss_scale with --use_static_loss_scaling in one; -1: the loss scale adapts", kNvidia,
       kOtherName, With<&Options::loss_scale>(StaticLossScale)},
      {"freeze_batch_norm", "use the running statistics and leave them as they are", kOurs, kSame,
       kFlag<&Options::freeze_batch_norm>},
      {"on_nan",
       "what a NaN or infinite loss or gradient does: stop the run; skip the update of its step, "
       "of up to 10 steps in a row; or rollback: load the newest checkpoint and continue after the "
       "images of its step, up to 3 times; an overflow that lowers the loss scale is none of it",
       kOurs, kSame, kNamed<kOnNans, &Options::on_nan>},
      {"ema",
       "evaluate and export a moving average of the weights: after each update, average = ema * "
       "average + (1 - ema) * weight, from the first one on with this same decay, such as 0.9999; "
       "training continues with the weights.  Without it: none",
       kOurs, kSame, kDecay<&Options::ema>},
  };
}

std::vector<OptionRow> OptionsOfRun() {
  return {
      {"mode",
       "train, train_and_evaluate, evaluate, predict, training_benchmark or inference_benchmark",
       kNvidia, kSame, kNamed<kModes, &Options::mode>},
      {"arch", "network: resnet50, resnet101 or resnet152 (tests use resnet_tiny)", kNvidia, kSame,
       With<&Options::arch>(Arch)},
      {"batch_size",
       "images that each rank computes together; required, more than 0; with --global_batch_size "
       "the most of them, and not required",
       kNvidia, kSame, kPositive<&Options::batch_size>},
      {"accumulate",
       "batches of --batch_size that each rank computes for one update of the weights, 1 to 65536: "
       "a step of training is all of them",
       kOurs, kSame, kBetween<1, 65536, &Options::accumulate>},
      {"global_batch_size",
       "images of all ranks in a step of training, whatever the number of ranks, 1 to 16777216: "
       "how many batches each rank computes for it, of how many images up to --batch_size, follows",
       kOurs, kSame, kBetweenIfGiven<1, 16777216, &Options::global_batch_size>},
      {"num_iter", "length of training, in --iter_unit", kNvidia, kSame,
       kPositive<&Options::schedule, &ScheduleConfig::num_iter>},
      {"run_iter",
       "how much of --num_iter to do in this launch, in --iter_unit; -1: all of it. "
       "train_and_evaluate evaluates behind it",
       kNvidia, kSame, With<&Options::schedule, &ScheduleConfig::run_iter>(RunIter)},
      {"iter_unit", "epoch or batch (a step)", kNvidia, kSame,
       kNamed<kIterUnits, &Options::schedule, &ScheduleConfig::iter_unit>},
      {"eval_every",
       "train_and_evaluate: evaluate every so many of --iter_unit too, not just at the end, and "
       "keep the best checkpoint; 0: no",
       kOurs, kSame, kNotNegative<&Options::eval_every>},
      {"stop_at_top1",
       "end training once an evaluation of --eval_every finds this top-1, in percent; 0: never",
       kOurs, kSame, kPercentOrNever<&Options::stop_at_top1>},
      {"warmup_steps", "steps before the measurement of a benchmark mode", kNvidia, kSame,
       kNotNegative<&Options::warmup_steps>},
      {"to_predict", "JPEG and PNG files, and directories of them, for --mode=predict", kNvidia,
       kSame, kPaths<&Options::to_predict>},
      {"labels", "for --mode=predict: file whose line n names label n, class n - 1", kOurs, kSame,
       kText<&Options::labels>},
      {"json", "--mode=predict prints JSON lines, an object for each image", kOurs, kSame,
       kFlag<&Options::json>},
      {"dry_run",
       "print the plan (steps, learning rate, memory, the largest batch that fits) and exit; full: "
       "every piece of the network's memory as well",
       kOurs, kSame, With<&Options::dry_run>(DryRun)},
  };
}

std::vector<OptionRow> OptionsOfData() {
  return {
      {"data_dir",
       "directory of the TFRecord files train-* and validation-*; without it: synthetic images",
       kNvidia, kMustMatch, kText<&Options::data_dir>},
      {"data_idx_dir",
       "directory of their index files (ddldata index); without it record boundaries are scanned",
       kNvidia, kOwn, kText<&Options::data_idx_dir>},
      {"scan_cache",
       "auto: one rank of a node scans, the others and later runs there read what it found; off: "
       "every rank scans",
       kOurs, kOwn, kOneOf<kScanCaches, &Options::scan_cache>},
      {"record_cache",
       "directory of this node, on its own disk or in memory (/dev/shm), where records stay once "
       "they were read from --data_dir, for all ranks and later runs; without it: nowhere",
       kOurs, kOwn, kText<&Options::record_cache>},
      {"record_cache_gb", "GB that all of --record_cache may take; 0: half of what is free there",
       kOurs, kOwn, kNotNegative<&Options::record_cache_gb>},
      {"image_size", "height and width of the network's input, 32 to 4096 pixels", kOurs, kSame,
       kBetween<32, 4096, &Options::image_size>},
      {"synthetic_data_size",
       "the same as --image_size where there is no --data_dir; without effect beside one", kNvidia,
       kOtherName, With<&Options::image_size>(Between<32, 4096, &Options::synthetic_data_size>)},
      {"classes", "number of classes; labels in the files are 1 to this", kOurs, kSame,
       With<&Options::classes>(Classes)},
      {"augment", "train: random crop and mirroring; none: centre crop, as in evaluation", kOurs,
       kSame, kNamed<kAugments, &Options::augment>},
      {"augmentation",
       "whose random crops --augment=train takes: tensorflow, those of NVIDIA's trainer; dali, "
       "those of its --use_dali; torchvision, those of RandomResizedCrop",
       kOurs, kSame, kNamed<kAugmentations, &Options::augmentation>},
      {"use_dali",
       "--augmentation=dali where that option is not given; images are decoded as without", kNvidia,
       kSame, kSwitch<&Options::use_dali>},
      {"dali", "the same as --use_dali", kNvidia, kOtherName, kFlag<&Options::use_dali>},
      {"shuffle", "epoch: a new order in every epoch; none: the order of the files", kOurs, kSame,
       kNamed<kShuffles, &Options::shuffle>},
      {"mixup", "mix pairs of images with a weight drawn from Beta(a, a) for each image; 0: off",
       kNvidia, kSame, kNotNegative<&Options::mixup>},
      {"bad_records", "stop at a record that cannot be used, or skip it", kOurs, kSame,
       kNamed<kBadRecords, &Options::bad_records>},
      {"max_bad_records", "records a rank may skip before it stops", kOurs, kSame,
       kNotNegative<&Options::max_bad_records>},
  };
}

std::vector<OptionRow> OptionsOfFiles() {
  return {
      {"results_dir", "directory for logs", kNvidia, kSame, kText<&Options::results_dir>},
      {"model_dir", "directory for checkpoints; without it --results_dir", kNvidia, kSame,
       kText<&Options::model_dir>},
      {"log_filename", "name of the DLLogger JSON log in --results_dir", kNvidia, kSame,
       With<&Options::log_filename>(LogFilename)},
      {"export_dir",
       "directory for model.safetensors: the weights with which a training ends or that an "
       "evaluation was of",
       kNvidia, kMustMatch, kText<&Options::export_dir>},
      {"init_from",
       "file to start from: safetensors, torchvision's names; of a run's directory: the best "
       "evaluated. Not read where the run has a checkpoint",
       kOurs, kMustMatch, kText<&Options::init_from>},
      {"new_head",
       "with --init_from: the last layer starts afresh, so that the file may be of other classes",
       kOurs, kSame, kFlag<&Options::new_head>},
      {"ignore_mismatched_classes",
       "use weights whose labels stand for other classes than those of DATA_DIR/labels.txt, which "
       "is refused otherwise",
       kOurs, kSame, kFlag<&Options::ignore_mismatched_classes>},
      {"finetune_checkpoint", "the same as --init_from", kNvidia, kOtherName,
       kText<&Options::init_from>},
      {"resume",
       "auto: resume from the newest valid checkpoint in --model_dir; never: start from scratch, "
       "and refuse a directory that has checkpoints",
       kOurs, kSame, kNamed<kResumes, &Options::resume>},
      {"resume_from",
       "resume from the checkpoint of step N of --model_dir instead of the newest; newer ones are "
       "set aside. Not for a restart by ddlrun or Slurm, which resumes from the newest",
       kOurs, kSame, With<&Options::resume_from>(ResumeFrom)},
      {"checkpoint_every", "steps between checkpoints; 0: only at the end", kOurs, kSame,
       kNotNegative<&Options::checkpoint_every>},
      {"keep_checkpoints", "newest checkpoints that are kept", kOurs, kSame,
       kPositive<&Options::keep_checkpoints>},
      {"keep_every",
       "every so many of the checkpoints of --checkpoint_every one is kept for ever; 0: none is",
       kOurs, kSame, kNotNegative<&Options::keep_every>},
      {"checkpoint_in_background",
       "on: training continues while a checkpoint is written, except for the last one; off: all "
       "ranks wait for each",
       kOurs, kSame, kNamed<kOnOrOff, &Options::checkpoint_in_background>},
      {"dump_state",
       "safetensors file for weights, gradients, momentum and statistics after a step", kOurs,
       kMustMatch, kText<&Options::dump_state>},
      {"dump_state_step", "the step after which --dump_state writes, counted from 1", kOurs, kSame,
       kPositive<&Options::dump_state_step>},
  };
}

std::vector<OptionRow> OptionsOfMeasurements() {
  return {
      {"trace",
       "write what all ranks did in COUNT steps from step STEP on (from 1) to trace.json in "
       "--results_dir, for Perfetto and Chrome",
       kOurs, kSame, kSteps<&Options::trace>},
      {"profile",
       "time each op of rank 0 in COUNT steps from step STEP on (from 1; without a value 10 from "
       "the 4th), and print how far it is from what the machine allows, worst first; profile.json "
       "and profile.csv in --results_dir have all of it",
       kOurs, kSame, With<&Options::profile>(Profile)},
      {"roofline",
       "what the machine allows, for --profile: GFLOP/s and GB/s of one rank; measured at the "
       "start where it is not given",
       kOurs, kSame, With<&Options::roofline>(Roofline)},
      {"variability_dir",
       "directory that gets the files of the SC22 study of variability among GPUs: how long each "
       "iteration took, and every kernel of a GPU, or op, with clocks, power and temperature, for "
       "ddlbench variability",
       kOurs, kMustMatch, kText<&Options::variability_dir>},
  };
}

std::vector<OptionRow> OptionsOfHow() {
  return {
      {"backend",
       "auto: the fastest that works here, but in a job that was granted GPUs no CPU; or a back "
       "end of this build (ddltraind --version lists them)",
       kOurs, kSame, With<&Options::backend>(Backend)},
      {"comm",
       "what sums gradients over the ranks: nccl, on the GPUs; mpi, in host memory, through what "
       "the ranks have met by; auto: nccl where each rank has a GPU, or NCCL lets them share",
       kOurs, kSame, kOneOf<kComms, &Options::comm>},
      {"reduce_precision",
       "in which type gradients are all-reduced: fp32; or 16bit, that of --precision, with half "
       "the traffic, for which NCCL is needed",
       kOurs, kSame, kNamed<kReducePrecisions, &Options::reduce_precision>},
      {"nccl_max_ctas",
       "multiprocessors that NCCL may take from the computation beside it; 0: as many as it likes",
       kOurs, kSame, kNotNegative<&Options::nccl_max_ctas>},
      {"threads", "threads of the back end; 0: one for each core the rank may use", kOurs, kOwn,
       kBetween<0, kMaxThreads, &Options::threads>},
      {"data_threads", "threads that read and decode images; 0: one for each core the rank may use",
       kOurs, kOwn, kBetween<0, kMaxThreads, &Options::data_threads>},
      {"prefetch", "batches made ahead, 1 to 1000", kOurs, kOwn,
       kBetween<1, 1000, &Options::prefetch>},
      {"display_every",
       "steps between iterations in the NVLOG output; progress lines have times of their own",
       kNvidia, kOwn, kPositive<&Options::display_every>},
      {"graph",
       "auto: start a step, NCCL's sums among it, as one CUDA graph where that can be; on: and "
       "refuse to run otherwise; off: start its kernels one by one",
       kOurs, kSame, kNamed<kGraphs, &Options::graph>},
      {"plan_cache",
       "file that keeps which algorithms are the fastest on a GPU, so that the next start times "
       "none; auto: plans.txt in the directory for checkpoints, of a run that has some; off: none",
       kOurs, kOwn, kText<&Options::plan_cache>},
      {"hang_floor_seconds",
       "end a run that stands still for 5 times its longest step, and for no less than this; 0: "
       "never",
       kOurs, kSame, kNotNegative<&Options::hang_floor_seconds>},
      {"paranoid",
       "compare all ranks' weights and momentum every so many steps and before each checkpoint, "
       "and end with the name of the rank that has others; 0: never",
       kOurs, kSame, kNotNegative<&Options::paranoid>},
      {"replay_check",
       "compute one of every so many steps twice, from the same weights and images, before it is "
       "applied, and end with the name of the rank whose results differ: its GPU or memory is "
       "failing; 0: never",
       kOurs, kSame, kNotNegative<&Options::replay_check>},
      {"stop_margin",
       "when a training in a Slurm job stops with a checkpoint, to be started again: so many "
       "seconds and a step before the end of the job's time; auto: as many as its checkpoints "
       "need; off: it does not",
       kOurs, kSame, With<&Options::stop_margin>(StopMargin)},
  };
}

// What old command lines have and does nothing here.
std::vector<OptionRow> AcceptedOptions() {
  return {
      {"use_xla", "every step is compiled code already", kNvidia, kSame,
       kSwitch<&Options::use_xla>},
      {"xla", "every step is compiled code already", kNvidia, kOtherName, kFlag<&Options::use_xla>},
      {"data_format", "NHWC or NCHW: the back end chooses the layout", kNvidia, kSame,
       kOneOf<kDataFormats, &Options::data_format>},
      {"gpu_memory_fraction", "memory is planned before the first step (--dry_run shows it)",
       kNvidia, kSame, kFraction<&Options::gpu_memory_fraction>},
      {"gpu_id", "the launcher gives every rank its GPU", kNvidia, kOwn,
       kNotNegative<&Options::gpu_id>},
      {"cpu", "the back end is chosen by --backend", kNvidia, kSame, kSwitch<&Options::cpu>},
      {"use_final_conv", "the last layer is a linear layer, as torchvision stores it", kNvidia,
       kSame, kSwitch<&Options::use_final_conv>},
      {"quantize", "there is no quantisation", kNvidia, kSame, kSwitch<&Options::quantize>},
      {"quant_delay", "there is no quantisation", kNvidia, kSame,
       kNotNegative<&Options::quant_delay>},
      {"use_qdq", "there is no quantisation", kNvidia, kSame, kSwitch<&Options::use_qdq>},
      {"symmetric", "there is no quantisation", kNvidia, kSame, kSwitch<&Options::symmetric>},
  };
}

}  // namespace

const std::vector<OptionRow>& OptionTable() {
  static const std::vector<OptionRow> table = [] {
    std::vector<OptionRow> rows;
    const auto append = [&rows](const char* group, std::vector<OptionRow> more) {
      for (OptionRow& row : more) rows.emplace_back(std::move(row)).group = group;
    };
    const char* const logs = "Logs for other programs";
    append("What to do", OptionsOfRun());
    append("Data", OptionsOfData());
    append("Optimisation", OptimisationOptions());
    append("Files", OptionsOfFiles());
    for (const LogFormat* format : LogFormats()) append(logs, format->options);
    append(logs, OptionsOfMeasurements());
    append("How", OptionsOfHow());
    append("Accepted for old command lines, without effect", AcceptedOptions());
    return rows;
  }();
  return table;
}

}  // namespace trainer
