// SPDX-License-Identifier: Apache-2.0

#include "trainer/setup.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <system_error>

#include "trainer/core/error.h"
#include "trainer/data/read_ahead.h"
#include "trainer/data/record_source.h"
#include "trainer/data/synthetic_source.h"

namespace trainer {
namespace {

RunMode ModeOf(const std::string& name) {
  static const std::map<std::string, RunMode> modes = {
      {"train", RunMode::kTrain},
      {"train_and_evaluate", RunMode::kTrainAndEvaluate},
      {"evaluate", RunMode::kEvaluate},
      {"predict", RunMode::kPredict},
      {"training_benchmark", RunMode::kTrainingBenchmark},
      {"inference_benchmark", RunMode::kInferenceBenchmark}};
  return modes.at(name);
}

bool NeedsTraining(const Options& options) { return options.mode.starts_with("train"); }
bool NeedsEvaluation(const Options& options) {
  return options.mode.ends_with("evaluate") || options.mode == "inference_benchmark";
}

std::unique_ptr<Source> SyntheticSource(const Options& options, const launcher::RankInfo& rank,
                                        const SourceParts& parts, bool training) {
  SyntheticSourceOptions synthetic;
  synthetic.batch = options.batch_size;
  synthetic.image_size = options.image_size;
  synthetic.classes = options.classes;
  synthetic.rank = rank.rank;
  synthetic.world_size = rank.world_size;
  synthetic.seed = options.seed;
  synthetic.training = training;
  synthetic.allocate = parts.allocate;
  // Labels are random, so there is nothing to learn about accuracy: a few batches show that
  // evaluation works.
  constexpr std::int64_t kEvaluationSteps = 10;
  if (!training && options.mode != "inference_benchmark") {
    synthetic.samples = kEvaluationSteps * options.batch_size * rank.world_size;
  }
  return MakeSyntheticSource(synthetic);
}

std::unique_ptr<Source> FileSource(const Options& options, const launcher::RankInfo& rank,
                                   const SourceParts& parts, bool training) {
  RecordSourceOptions records;
  records.data_dir = options.data_dir;
  records.index_dir = options.data_idx_dir;
  records.scan_cache_dir = parts.scan_cache_dir;
  records.split = training ? Split::kTrain : Split::kValidation;
  records.training = training;
  records.batch = options.batch_size;
  records.image_size = options.image_size;
  records.rank = rank.rank;
  records.world_size = rank.world_size;
  records.seed = options.seed;
  records.shuffle = options.shuffle != "none";
  records.augment = options.augment == "none" ? Augment::kNone : Augment::kTrain;
  records.classes = options.classes;
  records.bad_records = options.bad_records == "skip" ? BadRecords::kSkip : BadRecords::kStop;
  records.max_bad_records = options.max_bad_records;
  records.on_bad_record = parts.on_bad_record;
  records.threads = parts.data_threads;
  records.prefetch = options.prefetch;
  records.allocate = parts.allocate;
  records.spans = training ? parts.spans : nullptr;
  return MakeRecordSource(records);
}

// A number where all of `text` is one.
template <typename Number>
bool IsNumber(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

LogValue ValueOf(const OptionRow& row, const std::string& text) {
  std::int64_t whole = 0;
  double real = 0;
  if (row.access.is_on_or_off) return !text.empty();
  if (IsNumber(text, whole)) return whole;
  if (IsNumber(text, real)) return real;
  return text;
}

}  // namespace

std::filesystem::path ModelFolder(const Options& options) {
  return options.model_dir.empty() ? options.results_dir : options.model_dir;
}

TrainConfig MakeTrainConfig(const Options& options, const std::string& program_version) {
  TrainConfig config;
  config.mode = ModeOf(options.mode);
  config.architecture = options.arch;
  config.batch = config.mode == RunMode::kPredict ? 1 : options.batch_size;
  config.to_predict = options.to_predict;
  config.height = options.image_size;
  config.width = options.image_size;
  config.classes = options.classes;
  config.warmup_steps = options.warmup_steps;

  config.schedule.unit =
      options.iter_unit == "batch" ? IterationUnit::kBatch : IterationUnit::kEpoch;
  config.schedule.num_iter = options.num_iter;
  config.schedule.run_iter = options.run_iter;
  config.schedule.lr_init = options.lr_init;
  config.schedule.lr_warmup_epochs = options.lr_warmup_epochs;
  config.schedule.cosine = options.use_cosine_lr;
  config.momentum = options.momentum;
  config.weight_decay = options.weight_decay;
  config.label_smoothing = options.label_smoothing;
  config.mixup = options.mixup;
  config.weight_init = options.weight_init == "fan_in" ? WeightInit::kFanIn : WeightInit::kFanOut;
  config.zero_init_residual = options.zero_init_residual;
  config.seed = options.seed;
  config.freeze_batch_norm = options.freeze_batch_norm;
  config.loss_scale = options.loss_scale;
  config.static_loss_scale = options.use_static_loss_scaling;
  config.on_nan = options.on_nan == "skip" ? OnNan::kSkip : OnNan::kStop;

  config.model_dir = ModelFolder(options);
  config.resume = options.resume == "auto";
  config.init_from = options.init_from;
  config.checkpoint_every = options.checkpoint_every;
  config.keep_checkpoints = options.keep_checkpoints;
  config.keep_every = options.keep_every;
  config.checkpoint_in_background = options.checkpoint_in_background == "on";
  if (!options.export_dir.empty()) {
    config.export_file = std::filesystem::path(options.export_dir) / "model.safetensors";
  }
  config.dump_state = options.dump_state;
  config.dump_state_step = options.dump_state_step;
  if (!options.trace.empty()) {
    config.trace = *ParseStepWindow(options.trace);
    config.trace_file = std::filesystem::path(options.results_dir) / "trace.json";
  }
  if (!options.profile.empty()) {
    config.profile = *ParseStepWindow(options.profile);
    config.profile_dir = options.results_dir;
  }
  config.variability_dir = options.variability_dir;
  config.program_version = program_version;
  config.display_every = options.display_every;
  config.compare_every = options.paranoid;
  config.reduce_in_compute_type = options.reduce_precision == "16bit";
  if (options.graph == "on") config.graph = StepGraph::kOn;
  if (options.graph == "off") config.graph = StepGraph::kOff;
  return config;
}

BackendOptions MakeBackendOptions(const Options& options, int local_rank) {
  BackendOptions backend;
  backend.threads = options.threads;
  backend.local_rank = local_rank;
  if (options.precision == "fp16") backend.compute_type = DType::kFloat16;
  if (options.precision == "bf16") backend.compute_type = DType::kBFloat16;
  backend.tf32 = options.precision == "tf32";
  backend.deterministic = options.deterministic;
  return backend;
}

launcher::RankInfo ReadRank(const EnvironmentLookup& get) {
  try {
    return launcher::ReadRankEnvironment(get);
  } catch (const std::runtime_error& error) {
    throw Error(EX_CONFIG, error.what());
  }
}

int StartedTasks(const EnvironmentLookup& get) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const auto value = get(name)) return std::atoi(value->c_str());
  }
  return 0;
}

CommOptions MakeCommOptions(const launcher::RankInfo& rank, int started_tasks,
                            SpanRecorder* spans) {
  CommOptions comm;
  comm.rank = rank.rank;
  comm.size = rank.world_size;
  comm.spawner = rank.spawner;
  comm.pmi = rank.pmi;
  comm.is_one_node = rank.local_world_size == rank.world_size;
  comm.run_dir = rank.run_dir;
  comm.restart_count = rank.restart_count;
  comm.started_tasks = started_tasks;
  comm.spans = spans;
  return comm;
}

std::unique_ptr<SpanRecorder> MakeSpanRecorder(const Options& options) {
  if (options.trace.empty()) return nullptr;
  // Of each step: its phases, some all-reduces, and its images; and the images of batches ahead.
  constexpr std::int64_t kOthers = 100;
  constexpr std::int64_t kMost = 2'000'000;
  const std::int64_t steps = ParseStepWindow(options.trace)->count + options.prefetch + 1;
  const std::int64_t of_step = std::min(options.batch_size, kMost) + kOthers;
  return std::make_unique<SpanRecorder>(static_cast<std::size_t>(std::min(steps * of_step, kMost)));
}

RunMemory MakeRunMemory(const Options& options, const Backend& backend, int ranks, int cores) {
  const auto or_cores = [&](int threads) { return threads > 0 ? threads : cores; };
  const bool reads_files = !options.data_dir.empty() && options.mode != "predict";
  const int sources = (NeedsTraining(options) ? 1 : 0) + (NeedsEvaluation(options) ? 1 : 0);
  RunMemory memory;
  memory.is_host = backend.is_host();
  memory.ranks = ranks;
  memory.host_batches = std::int64_t{sources} * (reads_files ? options.prefetch + 1 : 1);
  const int data_threads = or_cores(options.data_threads);
  memory.host_records =
      reads_files ? static_cast<std::size_t>(sources) * ReadAheadFor(data_threads, 0).bytes : 0;
  memory.host_threads =
      (memory.is_host ? or_cores(options.threads) : 1) + (reads_files ? sources * data_threads : 0);
  return memory;
}

std::string ScanCacheFolder(const Options& options, const EnvironmentLookup& get) {
  if (options.scan_cache == "off") return "";
  std::string base = "/tmp";
  std::error_code error;
  for (const char* name : {"XDG_RUNTIME_DIR", "SLURM_TMPDIR", "TMPDIR"}) {
    const std::string folder = get(name).value_or("");
    const bool is_usable = folder.starts_with('/') &&
                           std::filesystem::is_directory(folder, error) &&
                           ::access(folder.c_str(), W_OK | X_OK) == 0;
    if (!is_usable) continue;
    base = folder;
    break;
  }
  return base + "/ddltraind-" + std::to_string(::geteuid());
}

Sources MakeSources(const Options& options, const launcher::RankInfo& rank,
                    const SourceParts& parts) {
  const auto make = [&](bool training) {
    return options.data_dir.empty() ? SyntheticSource(options, rank, parts, training)
                                    : FileSource(options, rank, parts, training);
  };
  Sources sources;
  if (NeedsTraining(options)) sources.training = make(true);
  if (NeedsEvaluation(options)) sources.evaluation = make(false);
  return sources;
}

LogFields LoggedParameters(const Options& options) {
  LogFields parameters;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOtherName) continue;
    const std::string text = row.access.value(options);
    if (!text.empty() || row.access.is_on_or_off) {
      parameters.emplace_back(row.name, ValueOf(row, text));
    }
  }
  return parameters;
}

std::vector<Fact> RunFacts(const Options& options, const std::string& program_version) {
  std::vector<Fact> facts = SharedOptions(options);
  facts.push_back({"ddltraind", "ddltraind " + program_version});
  return facts;
}

Fact BackendFact(const Backend& backend) {
  return {"back end", "the back end " + backend.name() + " (" + backend.arithmetic() + ")"};
}

std::vector<Fact> DataFacts(const Sources& sources) {
  std::vector<Fact> facts;
  for (const Source* source : {sources.training.get(), sources.evaluation.get()}) {
    if (source == nullptr) continue;
    const std::vector<Fact> more = source->facts();
    facts.insert(facts.end(), more.begin(), more.end());
  }
  return facts;
}

ScanCost CostOfScans(const Sources& sources) {
  ScanCost cost;
  for (const Source* source : {sources.training.get(), sources.evaluation.get()}) {
    if (source != nullptr) cost += source->scan_cost();
  }
  return cost;
}

}  // namespace trainer
