// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/protocol/launchers.h"
#include "launcher/protocol/rank_list.h"
#include "launcher/shim/rank_log.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

using Unit = LineReader::Unit;

namespace {

namespace fs = std::filesystem;

// Each thread has children of its own.  True where the kernel does not tell them
// (CONFIG_PROC_CHILDREN, which distributions have).
bool MayHaveChildren(pid_t pid) {
  std::error_code error;
  fs::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && threads != fs::directory_iterator(); threads.increment(error)) {
    std::ifstream children(threads->path() / "children");
    pid_t child = 0;
    if (!children.is_open() || children >> child) return true;
  }
  return static_cast<bool>(error);
}

support::Descriptor LogOf(int rank, const std::string& directory) {
  const RankLog log = OpenRankLog(directory.c_str(), rank);
  if (log.fd < 0) throw LaunchError(EX_OSERR, log.problem);
  return support::Descriptor(log.fd);
}

// `instead`, where it is a line, with the end that `text` has, which may be "\r" or none.
std::optional<std::string> WithEndOf(std::string_view text, std::optional<std::string> instead) {
  if (!instead || !instead->ends_with('\n') || text.ends_with('\n')) return instead;
  instead->pop_back();
  instead->append(text.substr(WithoutEnd(text).size()));
  return instead;
}

}  // namespace

JobChildren::~JobChildren() {
  if (!children_.empty() && !launcher().is_direct) {
    Signal(SIGTERM);
    Signal(SIGCONT);
    const auto end = std::chrono::steady_clock::now() + kGraceOfOthers;
    while (!AllEnded() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      Reap({}, [](const JobChild&, const siginfo_t&) {});
    }
  }
  Signal(SIGKILL);
  for (const auto& child : children_) {
    if (!child->has_ended) waitpid(child->pid, nullptr, 0);
  }
}

void JobChildren::Start(
    const ChildCommand& command, const sigset_t& signal_mask, JobOutput* output,
    const std::function<std::optional<std::string>(std::string_view)>& on_launcher_line) {
  launcher_ = command.launcher;
  const bool is_rank = launcher().is_direct;
  ChildSpec spec;
  spec.argv = command.argv;
  spec.environment = command.environment;
  spec.death_signal = is_rank ? SIGKILL : SIGTERM;  // at SIGTERM srun and mpirun end their ranks
  spec.reads_stdin = command.rank <= 0;
  // mpirun and srun would not hear the orders that are blocked where ddlrun was started.
  if (is_rank) {
    spec.signal_mask = signal_mask;
  } else {
    sigemptyset(&spec.signal_mask);
  }
  if (!launcher().makes_step && orphans_ == nullptr) orphans_ = std::make_unique<Orphans>();
  ChildProcess process = StartChild(spec);
  if (options_.cleanup_process != nullptr) {
    options_.cleanup_process->Watch(process.pid,
                                    is_rank ? std::chrono::milliseconds(0) : kGraceOfOthers);
  }

  children_.push_back(std::make_unique<JobChild>());
  JobChild* const child = children_.back().get();
  child->rank = command.rank;
  child->pid = process.pid;
  if (!options_.log_directory.empty() && is_rank) {
    child->log = LogOf(command.rank, options_.log_directory);
  }
  if (is_rank) {
    AddRankOutput(child, &process, output);
  } else {
    AddLauncherOutput(&process, output, on_launcher_line);
  }
}

// The shims write the log files.
void JobChildren::AddLauncherOutput(ChildProcess* process, JobOutput* output,
                                    const OnLine& on_launcher_line) {
  // On a terminal a question without a line end is to be seen at once.  In a file a line of
  // standard error must not come within one of standard output: mpirun passes those on in pieces.
  const bool has_frames = output->has_console();
  const bool keeps_lines = has_frames || (output->JoinsStreams() && ::isatty(STDOUT_FILENO) == 0);
  const OnLine on_line = [on_launcher_line](std::string_view text) -> std::optional<std::string> {
    try {
      return WithEndOf(text, on_launcher_line(WithoutEnd(text)));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  const auto add = [&](support::Descriptor pipe, int to, Unit unit, const OnLine& read) {
    if (!has_frames) return output->Add(std::move(pipe), to, unit, read);
    output->Add(std::move(pipe), to, unit,
                [this, to, output, read, on_line](std::string_view text) {
                  if (ShowFrame(to, &text, output, on_line))
                    return std::optional(std::string(text));
                  return read(text);
                });
  };
  add(std::move(process->stdout_pipe), STDOUT_FILENO, keeps_lines ? Unit::kLines : Unit::kChunks,
      [](std::string_view) { return std::nullopt; });
  add(std::move(process->stderr_pipe), STDERR_FILENO, Unit::kLines, on_line);
}

bool JobChildren::ShowFrame(int to, std::string_view* text, JobOutput* output,
                            const OnLine& on_line) {
  const std::string head = EventHead(options_.event_key);
  const auto found = FindEvent(WithoutEnd(*text), head);
  const std::optional<OutputFrame> frame = found ? ParseOutputFrame(found->report) : std::nullopt;
  if (!frame || static_cast<std::size_t>(frame->rank) >= options_.hosts.size()) return false;
  std::string shown(frame->text);
  shown += frame->end;
  if (to == STDERR_FILENO && !in_line_.contains(frame->rank)) {
    // The last lines of all ranks are known, and what MPI says in them.
    on_line(EmitOutputMark(options_.event_key.c_str()).text + std::string(frame->text));
  }
  if (to == STDERR_FILENO) {
    frame->end.empty() ? (void)in_line_.insert(frame->rank) : (void)in_line_.erase(frame->rank);
  }
  // Of a program that runs beside the rank, and has not ended its line.
  *text = IsLabel(found->before) ? "" : found->before;
  output->Show(frame->rank, to, shown);
  return true;
}

void JobChildren::AddRankOutput(JobChild* child, ChildProcess* process, JobOutput* output) {
  const bool is_shown =
      options_.shown_ranks.empty() || IsInRankList(options_.shown_ranks.c_str(), child->rank);
  const bool has_console = output->has_console();
  // Lines of several ranks do not mix; what a single one writes is seen as it comes.
  const Unit unit = !has_console && options_.hosts.size() == 1 ? Unit::kChunks : Unit::kLines;
  const auto add = [&](support::Descriptor pipe, int to) {
    output->Add(std::move(pipe), to, unit,
                [=, this](std::string_view text) -> std::optional<std::string> {
                  child->AddToTail(to, text, is_shown ? &shown_ : nullptr);
                  if (child->log.is_open()) WriteAll(child->log.fd(), text.data(), text.size());
                  if (!is_shown) return "";
                  if (!has_console) return std::nullopt;
                  const bool has_end = text.ends_with('\n') || text.ends_with('\r');
                  output->Show(child->rank, to, has_end ? text : std::string(text) + '\n');
                  return "";
                });
  };
  add(std::move(process->stdout_pipe), STDOUT_FILENO);
  add(std::move(process->stderr_pipe), STDERR_FILENO);
}

void JobChild::AddToTail(int stream, std::string_view text, Tail* shown) {
  std::string& line = unfinished[stream];
  const auto append = [&line](std::string_view part) {
    line += part.substr(0, kReportedLineBytes - line.size());
  };
  for (std::size_t end = 0; (end = FindLineEnd(text)) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    append(text.substr(0, end));
    tail.Add(line);
    if (stream == STDERR_FILENO && shown != nullptr) shown->Add(line);
    line.clear();
  }
  append(text);
}

bool JobChildren::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->has_ended; });
}

void JobChildren::AddLastLines(RankFailure* failure) const {
  for (const auto& child : children_) {
    if (child->rank != failure->rank) continue;
    Tail all = child->tail;
    for (const auto& [stream, line] : child->unfinished) all.Add(line);
    failure->error_line = ErrorLineOf(all);
    const bool has_unfinished = std::any_of(child->unfinished.begin(), child->unfinished.end(),
                                            [](const auto& line) { return !line.second.empty(); });
    if (has_unfinished || !shown_.EndsWith(child->tail)) {
      failure->last_lines.assign(child->tail.lines().begin(), child->tail.lines().end());
    }
    for (const auto& [stream, line] : child->unfinished) {
      if (!line.empty()) failure->last_lines.push_back(line);
    }
  }
}

std::map<int, pid_t> JobChildren::Processes() const {
  std::map<int, pid_t> processes;
  for (const auto& child : children_) {
    if (child->rank >= 0 && !child->has_ended) processes[child->rank] = child->pid;
  }
  return processes;
}

bool JobChildren::MayHaveStartedAny() const {
  return std::any_of(children_.begin(), children_.end(), [](const auto& child) {
    return !child->has_ended && MayHaveChildren(child->pid);
  });
}

void JobChildren::Signal(int number) const {
  for (const auto& child : children_) {
    if (!child->has_ended) kill(-child->pid, number);
  }
}

void JobChildren::RelaySignal(int number) const {
  const int instead = IsStopRequest(number) ? launcher().stop_signal : 0;
  const bool has_shims = !options_.event_key.empty();  // which know what it stands for
  Signal(has_shims && instead != 0 ? instead : number);
}

void JobChildren::Reap(std::vector<pid_t> others,
                       const std::function<void(const JobChild&, const siginfo_t&)>& on_end) {
  if (orphans_ != nullptr) {
    for (const auto& child : children_) others.push_back(child->pid);
    orphans_->Reap(others);
  }
  std::vector<std::pair<JobChild*, siginfo_t>> ended;
  for (const auto& child : children_) {
    if (child->has_ended) continue;
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid != 0) {
      ended.emplace_back(child.get(), info);
    }
  }
  // A child is reaped only when its group is gone, since no other group can get its number before.
  for (const auto& [child, info] : ended) {
    kill(-child->pid, SIGKILL);
    if (options_.cleanup_process != nullptr) options_.cleanup_process->Forget(child->pid);
    waitpid(child->pid, nullptr, 0);
    child->has_ended = true;
    on_end(*child, info);
  }
}

std::vector<std::string> JobChildren::EndOrphans() const {
  if (orphans_ == nullptr) return {};
  // What is left may be the srun of the daemons, which ends by itself.
  return orphans_->End(std::chrono::milliseconds(launcher().has_daemons ? 1000 : 0));
}

bool SignalsToRanks::SendBySlurm(int number) {
  return children_.launcher().makes_step && !events_.step().empty() &&
         step_signals_.Send(events_.step(), number);
}

// At SIGTERM, SIGINT and SIGHUP srun would kill the step at once, and it does not pass SIGCONT on.
// It gets SIGCONT all the same: Stop may have stopped it before it had named its step.
void SignalsToRanks::Relay(int number) {
  const bool is_kept_by_srun = IsStopRequest(number) || number == SIGCONT;
  const bool is_sent = is_kept_by_srun && !children_.AllEnded() && SendBySlurm(number);
  if (!is_sent || number == SIGCONT) children_.RelaySignal(number);
}

bool SignalsToRanks::NotifyOfFailure() {
  if (children_.AllEnded()) return false;
  const LauncherTraits& launcher = children_.launcher();
  if (launcher.makes_step) return SendBySlurm(kPeerFailedSignal);
  children_.Signal(launcher.failure_signal != 0 ? launcher.failure_signal : kPeerFailedSignal);
  return true;
}

void SignalsToRanks::Stop() {
  is_stopping_ = true;
  has_lost_stop_ = false;
  if (SendBySlurm(SIGSTOP)) return;
  const int instead = children_.launcher().suspend_signal;
  children_.Signal(instead != 0 ? instead : SIGSTOP);
}

bool SignalsToRanks::TakeStopped() {
  if (!is_stopping_ || (!has_lost_stop_ && !step_signals_.HaveArrived())) return false;
  is_stopping_ = false;
  return true;
}

bool SignalsToRanks::KillStep() {
  has_killed_step_ = SendBySlurm(SIGKILL);
  return has_killed_step_;
}

bool SignalsToRanks::TakeLostOrder() {
  bool is_lost = false;
  while (const std::optional<int> number = step_signals_.TakeLost()) {
    is_lost = is_lost || IsStopRequest(*number);
    has_lost_stop_ = has_lost_stop_ || *number == SIGSTOP;
  }
  return is_lost;
}

bool SignalsToRanks::WaitUntilKilled(std::chrono::milliseconds limit) const {
  return WaitUntilStepIsGone(tools_, events_.step(), limit);
}

}  // namespace launcher
