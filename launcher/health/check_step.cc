// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/check_step.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>

#include "launcher/base/error.h"
#include "launcher/health/node_info.h"
#include "launcher/protocol/rank_exit.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/system/child_process.h"
#include "launcher/system/line_reader.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

// How long srun and mpirun may take to end after SIGTERM; they end what they have started in
// seconds.
constexpr std::chrono::seconds kGrace{8};

class StepRunner {
 public:
  StepRunner(const CheckStep& step, SignalRelay& signals, CleanupProcess& cleanup_process)
      : step_(step),
        signals_(signals),
        cleanup_process_(cleanup_process),
        reader_(step.nodes),
        end_(Clock::now() + step.limit) {}
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  // Kills the children that are left, which only happens after an exception.
  ~StepRunner() {
    SignalAll(SIGKILL);
    for (const pid_t pid : children_) waitpid(pid, nullptr, 0);
  }

  CheckStepResult Run() {
    for (const ChildCommand& command : step_.commands) Start(command);
    while (!children_.empty()) {
      Wait();
      while (const std::optional<int> number = signals_.Next()) HandleSignal(*number);
      ReadOutputs();
      ReapEnded();
      if (Clock::now() < end_) continue;
      if (is_stopping_) SignalAll(SIGKILL);
      Stop("the launcher did not end within " + std::to_string(step_.limit.count()) + " s");
    }
    ReadOutputs();
    result_.info = reader_.Facts();
    result_.lines.assign(tail_.lines().begin(), tail_.lines().end());
    return result_;
  }

 private:
  void Start(const ChildCommand& command) {
    ChildSpec spec;
    spec.argv = command.argv;
    spec.environment = command.environment;
    spec.death_signal = SIGTERM;
    spec.signal_mask = signals_.original_mask();
    ChildProcess process = StartChild(spec);
    cleanup_process_.Watch(process.pid, kGrace);
    children_.push_back(process.pid);
    for (support::Descriptor* pipe : {&process.stdout_pipe, &process.stderr_pipe}) {
      outputs_.emplace_back(std::move(*pipe), LineReader::Unit::kLines,
                            [this, head = EventHead(command.event_key)](std::string_view text) {
                              ReadLine(WithoutEnd(text), head);
                            });
    }
  }

  void ReadLine(std::string_view text, const std::string& head) {
    const std::optional<std::string> output = WithoutOutputMarks(text, head);
    const std::string_view line = output ? std::string_view(*output) : text;
    const std::optional<LineWithEvent> found = FindEvent(line, head);
    if (found && (ParseStep(found->report) || ParseRankStart(found->report))) return;
    if (!reader_.Add(line)) tail_.Add(found ? ShownReport(found->report) : std::string(line));
  }

  void Wait() {
    std::vector<pollfd> ready = {{signals_.fd(), POLLIN, 0}};
    for (const LineReader& output : outputs_) {
      if (output.is_open()) ready.push_back({output.fd(), POLLIN, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    poll(ready.data(), ready.size(), std::max(0, static_cast<int>(left.count())));
  }

  void HandleSignal(int number) {
    if (number != SIGTERM && number != SIGINT && number != SIGHUP) return;
    result_.interrupted = number;
    Stop("a stop of ddlrun was requested");
  }

  void ReadOutputs() {
    for (LineReader& output : outputs_) {
      while (output.is_open() && output.Read()) {
      }
    }
  }

  void ReapEnded() {
    std::erase_if(children_, [this](pid_t pid) {
      siginfo_t info = {};
      // The child is reaped when its group is gone, since no other group can get its number before.
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        return false;
      }
      kill(-pid, SIGKILL);
      cleanup_process_.Forget(pid);
      int status = 0;
      waitpid(pid, &status, 0);
      if (result_.end.empty()) {
        result_.end =
            "the launcher ended with exit code " + std::to_string(ExitCodeOfWaitStatus(status));
      }
      return true;
    });
  }

  void Stop(const std::string& how) {
    if (is_stopping_) return;
    is_stopping_ = true;
    result_.end = how;
    if (step_.on_stop) step_.on_stop();
    SignalAll(SIGTERM);
    end_ = Clock::now() + kGrace;
  }

  void SignalAll(int number) const {
    for (const pid_t pid : children_) kill(-pid, number);
  }

  const CheckStep& step_;
  SignalRelay& signals_;
  CleanupProcess& cleanup_process_;
  NodeInfoReader reader_;
  Tail tail_;
  std::vector<pid_t> children_;
  std::vector<LineReader> outputs_;
  Clock::time_point end_;
  bool is_stopping_ = false;
  CheckStepResult result_;
};

}  // namespace

CheckStepResult RunCheckStep(const CheckStep& step, SignalRelay& signals,
                             CleanupProcess& cleanup_process) {
  return StepRunner(step, signals, cleanup_process).Run();
}

}  // namespace launcher
