// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/trial_runs.h"

#include <poll.h>

#include <csignal>
#include <utility>

#include "launcher/system/child_process.h"
#include "launcher/system/files.h"

namespace launcher {
namespace {

using TrialClock = std::chrono::steady_clock;

// How long a ddlrun that was told to stop may take to end its ranks.
constexpr std::chrono::seconds kTimeoutWithEnd{20};
constexpr int kMillisecondsBetweenLooks = 20;

}  // namespace

TrialRuns::TrialRuns(std::vector<std::string> options, const Environment& environment,
                     SignalRelay& signals)
    : options_(std::move(options)), environment_(environment), signals_(signals) {}

TrialOutput TrialRuns::Run(const std::vector<std::string>& more,
                           const std::vector<std::string>& program, std::chrono::seconds limit) {
  std::vector<std::string> argv = {ProgramDirectory() + "/ddlrun"};
  for (const std::vector<std::string>* words : {&options_, &more, &program}) {
    argv.insert(argv.end(), words->begin(), words->end());
  }
  const TrialClock::time_point start = TrialClock::now();
  CommandOutput run(argv, environment_);
  int stopped_by = 0;
  while (!run.HasEnded()) {
    while (const std::optional<int> number = signals_.Next()) {
      if (*number == SIGTERM || *number == SIGINT || *number == SIGHUP) stopped_by = *number;
    }
    if (stopped_by != 0 || TrialClock::now() - start > limit) {
      // It ends its ranks.
      kill(run.pid(), SIGTERM);
      run.Wait(kTimeoutWithEnd);
      if (stopped_by != 0) throw StoppedBySignal(stopped_by);
      return {false, run.text(), 0};
    }
    pollfd ready = {signals_.fd(), POLLIN, 0};
    poll(&ready, 1, kMillisecondsBetweenLooks);
  }
  const double seconds = std::chrono::duration<double>(TrialClock::now() - start).count();
  const bool is_ok = run.Wait(std::chrono::seconds(1));
  return {is_ok, run.text(), seconds};
}

std::string TrialRuns::LastLineOf(const TrialOutput& output) {
  const std::size_t end = output.text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "nothing was printed";
  const std::size_t begin = output.text.rfind('\n', end);
  return output.text.substr(begin == std::string::npos ? 0 : begin + 1,
                            end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace launcher
