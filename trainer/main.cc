// SPDX-License-Identifier: Apache-2.0
//
// ddltraind: Options -> World -> Data + Model -> Train loop.  How a run goes, from its
// command line to its exit code.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "support/build.h"
#include "support/number.h"
#include "support/standard_streams.h"
#include "support/terminal.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"
#include "trainer/outputs/report_error.h"
#include "trainer/outputs/run_outputs.h"
#include "trainer/program/control_endpoint.h"
#include "trainer/program/data_loaders.h"
#include "trainer/program/early_stop.h"
#include "trainer/program/launch_environment.h"
#include "trainer/program/recipe.h"
#include "trainer/program/run_memory.h"
#include "trainer/program/run_profile.h"
#include "trainer/program/setup.h"
#include "trainer/program/startup.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/train/evaluation/evaluate.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/monitor/hang_watchdog.h"
#include "trainer/train/monitor/monitored.h"

namespace trainer {
namespace {

ProgressOptions ProgressFor(int descriptor) {
  ProgressOptions progress;
  progress.terminal = support::CanRedraw(descriptor, std::getenv("TERM"));
  progress.color = progress.terminal && !EnvironmentVariable("NO_COLOR");
  progress.beside_text = progress.terminal && isatty(STDOUT_FILENO) == 1;
  progress.columns = [descriptor] { return support::ColumnsOf(descriptor); };
  return progress;
}

RunLockOptions MakeRunLockOptions(const Logger& log) {
  RunLockOptions lock;
  lock.job = EnvironmentVariable("SLURM_JOB_ID").value_or("");
  lock.warn = [log](const std::string& line) { log->warn("{}", line); };
  lock.stop_requested = [] { return StopSignal() != 0; };
  return lock;
}

void PrintMemory(const MemoryCheck& memory, const MemoryBudget& room, const Options& options) {
  for (const std::string& line : DescribeMemory(memory, room, options.dry_run == "full")) {
    std::cout << line << '\n';
  }
  RequirePrinted();
}

// The ranks of a run, once they have met.  `watch` and `spans` may be null.
struct World {
  const Options& options;
  const launcher::RankInfo& rank;
  Communicator& met;
  HangWatchdog* watch;
  SpanRecorder* spans;
  RedrawnLine& line;  // of progress
  const Logger& log;

  bool is_root() const { return met.rank() == 0; }
  // Collective.  `advice` is for people whose ranks differ.
  void Agree(const std::vector<ConsistencyItem>& items, const std::string& advice) const {
    CheckRankConsistency(met, rank.host, items, advice);
  }
};

void LogWorld(const World& world, const Backend& backend) {
  if (!world.is_root()) return;
  world.log->info("{}; {}; ddltraind {}", world.met.description(), backend.description(),
                  DDLRUN_VERSION);
  if (backend.is_host() && world.options.precision != "fp32") {
    world.log->warn("--precision={} is for GPUs: the back end {} computes in fp32",
                    world.options.precision, backend.name());
  }
}

// Two slices of a GPU have one PCI bus id.
std::string GpuOf(const Backend& backend) {
  const std::string id = backend.device_id();
  return id.empty() ? "" : id + " " + SliceOfGpu(EnvironmentVariable);
}

// Collective.  Throws Error(EX_CONFIG) where the run does not fit.
MemoryCheck RequireDeviceMemory(const World& world, const TrainConfig& config, Backend& backend,
                                const MemoryBudget& room) {
  const bool is_dry = !world.options.dry_run.empty();
  const RunMemory run = MakeRunMemory(world.options, backend, world.met.size(),
                                      ThreadsOfRank(world.rank.local_world_size));
  MemoryCheck memory = CheckMemory(config, backend, run, room, world.met, /*wants_largest=*/is_dry);
  if (world.is_root() && is_dry && memory.plan && !memory.fits)
    PrintMemory(memory, room, world.options);
  RequireMemory(memory, world.met);
  return memory;
}

// Collective.
DataLoaders OpenSources(const World& world, Backend& backend) {
  const Options& options = world.options;
  const DataLoaderDeps deps = {
      .data_threads = options.data_threads > 0 ? options.data_threads
                                               : ThreadsOfRank(world.rank.local_world_size),
      .scan_cache_dir = ScanCacheDirectory(options, EnvironmentVariable),
      .on_bad_record =
          [log = world.log](const std::string& message) { log->warn("skipped: {}", message); },
      .allocate = [&backend](std::size_t bytes) { return backend.AllocateHost(bytes); },
      .spans = world.spans};
  DataLoaders sources = MakeDataLoaders(options, world.rank, deps);
  world.Agree(DataConsistencyItems(sources),
              "give all ranks the same files, whole, in their --data_dir");
  // OpenMP's runtime, which ends the process where it gets no thread, ends and makes some as it
  // goes: those that end are counted for a while beside the new ones.  One more is to write
  // checkpoints.
  const int spare =
      options.threads > 0 ? options.threads : ThreadsOfRank(world.rank.local_world_size);
  if (backend.is_host()) {
    TryThreads(support::Counted(spare, "spare thread") + " of the back end", spare);
  }
  LogSources(sources, options, deps, world.met, world.log);
  return sources;
}

void PrintDryRun(const World& world, const TrainConfig& config, const DataLoaders& sources,
                 const MemoryCheck& memory, const MemoryBudget& room) {
  const DataLoader& source = sources.training ? *sources.training : *sources.evaluation;
  for (const std::string& line : DescribeRun(config, world.met.size(), source.samples())) {
    std::cout << line << '\n';
  }
  PrintMemory(memory, room, world.options);
}

void PrintResult(const TrainResult& result, const Options& options,
                 const std::vector<ImageClass>& classes) {
  std::cout << (options.json ? FormatPredictionsAsJson(result.predictions, classes)
                             : FormatPredictions(result.predictions, classes));
  for (const std::string& line : result.profile) std::cout << line << '\n';
  RequirePrinted();
}

// The file that says what labels stand for; "": none does.
std::string LabelsFile(const Options& options) {
  if (!options.labels.empty()) return options.labels;
  return options.data_dir.empty() ? "" : options.data_dir + "/" + kLabelsName;
}

// What is in it.
std::vector<ImageClass> NamedClasses(const Options& options, const Logger& log) {
  const std::string where = LabelsFile(options);
  if (where.empty()) return {};
  const bool is_given = !options.labels.empty();
  std::vector<ImageClass> classes;
  try {
    classes = is_given ? ReadClassList(options.labels) : ReadLabels(options.data_dir);
  } catch (const Error& error) {
    if (is_given) throw;
    log->warn("classes have no names: {}", error.what());
  }
  const bool is_shown = options.mode == RunMode::kPredict;
  if (is_shown && !classes.empty() && std::ssize(classes) != options.classes) {
    log->warn("{} has {} classes, but --classes is {}", where, classes.size(), options.classes);
  }
  return classes;
}

// Throws Error(EX_DATAERR) where some of the images could not be read.
void RequireAllRead(const std::vector<ImagePrediction>& predictions) {
  const auto is_bad = [](const ImagePrediction& image) { return !image.problem.empty(); };
  const auto first = std::ranges::find_if(predictions, is_bad);
  if (first == predictions.end()) return;
  const std::string what = first->file.string() + ": " + first->problem;
  if (predictions.size() == 1) throw Error(EX_DATAERR, what);
  throw Error(EX_DATAERR, std::to_string(std::ranges::count_if(predictions, is_bad)) + " of " +
                              std::to_string(predictions.size()) +
                              " images could not be read, the first is " + what);
}

// `outputs` of rank 0, or null.
int Train(const World& world, const TrainConfig& config, const std::vector<ImageClass>& classes,
          RunProfile& measured, PlanCacheFile& plan_file, DataLoaders& sources,
          NetworkDefinition& network, RootOutputs* outputs, RunLock* lock) {
  const auto& [options, rank, met, watch, spans, line, log] = world;
  const std::vector<std::unique_ptr<TrainingLog>> own_logs =
      OpenLogs({options, rank.rank, HostOf(rank), DDLRUN_VERSION, /*job=*/"", log},
               /*is_of_each_rank=*/true);
  Backend& backend = measured.backend();
  const std::unique_ptr<Communicator> nccl = MakeGradientCommunicator(options, backend, met, log);
  Communicator& communicator = nccl ? *nccl : met;
  if (watch != nullptr) watch->ExchangeHosts(communicator);
  const std::unique_ptr<Communicator> watched =
      watch != nullptr ? MakeWatchedCommunicator(communicator, *watch) : nullptr;
  const std::unique_ptr<StackDumpService> stacks = StartStackDumpService(
      options, rank, watched ? *watched : communicator,
      [&] { return world.watch != nullptr ? world.watch->Describe() : std::string(); }, log);
  const std::unique_ptr<ControlPoint> point =
      world.is_root()
          ? MakeControlPoint(options, rank, EnvironmentVariable, DDLRUN_VERSION, log, stacks.get())
          : nullptr;
  const std::unique_ptr<RunRequests> requests =
      world.is_root() ? MakeRunRequests(options, EnvironmentVariable, SystemClock(), log,
                                        point ? &point->control() : nullptr, lock)
                      : nullptr;
  TrainerDeps deps = {.backend = backend,
                      .communicator = watched ? *watched : communicator,
                      .training = sources.training.get(),
                      .evaluation = sources.evaluation.get(),
                      .outputs = {.log = log},
                      .stop_requested = [] { return StopSignal() != 0; },
                      .requests = requests.get(),
                      .agree =
                          [&](const std::vector<ConsistencyItem>& items) {
                            world.Agree(items,
                                        "give all ranks the same --threads and kind of processor");
                          },
                      .network = &network,
                      .spans = spans,
                      .profile = measured.profile(),
                      .variability = measured.variability()};
  deps.host = rank.host;
  deps.describe_device = [&] { return measured.device().Describe(); };
  deps.identify_device = [&] { return measured.device().Identify(); };
  std::optional<DeviceStatePoller> device_state_poller;
  if (KeepsWeights(options.mode)) {
    device_state_poller.emplace(backend);
    deps.device_state = [&] { return device_state_poller->Last(); };
  }
  DataLoaders monitored_loaders;
  if (watch != nullptr) {
    if (sources.training) {
      monitored_loaders.training = MakeMonitoredDataLoader(*sources.training, *watch);
      deps.training = monitored_loaders.training.get();
    }
    if (sources.evaluation) {
      monitored_loaders.evaluation = MakeMonitoredDataLoader(*sources.evaluation, *watch);
      deps.evaluation = monitored_loaders.evaluation.get();
    }
  }
  deps.entered = [&](Activity activity, std::int64_t step) {
    if (world.watch != nullptr) world.watch->Enter(activity, step);
    if (world.is_root()) plan_file.Keep();
  };
  deps.failed = [&](const std::exception& error) {
    if (point) point->End(RunEvent::kFailure);
    if (communicator.size() > 1) communicator.Abort(ReportError(world.line, error, world.rank));
  };
  if (outputs != nullptr) deps.outputs = outputs->outputs();
  for (const auto& own : own_logs) deps.outputs.logs.push_back(own.get());
  TrainResult result;
  try {
    result = RunTrainer(config, deps);
  } catch (const std::exception& error) {
    // Here, since the threads of above may hang on what has failed, and are waited for.
    if (point) point->End(RunEvent::kFailure);
    throw Reported(ReportError(line, error, rank));
  }
  if (point) point->End(RunEvent::kEnd);
  if (world.is_root()) {
    LogRecordCaches(sources, log);
    PrintResult(result, options, classes);
  }
  const bool is_all_logged = outputs == nullptr || outputs->End();
  if (result.ending == Ending::kStopped) {
    return EndStopped(options, result.step, {StopSignal(), requests ? requests->why() : ""},
                      communicator, log);
  }
  RequireAllRead(result.predictions);
  // The result of a training is its weights, that of another mode what it prints.
  if (!is_all_logged && !KeepsWeights(config.mode)) throw Error(EX_OSERR, kLostOutput);
  return EX_OK;
}

// Everything that happens once the ranks have met and have agreed on their options.
int RunTogether(const World& world, const std::vector<std::string>& arguments) {
  const auto& [options, rank, met, watch, spans, line, log] = world;
  TrainConfig config = ConfigOfLaunch(options, rank.restart_count, DDLRUN_VERSION);
  PlanCacheFile plan_file(PlanPath(options), log);
  const std::unique_ptr<Backend> device = ChooseBackendOf(options, rank, plan_file.plans(), log);
  RunProfile measured(options, *device, rank);
  Backend& backend = measured.backend();
  world.Agree({BackendConsistencyItem(backend)},
              "run on nodes of one kind, with the same libraries on each, or name a --backend");
  LogWorld(world, backend);

  // Before anything large is allocated.
  const HostMemory host_memory = FindHostMemory(
      {.processes = rank.local_world_size, .address_space_bytes = AddressSpaceLeft()});
  const MemoryBudget room = ShareGpus(QueryMemoryBudget(backend, host_memory), GpuOf(backend), met);
  if (world.is_root() && !room.sharing.empty()) log->info("{}", room.sharing);
  MemoryCheck memory = RequireDeviceMemory(world, config, backend, room);
  measured.FindPeaks(met, log);
  DataLoaders sources = OpenSources(world, backend);
  if (!options.dry_run.empty()) {
    if (world.is_root()) PrintDryRun(world, config, sources, memory, room);
    return EX_OK;
  }

  std::vector<ImageClass> classes;
  if (world.is_root()) {
    classes = NamedClasses(options, log);
    config.settings = RecordedSettings(options, backend);
    config.data = IdentityOfData(options, sources, classes);
    config.labels_file = LabelsFile(options);
    config.has_own_labels = !options.labels.empty();
  }
  std::unique_ptr<RunLock> lock;
  std::unique_ptr<RootOutputs> outputs;
  if (world.is_root() && options.mode != RunMode::kPredict) {
    lock = PrepareDirectories(config, MakeRunLockOptions(log), log);
    const std::filesystem::path plans = PlanPath(options);
    if (options.plan_cache != "auto" && !plans.empty()) TryToWrite(plans, "another --plan_cache");
    const RunMetadata launch = {.version = DDLRUN_VERSION,
                                .arguments = arguments,
                                .backend = backend.description(),
                                .communication = met.description(),
                                .job = EnvironmentVariable("SLURM_JOB_ID").value_or("")};
    outputs = std::make_unique<RootOutputs>(
        RootOutputsDeps{options, rank, launch, backend.device_id(), ProgressFor(STDERR_FILENO)},
        line, log);
  }
  return Train(world, config, classes, measured, plan_file, sources, *memory.plan, outputs.get(),
               lock.get());
}

std::string VersionText() {
  std::string text = "ddltraind " DDLRUN_VERSION "\nback ends:";
  for (const std::string& name : BackendNames()) {
    const std::string problem = BackendProblem(name);
    text += " " + name + (problem.empty() ? "" : " (" + problem + ")");
  }
  for (const std::string& name : BackendNames()) {
    if (const std::string file = BackendFile(name); !file.empty()) {
      text += "\nmodule of " + name + ": " + file;
    }
  }
  const std::string problem = NcclProblem();
  text += "\nNCCL: " + (problem.empty() ? NcclVersion() : problem);
  return text + "\n" + support::BuildText(support::Part::kTrainer);
}

// For messages, before ReadRank reports what is wrong with the environment.
launcher::RankInfo RankOfMessages() {
  try {
    return ReadRank(EnvironmentVariable);
  } catch (const Error&) {
    return {};
  }
}

int Main(const std::vector<std::string>& arguments) {
  launcher::RankInfo rank = RankOfMessages();
  RedrawnLine line(std::cerr);
  std::unique_ptr<HangWatchdog> watch;
  std::unique_ptr<SpanRecorder> spans;
  std::unique_ptr<Communicator> communicator;
  try {
    ParsedOptions parsed = ParseOptions(arguments);
    if (!parsed.answer.empty()) {
      std::cout << (parsed.answer == "version" ? VersionText() : parsed.answer) << '\n';
      RequirePrinted();
      return EX_OK;
    }
    rank = ReadRank(EnvironmentVariable);
    SplitStep(parsed.options, rank.world_size);
    CatchStopSignals();
    const Logger log = MakeLogger(line, rank.rank, "info");
    watch = StartHangWatchdog(parsed.options, rank, line);
    spans = MakeSpanRecorder(parsed.options);
    communicator = ConnectRanks(rank, watch.get(), spans.get());
    // Before any other collective call: which ones a rank makes is a matter of its options.
    CheckRankConsistency(*communicator, rank.host,
                         RunConsistencyItems(parsed.options, DDLRUN_VERSION),
                         "start all ranks with one command line and program");
    const OptionsOfRecipe run = ApplyRecipe(parsed, arguments, communicator->size());
    if (rank.rank == 0) {
      for (const std::string& note : parsed.notes) log->info(note);
      const std::string step = DescribeStep(parsed.options, rank.world_size);
      if (!step.empty()) log->info(step);
      for (const std::string& line_of_recipe : run.lines) log->info(line_of_recipe);
    }
    return RunTogether({run.options, rank, *communicator, watch.get(), spans.get(), line, log},
                       arguments);
  } catch (const std::exception& error) {
    const int code = ReportError(line, error, rank);
    // The others may be in a collective call, where they would wait for ever.
    if (communicator != nullptr && communicator->size() > 1) communicator->Abort(code);
    return code;
  }
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  support::OpenStandardStreams();
  return trainer::Main({argv + 1, argv + argc});
}
