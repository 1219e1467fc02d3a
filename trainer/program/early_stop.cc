// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/early_stop.h"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>

#include "launcher/protocol/launchers.h"
#include "support/number.h"
#include "trainer/core/thread.h"
#include "trainer/options/option_names.h"
#include "trainer/outputs/report_error.h"

namespace trainer {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

extern "C" void RequestStop(int signal_number) {
  stop_signal = signal_number;
  if (signal_number == SIGINT) std::signal(SIGINT, SIG_DFL);
}

extern "C" void EndForPeer(int) { EndProcessSoon(); }

}  // namespace

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESTART;
  for (const int signal_number : {SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal_number, nullptr, &before);
    const bool is_of_nohup = signal_number == SIGHUP && before.sa_handler == SIG_IGN;
    if (!is_of_nohup) sigaction(signal_number, &action, nullptr);
  }
  action.sa_handler = EndForPeer;
  sigaction(launcher::kPeerFailedSignal, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int StopSignal() { return stop_signal; }

namespace {

constexpr char kEndTime[] = "SLURM_JOB_END_TIME";

std::optional<TimeLimit> TimeLimitOf(const Options& options, const EnvironmentLookup& get,
                                     double now, const Logger& log) {
  const std::optional<std::string> text = get(kEndTime);
  if (options.stop_margin == "off" || !text) return std::nullopt;
  const auto end = support::WholeNumber<std::int64_t>(*text);
  if (!end) {
    log->warn("{}={} is no time in seconds since 1970: the end of the job's time is not watched",
              kEndTime, *text);
    return std::nullopt;
  }
  if (static_cast<double>(*end) <= now) {
    log->warn("{}={} is over: the end of the job's time is not watched", kEndTime, *text);
    return std::nullopt;
  }
  return TimeLimit(now, static_cast<double>(*end), StopMarginSeconds(options.stop_margin));
}

}  // namespace

std::unique_ptr<RunRequests> MakeRunRequests(const Options& options, const EnvironmentLookup& get,
                                             const WallClock& clock, const Logger& log,
                                             RunControl* control, RunLock* lock) {
  if (!KeepsWeights(options.mode)) return nullptr;
  const double now = InSeconds(clock().time_since_epoch());
  return std::make_unique<RunRequests>(
      RunRequestsOptions{.directory = options.results_dir,
                         .limit = TimeLimitOf(options, get, now, log),
                         .clock = clock,
                         .log = log,
                         .control = control,
                         .lock = lock});
}

int EndStopped(const Options& options, std::int64_t step, const StopCause& cause,
               Communicator& communicator, const Logger& log) {
  double of_any_rank = cause.signal_number;
  communicator.AllReduceMax({&of_any_rank, 1});
  const int signal_number = static_cast<int>(of_any_rank);
  const bool has_checkpoint = KeepsWeights(options.mode);
  if (communicator.rank() == 0) {
    log->warn(
        "stopped {} after step {}: {}",
        signal_number != 0 ? "by signal " + std::to_string(signal_number) : cause.request, step,
        !has_checkpoint ? "the same command begins again, --mode=" + NameOf(kModes, options.mode) +
                              " writes no checkpoint"
        : !options.resume
            ? std::string("give the same command again without --resume=never to resume")
        : options.resume_from >= 0
            ? std::string("give the same command again without --resume_from to resume")
            : std::string("give the same command again to resume"));
  }
  constexpr int kDeathBySignal = 128;
  return has_checkpoint ? EX_TEMPFAIL : kDeathBySignal + signal_number;
}

namespace {

// What all ranks of a run call it before they have met.
std::string RunName(const launcher::RankInfo& rank) {
  if (rank.world_size == 1) return "process-" + std::to_string(getpid());
  return std::to_string(rank.master_port) + "-" + std::to_string(rank.restart_count);
}

}  // namespace

std::unique_ptr<HangWatchdog> StartHangWatchdog(const Options& options,
                                                const launcher::RankInfo& rank, RedrawnLine& line) {
  if (options.hang_floor_seconds == 0) return nullptr;
  HangWatchdogOptions watch = {
      .floor_seconds = options.hang_floor_seconds,
      .model_dir = ModelDirectory(options),
      .run_name = RunName(rank),
      .rank = rank.rank,
      .size = rank.world_size,
      .host = rank.host,
      .batches = options.accumulate,
      .on_wait = [rank, &line](const std::string& text) { PrintMessage(line, rank, text); },
      .on_hang =
          [rank, &line](const std::string& report) {
            PrintMessage(line, rank, report);
            // MPI_Abort might hang as well; the starter ends the other ranks.
            ::_exit(EX_SOFTWARE);
          }};
  return std::make_unique<HangWatchdog>(std::move(watch));
}

}  // namespace trainer
