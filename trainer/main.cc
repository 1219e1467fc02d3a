// SPDX-License-Identifier: Apache-2.0
//
// ddltraind: Options -> World -> Data + Model -> Train loop.  The one place of the trainer that
// reads the environment, prints, handles signals and exits.

#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "support/counted.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/control_point.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"
#include "trainer/data/shard_manifest.h"
#include "trainer/early_end.h"
#include "trainer/memory_check.h"
#include "trainer/noted_settings.h"
#include "trainer/rank_outputs.h"
#include "trainer/root_outputs.h"
#include "trainer/run_folders.h"
#include "trainer/run_profile.h"
#include "trainer/scan_report.h"
#include "trainer/setup.h"
#include "trainer/train/describe_run.h"
#include "trainer/train/hang_watch.h"
#include "trainer/train/trainer.h"

namespace trainer {
namespace {

constexpr char kLostOutput[] =
    "standard output could not be written: lines that were asked for are missing there; make room, "
    "or direct it elsewhere";

volatile std::sig_atomic_t stop_signal = 0;

// The first signal asks for a checkpoint and an orderly end; a second SIGINT ends at once.
extern "C" void RequestStop(int signal_number) {
  stop_signal = signal_number;
  if (signal_number == SIGINT) std::signal(SIGINT, SIG_DFL);
}

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESTART;
  for (const int signal_number : {SIGTERM, SIGUSR1, SIGINT})
    sigaction(signal_number, &action, nullptr);
  // A full disk and a closed pipe are errors to report, not deaths.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int CoresOfThisProcess() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

ProgressOptions ProgressFor(int descriptor) {
  ProgressOptions progress;
  progress.terminal = isatty(descriptor) == 1;
  progress.color = progress.terminal && !EnvironmentVariable("NO_COLOR");
  winsize size = {};
  if (progress.terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    progress.columns = size.ws_col;
  return progress;
}

void Say(const launcher::RankInfo& rank, const std::string& what) {
  std::string who = "ddltraind";
  if (rank.world_size > 1)
    who += ": rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host);
  std::cerr << who + ": " + what + "\n" << std::flush;
}

// What was printed has arrived.
void RequirePrinted() {
  if (!std::cout.flush()) throw Error(EX_OSERR, kLostOutput);
}

// One line that says who failed and why, and the code to leave with.
int Complain(const std::exception& error, const launcher::RankInfo& rank) {
  std::string what = error.what();
  if (what.starts_with("ddltraind: ")) what.erase(0, std::string("ddltraind: ").size());
  Say(rank, what);
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->exit_code();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? EX_OSERR : EX_SOFTWARE;
}

// What all ranks of a run call it before they have met.
std::string RunName(const launcher::RankInfo& rank) {
  if (rank.world_size == 1) return "process-" + std::to_string(getpid());
  return std::to_string(rank.master_port) + "-" + std::to_string(rank.restart_count);
}

// Null if nobody is to look for hung ranks.
std::unique_ptr<HangWatch> MakeHangWatch(const Options& options, const launcher::RankInfo& rank) {
  if (options.hang_floor_seconds == 0) return nullptr;
  HangWatchOptions watch = {.floor_seconds = options.hang_floor_seconds,
                            .model_dir = ModelFolder(options),
                            .run_name = RunName(rank),
                            .rank = rank.rank,
                            .size = rank.world_size,
                            .host = rank.host,
                            .on_hang = [rank](const std::string& report) {
                              Say(rank, report);
                              // MPI_Abort might hang as well; the starter ends the other ranks.
                              ::_exit(EX_SOFTWARE);
                            }};
  return std::make_unique<HangWatch>(std::move(watch));
}

// `watch` and `spans` may be null.
std::unique_ptr<Communicator> MeetOthers(const launcher::RankInfo& rank, HangWatch* watch,
                                         SpanRecorder* spans) {
  const CommOptions options = MakeCommOptions(rank, StartedTasks(EnvironmentVariable), spans);
  if (watch == nullptr) return MakeCommunicator(options);
  watch->BeginWaiting();
  std::unique_ptr<Communicator> communicator = MakeCommunicator(options);
  watch->Pause();
  return communicator;
}

// The name of the back end that --backend asks for.  A job that was granted GPUs is not to train
// on a few cores, a hundred times slower, for as long as its time limit lets it.
std::string BackendFor(const Options& options, const launcher::RankInfo& rank, const Logger& log) {
  if (options.backend != "auto") return options.backend;
  const BackendChoice choice = ChooseBackend();
  if (choice.why_no_gpu.empty()) return choice.name;
  if (rank.gpus > 0) {
    throw Error(EX_UNAVAILABLE, "the job was granted " + support::Counted(rank.gpus, "GPU") +
                                    " on this node, but " + choice.why_no_gpu +
                                    "; --backend=" + choice.name + " computes without");
  }
  if (rank.rank == 0) {
    log->warn("computing on the CPU: {} (--backend={} says that this is meant)", choice.why_no_gpu,
              choice.name);
  }
  return choice.name;
}

// NCCL beside `host`, or null where that sums the gradients itself.
std::unique_ptr<Communicator> MakeNccl(const Options& options, Backend& backend, Communicator& host,
                                       const Logger& log) {
  const bool sums_gradients = host.size() > 1 && options.mode.starts_with("train");
  if (!sums_gradients || options.comm == "mpi") return nullptr;
  const std::string obstacle = NcclObstacle(host, backend.device_id());
  if (!obstacle.empty()) {
    if (options.comm == "nccl") throw Error(EX_CONFIG, "--comm=nccl cannot be: " + obstacle);
    if (options.reduce_precision == "16bit") {
      throw Error(EX_CONFIG, "--reduce_precision=16bit needs NCCL, which cannot be: " + obstacle);
    }
    if (!backend.is_host() && host.rank() == 0) {
      log->warn("gradients are summed in host memory, not by NCCL: {}", obstacle);
    }
    return nullptr;
  }
  NcclParts parts{backend.MakeStream(), backend.MakeEvent(), backend.MakeEvent()};
  std::unique_ptr<Communicator> nccl =
      MakeNcclCommunicator(host, std::move(parts), {.max_ctas = options.nccl_max_ctas});
  if (host.rank() == 0) log->info("gradients: {}", nccl->description());
  return nccl;
}

RunLockOptions MakeRunLockOptions(const Logger& log) {
  RunLockOptions lock;
  lock.job = EnvironmentVariable("SLURM_JOB_ID").value_or("");
  lock.warn = [log](const std::string& line) { log->warn("{}", line); };
  lock.stop_requested = [] { return stop_signal != 0; };
  return lock;
}

void PrintMemory(const MemoryCheck& memory, const MemoryRoom& room, const Options& options) {
  for (const std::string& line : DescribeMemory(memory, room, options.dry_run == "full")) {
    std::cout << line << '\n';
  }
  RequirePrinted();
}

// Everything that happens once the ranks have met.  `watch` and `spans` may be null.
int RunTogether(const std::vector<std::string>& arguments, const Options& options,
                const launcher::RankInfo& rank, Communicator& met, HangWatch* watch,
                SpanRecorder* spans, const Logger& log) {
  const auto agree = [&](const std::vector<Fact>& facts, const std::string& advice) {
    RequireAgreement(met, rank.host, facts, advice);
  };
  // Before any other collective call: which ones a rank makes is a matter of its options.
  agree(RunFacts(options, DDLRUN_VERSION), "start all ranks with one command line and program");
  TrainConfig config = MakeTrainConfig(options, DDLRUN_VERSION);
  // What a restarted run finds is its own: it was refused at first where there was anything else.
  config.resume = config.resume || rank.restart_count > 0;
  const std::unique_ptr<Backend> device =
      MakeBackend(BackendFor(options, rank, log), MakeBackendOptions(options, rank.local_rank));
  RunProfile measured(options, *device, rank);
  Backend* const backend = &measured.backend();
  agree({BackendFact(*backend)},
        "run on nodes of one kind, with the same libraries on each, or name a --backend");
  const bool root = met.rank() == 0;
  if (root) {
    log->info("{}; {}; ddltraind {}", met.description(), backend->description(), DDLRUN_VERSION);
    if (backend->is_host() && options.precision != "fp32") {
      log->warn("--precision={} is for GPUs: the back end {} computes in fp32", options.precision,
                backend->name());
    }
  }

  const int cores = CoresOfThisProcess();
  // Before anything large is allocated.
  const HostMemory host_memory = FindHostMemory(
      {.processes = rank.local_world_size, .address_space_bytes = AddressSpaceLeft()});
  const MemoryRoom room = FindMemoryRoom(*backend, host_memory);
  MemoryCheck memory =
      CheckMemory(config, *backend, MakeRunMemory(options, *backend, met.size(), cores), room, met,
                  /*wants_largest=*/!options.dry_run.empty());
  if (root && !options.dry_run.empty() && memory.plan && !memory.fits)
    PrintMemory(memory, room, options);
  RequireMemory(memory, met);
  measured.FindPeaks(met, log);

  const int data_threads = options.data_threads > 0 ? options.data_threads : cores;
  const SourceParts source_parts = {
      .data_threads = data_threads,
      .scan_cache_dir = ScanCacheFolder(options, EnvironmentVariable),
      .on_bad_record = [&](const std::string& message) { log->warn("skipped: {}", message); },
      .allocate = [&](std::size_t bytes) { return backend->AllocateHost(bytes); },
      .spans = spans};
  Sources sources = MakeSources(options, rank, source_parts);
  agree(DataFacts(sources), "give all ranks the same files, whole, in their --data_dir");
  // OpenMP's runtime, which ends the process where it gets no thread, ends and makes some as it
  // goes: those that end are counted for a while beside the new ones.  One more is to write
  // checkpoints.
  const int spare = options.threads > 0 ? options.threads : cores;
  if (backend->is_host()) {
    TryThreads(support::Counted(spare, "spare thread") + " of the back end", spare);
  }
  const bool reads_files = (sources.training || sources.evaluation) && !options.data_dir.empty();
  if (reads_files) {
    const ScanCost cost = CostOfScans(sources);
    const std::string scans =
        DescribeScans(cost, options.data_idx_dir, source_parts.scan_cache_dir, met);
    if (root) log->info("{}", scans);
    if (root && !cost.note.empty()) log->info("what the scan found is not kept: {}", cost.note);
    if (root && !ReadShardManifest(options.data_dir)) {
      log->info("{}", DescribeMissingManifest(options.data_dir));
    }
  }
  for (const Source* source : {sources.training.get(), sources.evaluation.get()}) {
    if (root && source != nullptr && !source->note().empty()) log->warn("{}", source->note());
  }
  if (!options.dry_run.empty()) {
    const Source& source = sources.training ? *sources.training : *sources.evaluation;
    if (root) {
      for (const std::string& line : DescribeRun(config, met.size(), source.samples())) {
        std::cout << line << '\n';
      }
      PrintMemory(memory, room, options);
    }
    return EX_OK;
  }

  const bool has_outputs = root && options.mode != "predict";
  std::unique_ptr<RunLock> lock;
  std::unique_ptr<RootOutputs> outputs;
  if (has_outputs) {
    if (sources.training) {
      config.settings = NotedSettings(options, backend->name(), sources.training->samples());
    }
    lock = PrepareFolders(config, options.results_dir, MakeRunLockOptions(log), log);
    const LaunchFacts launch = {.version = DDLRUN_VERSION,
                                .arguments = arguments,
                                .backend = backend->description(),
                                .communication = met.description(),
                                .job = EnvironmentVariable("SLURM_JOB_ID").value_or("")};
    outputs =
        std::make_unique<RootOutputs>(MakeRootOutputsOptions(options, rank, backend->device_id(),
                                                             ProgressFor(STDERR_FILENO), launch),
                                      log);
  }

  RankOutputs own_outputs(options, rank, DDLRUN_VERSION, log);
  const std::unique_ptr<Communicator> nccl = MakeNccl(options, *backend, met, log);
  Communicator& communicator = nccl ? *nccl : met;
  if (watch != nullptr) watch->ExchangeHosts(communicator);
  const std::unique_ptr<Communicator> watched =
      watch ? MakeWatchedCommunicator(communicator, *watch) : nullptr;
  const std::unique_ptr<ControlPoint> point =
      root ? MakeControlPoint(options, rank, EnvironmentVariable, DDLRUN_VERSION, log) : nullptr;
  const std::unique_ptr<RunRequests> requests =
      root ? MakeRunRequests(options, EnvironmentVariable, SystemClock(), log,
                             point ? &point->control() : nullptr)
           : nullptr;
  TrainParts parts = {.backend = *backend,
                      .communicator = watched ? *watched : communicator,
                      .training = sources.training.get(),
                      .evaluation = sources.evaluation.get(),
                      .outputs = {.log = log},
                      .stop_requested = [] { return stop_signal != 0; },
                      .requests = requests.get(),
                      .agree =
                          [&](const std::vector<Fact>& facts) {
                            agree(facts, "give all ranks the same --threads and kind of processor");
                          },
                      .network = &*memory.plan,
                      .spans = spans,
                      .profile = measured.profile(),
                      .variability = measured.variability()};
  parts.host = rank.host;
  if (watch) {
    parts.entered = [&](Activity activity, std::int64_t step) { watch->Enter(activity, step); };
  }
  parts.failed = [&](const std::exception& error) {
    if (point) point->End(RunEvent::kFailure);
    if (communicator.size() > 1) communicator.Abort(Complain(error, rank));
  };
  if (outputs) parts.outputs = outputs->outputs();
  parts.outputs = own_outputs.AddedTo(parts.outputs);
  const TrainResult result = RunTrainer(config, parts);
  if (point) point->End(RunEvent::kEnd);
  if (root) {
    for (const Prediction& prediction : result.predictions) {
      std::cout << "class " << prediction.label << " probability " << prediction.probability
                << '\n';
    }
    for (const std::string& line : result.profile) std::cout << line << '\n';
    RequirePrinted();
  }
  const bool is_all_said = !outputs || outputs->End();
  if (result.ending == Ending::kStopped) {
    return EndStopped(options, result.step, {stop_signal, requests ? requests->why() : ""},
                      communicator, log);
  }
  // The result of a training is its weights, that of another mode what it prints.
  const bool keeps_weights =
      config.mode == RunMode::kTrain || config.mode == RunMode::kTrainAndEvaluate;
  if (!is_all_said && !keeps_weights) throw Error(EX_OSERR, kLostOutput);
  return EX_OK;
}

std::string VersionText() {
  std::string text = "ddltraind " DDLRUN_VERSION "\nback ends:";
  for (const std::string& name : BackendNames()) {
    const std::string problem = BackendProblem(name);
    text += " " + name + (problem.empty() ? "" : " (" + problem + ")");
  }
  const std::string problem = NcclProblem();
  return text + "\nNCCL: " + (problem.empty() ? NcclVersion() : problem);
}

int Main(const std::vector<std::string>& arguments) {
  launcher::RankInfo rank;
  std::unique_ptr<HangWatch> watch;
  std::unique_ptr<SpanRecorder> spans;
  std::unique_ptr<Communicator> communicator;
  try {
    const ParsedOptions parsed = ParseOptions(arguments);
    if (!parsed.answer.empty()) {
      std::cout << (parsed.answer == "version" ? VersionText() : parsed.answer) << '\n';
      RequirePrinted();
      return EX_OK;
    }
    rank = ReadRank(EnvironmentVariable);
    CatchStopSignals();
    const Logger log = MakeLogger(std::cerr, rank.rank, "info");
    watch = MakeHangWatch(parsed.options, rank);
    spans = MakeSpanRecorder(parsed.options);
    communicator = MeetOthers(rank, watch.get(), spans.get());
    if (rank.rank == 0) {
      for (const std::string& note : parsed.notes) log->info(note);
    }
    return RunTogether(arguments, parsed.options, rank, *communicator, watch.get(), spans.get(),
                       log);
  } catch (const std::exception& error) {
    const int code = Complain(error, rank);
    // The others may be in a collective call, where they would wait for ever.
    if (communicator != nullptr && communicator->size() > 1) communicator->Abort(code);
    return code;
  }
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) { return trainer::Main({argv + 1, argv + argc}); }
