// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/mllog.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "trainer/options/option_access.h"

namespace trainer {

MlLog::MlLog(std::ostream& out, const Options& options, WallClock clock)
    : out_(out), clock_(std::move(clock)) {
  Point("submission_benchmark", "resnet");
  Point("submission_division", options.mllog_division);
  Point("submission_org", options.mllog_org);
  Point("submission_platform", options.mllog_platform);
  Point("submission_status", options.mllog_status);
  // The caches of the file system are the job's to clear, not this program's.
  Point("cache_clear", false);
  Start("init_start", {});
}

void MlLog::StartTraining(const TrainingSummary& summary) {
  first_epoch_ = summary.first_epoch;
  Point("seed", summary.seed);
  Point("global_batch_size", summary.global_batch);
  Point("gradient_accumulation_steps", summary.batches_per_step);
  Point("train_samples", summary.train_samples);
  Point("eval_samples", summary.eval_samples);
  Optimizer(summary);
  Point("model_bn_span", summary.batch_per_rank);
  Stop("init_stop", {});
  Start("run_start", {});
  is_running_ = true;
  Start("block_start", {{"first_epoch_num", summary.first_epoch + 1},
                        {"epoch_count", summary.epochs - summary.first_epoch}});
  StartEpoch(summary.first_epoch);
}

void MlLog::Optimizer(const TrainingSummary& summary) {
  const std::string& name = summary.optimizer;
  const bool is_lars = name == "lars";
  Point("opt_name", name);
  if (is_lars) Point("lars_epsilon", 0.0);
  Point(name + "_opt_base_learning_rate", summary.base_learning_rate);
  Point((is_lars ? "lars_" : "") + std::string("opt_learning_rate_warmup_epochs"),
        summary.warmup_epochs);
  if (summary.end_learning_rate) {
    Point(name + "_opt_end_learning_rate", *summary.end_learning_rate);
    Point(name + "_opt_learning_rate_decay_poly_power", std::int64_t{2});
  }
  Point(name + "_opt_learning_rate_decay_steps", summary.decay_steps);
  Point(name + "_opt_momentum", summary.momentum);
  Point(name + "_opt_weight_decay", summary.weight_decay);
}

void MlLog::StartEpoch(std::int64_t epoch) {
  open_epoch_ = epoch;
  Start("epoch_start", Epoch(epoch));
}

void MlLog::EndEpoch(std::int64_t epoch, bool is_last) {
  Stop("epoch_stop", Epoch(epoch));
  open_epoch_ = -1;
  if (!is_last) StartEpoch(epoch + 1);
}

void MlLog::Step(const StepMetrics& metrics) {
  if (metrics.ends_epoch) EndEpoch(metrics.epoch, metrics.is_last);
}

void MlLog::RolledBack(const RollbackSummary& summary) {
  if (summary.ends_epoch) EndEpoch(summary.bad_epoch, summary.is_last);
}

void MlLog::EndTraining(std::optional<double> /*images_per_second*/) {
  if (open_epoch_ >= 0) EndEpoch(open_epoch_, /*is_last=*/true);
  Stop("block_stop", {{"first_epoch_num", first_epoch_ + 1}});
}

void MlLog::StartEvaluation(const EvaluationSummary& summary) {
  // A launch that finds its training done only evaluates: that is no run.
  if (is_running_) Start("eval_start", Epoch(summary.epoch));
}

void MlLog::EndEvaluation(const EvaluationMetrics& metrics) {
  if (!is_running_) return;
  Point("eval_accuracy", metrics.top1, Epoch(metrics.epoch));
  Stop("eval_stop", Epoch(metrics.epoch));
}

void MlLog::EndRun(bool complete) {
  if (!is_running_) return;
  Stop("run_stop", {{"status", complete ? "success" : "aborted"}});
  is_running_ = false;
}

LogFields MlLog::Epoch(std::int64_t epoch) const { return {{"epoch_num", epoch + 1}}; }

void MlLog::Point(std::string_view key, const LogValue& value, const LogFields& metadata) {
  Line("POINT_IN_TIME", key, PythonJson(value), metadata);
}

void MlLog::Start(std::string_view key, const LogFields& metadata) {
  Line("INTERVAL_START", key, "null", metadata);
}

void MlLog::Stop(std::string_view key, const LogFields& metadata) {
  Line("INTERVAL_END", key, "null", metadata);
}

void MlLog::Line(std::string_view type, std::string_view key, std::string_view value,
                 const LogFields& metadata) {
  const auto milliseconds =
      std::chrono::floor<std::chrono::milliseconds>(clock_().time_since_epoch()).count();
  out_ << fmt::format(
              ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": \"{}\", "
              "\"key\": \"{}\", \"value\": {}, \"metadata\": {}}}\n",
              milliseconds, type, key, value, PythonJson(metadata))
       << std::flush;
}

namespace {

constexpr const char* kDivisions[] = {"open", "closed"};
constexpr const char* kStatuses[] = {"research", "onprem", "cloud", "preview"};

// What the compliance checker of MLPerf holds both optimizers to; a recipe's values are looked at
// when they are there.
bool BreaksRulesOfMlperf(const Options& options) {
  if (options.mllog_division != "closed" || options.recipe != "none") return false;
  int power = 0;  // of two
  const double weight_decay = std::frexp(options.weight_decay / 0.0001, &power);
  return options.schedule.lr_schedule != RateDecay::kPolynomial ||
         options.schedule.lr_end != 0.0001 || weight_decay != 0.5;
}

Contradictions ContradictionsOfMlLog(const std::set<std::string>& given, const Options& options) {
  const auto of_file = [&](const std::string& option) {
    return Contradiction{given.contains(option) && options.mllog.empty(),
                         option + " is for the log of --mllog=FILE, which is not asked for"};
  };
  return {of_file("--mllog_division"),
          of_file("--mllog_org"),
          of_file("--mllog_platform"),
          of_file("--mllog_status"),
          {BreaksRulesOfMlperf(options),
           "--mllog_division=closed: MLPerf's rules want --lr_schedule=polynomial --lr_end=0.0001 "
           "and a --weight_decay of 0.0001 times a power of two (--recipe=mlperf has them); "
           "--mllog_division=open has no such rules"},
          {!options.mllog.empty() && options.mode != RunMode::kTrainAndEvaluate,
           "--mllog is the log of a training with its evaluation: it needs "
           "--mode=train_and_evaluate, not " +
               NameOf(kModes, options.mode)}};
}

struct MlLogInFile : LogFile, MlLog {
  MlLogInFile(const Options& options, const Logger& log)
      : LogFile(options.mllog, "another --mllog", log), MlLog(stream(), options) {}
  void LogDroppedOutputs() const override { LogFile::LogDroppedOutputs(); }
};

std::unique_ptr<TrainingLog> OpenMlLog(const LoggedLaunch& launch) {
  if (launch.options.mllog.empty()) return nullptr;
  return std::make_unique<MlLogInFile>(launch.options, launch.log);
}

}  // namespace

const LogFormat kMlLog = {
    .options = {{"mllog",
                 "file that gets the :::MLLOG lines of MLPerf (training 4.0); needs "
                 "--mode=train_and_evaluate",
                 kOurs, kMustMatch, kText<&Options::mllog>},
                {"mllog_division",
                 "division of MLPerf whose rules the run keeps, for --mllog; closed: a polynomial "
                 "decay to 0.0001, and a weight decay of 0.0001 times a power of two",
                 kOurs, kSame, kOneOf<kDivisions, &Options::mllog_division>},
                {"mllog_org", "who submits, for --mllog", kOurs, kSame,
                 kValue<&Options::mllog_org>},
                {"mllog_platform", "the system that is measured, for --mllog", kOurs, kSame,
                 kValue<&Options::mllog_platform>},
                {"mllog_status", "how the system can be had, for --mllog", kOurs, kSame,
                 kOneOf<kStatuses, &Options::mllog_status>}},
    .open = OpenMlLog,
    .contradictions = ContradictionsOfMlLog};

}  // namespace trainer
