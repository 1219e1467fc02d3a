// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/finding.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "support/quoting.h"

namespace launcher {
namespace {

constexpr double kBusyCpus = 0.5;

template <std::size_t kCount>
bool IsOneOf(std::string_view word, const std::array<const char*, kCount>& words) {
  return std::ranges::find(words, word) != words.end();
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "step" of "step (me/job/train.py:17)" and of "Trainer.step (me/job/train.py:17)".
std::string_view FunctionIn(std::string_view frame) {
  const std::string_view name = frame.substr(0, frame.find(" ("));
  return name.substr(name.rfind('.') + 1);
}

// "step (train.py:17)".
std::string ShortFrame(std::string_view frame) {
  const std::size_t open = frame.find(" (");
  const std::size_t slash = frame.rfind('/');
  if (open == std::string_view::npos || slash == std::string_view::npos || slash < open)
    return std::string(frame);
  return std::string(frame.substr(0, open + 2)) + std::string(frame.substr(slash + 1));
}

// Whether it is none of Python's own or of a package.
bool IsOwnFrame(std::string_view frame) {
  return !Has(frame, "lib/python3") && !Has(frame, "-packages/") && !Has(frame, "<frozen ");
}

// Collectives by the names that PyTorch, Horovod and programs give them.
constexpr std::array kCollectives = {"all_reduce",
                                     "allreduce",
                                     "all_gather",
                                     "allgather",
                                     "all_to_all",
                                     "alltoall",
                                     "reduce_scatter",
                                     "reducescatter",
                                     "broadcast",
                                     "barrier",
                                     "Barrier",
                                     "Allreduce",
                                     "Allgather",
                                     "Bcast",
                                     "all_reduce_coalesced",
                                     "all_gather_into_tensor",
                                     "all_gather_object",
                                     "reduce_scatter_tensor",
                                     "all_to_all_single",
                                     "broadcast_object_list",
                                     "monitored_barrier",
                                     "_store_based_barrier",
                                     "_all_gather_base",
                                     "_reduce_scatter_base"};
// These are so only in files of such libraries.
constexpr std::array kWaitsOfLibraries = {"wait",   "send",    "recv",       "reduce",
                                          "gather", "scatter", "synchronize"};
constexpr std::array kLibraries = {"torch/distributed/", "distributed_c10d.py", "torch/cuda/",
                                   "horovod/", "mpi4py/"};

bool IsOfLibrary(std::string_view frame) {
  return std::ranges::any_of(kLibraries, [frame](const char* part) { return Has(frame, part); });
}

// And functions of C.
constexpr std::array kNativeWaits = {"MPI_",
                                     "PMPI_",
                                     "nccl",
                                     "cudaStreamSynchronize",
                                     "cudaDeviceSynchronize",
                                     "cudaEventSynchronize"};

bool IsNativeWait(std::string_view function) {
  return std::ranges::any_of(kNativeWaits,
                             [&](const char* name) { return function.starts_with(name); });
}

bool IsCollective(std::string_view frame) {
  const std::string_view function = FunctionIn(frame);
  return IsOneOf(function, kCollectives) || IsNativeWait(function) ||
         (IsOneOf(function, kWaitsOfLibraries) && IsOfLibrary(frame));
}

// DistributedDataParallel sums in the backward pass, which computes as well.
bool IsBackward(std::string_view frame) {
  return FunctionIn(frame) == "backward" && Has(frame, "torch/");
}

// "all_reduce (train.py:50)": the outermost frame that is such a one, and the line that calls it,
// beyond the library's own wrappers; "MPI_Recv (Exchange)" with its function where no line is
// known;
// "" where there is none.
std::string OutermostOf(const std::vector<std::string>& stack, bool (*is_one)(std::string_view)) {
  for (std::size_t i = stack.size(); i-- > 0;) {
    if (!is_one(stack[i])) continue;
    const std::string function(FunctionIn(stack[i]));
    std::size_t line = i;
    while (line + 1 < stack.size() &&
           (line == i || IsOfLibrary(stack[line]) || is_one(stack[line])))
      ++line;
    const std::string caller = ShortFrame(stack[line]);
    const std::size_t open = caller.find(" (");
    const bool has_line = open != std::string::npos && Has(caller.substr(open), ":");
    if (has_line) return function + caller.substr(open);
    return line == i ? function : function + " (" + std::string(FunctionIn(caller)) + ")";
  }
  return "";
}

// Where programs wait for other processes, by call and where the kernel does not tell calls, by the
// beginning of its own function.
constexpr std::array kWaitingCalls = {
    "recvfrom",   "recvmsg", "sendto",  "sendmsg", "accept", "connect",    "poll",        "ppoll",
    "epoll_wait", "futex",   "pselect", "select",  "pause",  "sigsuspend", "sigtimedwait"};
constexpr std::array kWaitingFunctions = {
    "futex_",        "poll_schedule", "do_poll",    "do_select",       "do_sys_poll", "ep_poll",
    "do_epoll_wait", "sk_wait",       "wait_woken", "unix_stream",     "inet_",       "tcp_",
    "__skb_wait",    "skb_",          "do_accept",  "do_sigtimedwait", "do_nfs4"};

bool WaitsForOthers(const ProcessFacts& process) {
  if (IsOneOf(process.call, kWaitingCalls)) return true;
  if (process.object == "a socket") return true;
  return process.call.empty() && std::ranges::any_of(kWaitingFunctions, [&](const char* name) {
           return process.wait.starts_with(name);
         });
}

bool IsPipeEnd(const ProcessFacts& process) {
  const bool transfers = process.call.empty() || process.call == "read" ||
                         process.call == "write" || process.call == "readv" ||
                         process.call == "writev";
  return transfers && (process.object == "a pipe" || Has(process.wait, "pipe_read") ||
                       Has(process.wait, "pipe_write") || process.wait == "pipe_wait");
}

// " of /data/x on nfs4 at /home"
std::string ObjectText(const ProcessFacts& process) {
  std::string text;
  if (!process.object.empty()) text = " of " + process.object;
  if (!process.file_system.empty()) text += " on " + process.file_system;
  return text;
}

std::string CallName(const ProcessFacts& process) {
  if (!process.call.empty()) return process.call;
  return process.wait.empty() ? "a call of the kernel" : process.wait;
}

// " in load (data.py:7)".
std::string InText(const ProcessFacts& process) {
  return process.stack.empty() ? "" : " in " + PlaceOf(process.stack);
}

bool IsStopped(const ProcessFacts& process) { return process.state == 'T' || process.state == 't'; }

// A cause that lies in one process alone.
std::optional<std::pair<HangCause, std::string>> CauseIn(const ProcessFacts& process) {
  const auto found = [](HangCause cause, std::string text) {
    return std::pair(cause, std::move(text));
  };
  if (process.state == 't' || (process.state == 'T' && process.tracer != 0)) {
    return found(HangCause::kStopped,
                 fmt::format("held by a debugger (process {})", process.tracer));
  }
  if (process.state == 'T') {
    return found(
        HangCause::kStopped,
        fmt::format("stopped by SIGSTOP or a terminal (kill -CONT {} continues it)", process.pid));
  }
  if (process.state == 'D' && process.is_still) {
    return found(
        HangCause::kUninterruptible,
        fmt::format("cannot be interrupted in {}{}{}{}", CallName(process), ObjectText(process),
                    InText(process),
                    process.thread == 0 ? "" : fmt::format(" (thread {})", process.thread)));
  }
  if (Has(process.call, "nanosleep") || Has(process.wait, "nanosleep")) {
    return found(HangCause::kAsleep, "asleep (" + CallName(process) + ")" + InText(process));
  }
  // Whatever moves on hangs elsewhere, if at all.
  if (!process.is_still) return std::nullopt;
  if (process.call == "open" || process.wait == "wait_for_partner") {
    const bool is_fifo = process.wait == "wait_for_partner" || process.wait == "fifo_open";
    const std::string name = process.object.empty() ? "" : " " + process.object;
    const std::string where = process.file_system.empty() ? "" : " on " + process.file_system;
    return found(HangCause::kOpens,
                 (is_fifo ? "opens " + (name.empty() ? "a FIFO" : "the FIFO" + name) +
                                ", whose other end nobody opens"
                          : "opens " + (name.empty() ? "a file" : name.substr(1)) + where) +
                     InText(process));
  }
  if (IsPipeEnd(process)) {
    const bool writes = Has(process.wait, "write") || process.call.starts_with("write");
    return found(
        HangCause::kPipe,
        fmt::format("{} {}, {}{}", writes ? "writes" : "reads",
                    process.object.empty() || process.object == "a pipe"
                        ? "a pipe"
                        : "the FIFO " + process.object,
                    writes ? "which nobody reads" : "into which nobody writes", InText(process)));
  }
  if (process.call == "flock" || (process.call == "fcntl" && Has(process.wait, "lock"))) {
    return found(HangCause::kLock, "waits for the lock" + ObjectText(process) + InText(process));
  }
  if (process.object == "a terminal" || process.wait == "n_tty_read") {
    return found(HangCause::kTerminal, "waits for its terminal" + InText(process));
  }
  return std::nullopt;
}

// "its process 4713 (python3) " of another one than the rank's first.
std::string WhoseText(const RankFacts& rank, const ProcessFacts& process) {
  if (process.pid == rank.processes.front().pid) return "";
  return fmt::format("its process {} ({}) ", process.pid, support::WithoutControls(process.name));
}

// A process below the focus that was killed.
std::string KilledChildText(const RankFacts& rank) {
  for (const ProcessFacts& process : rank.processes) {
    if (process.state != 'Z' || !WIFSIGNALED(process.wait_status)) continue;
    return fmt::format(
        "its child {} ({}) was killed by signal {}{}", process.pid,
        support::WithoutControls(process.name), WTERMSIG(process.wait_status),
        rank.memory_kills > 0 && WTERMSIG(process.wait_status) == SIGKILL
            ? fmt::format(", as it seems for memory (oom_kill {})", rank.memory_kills)
            : "");
  }
  return "";
}

// Where the first worker is that runs a function of the program's own: one that has nothing to do
// waits in its library.
std::string WorkerText(const RankFacts& rank, const ProcessFacts& focus) {
  if (!WaitsForWorker(focus)) return "";
  for (const ProcessFacts& worker : rank.processes) {
    if (worker.parent != focus.pid) continue;
    // Below that one, a fork has the frames of its parent.
    const auto start = std::ranges::find_if(worker.stack, [](std::string_view frame) {
      return FunctionIn(frame) == "_bootstrap" && Has(frame, "multiprocessing/process.py");
    });
    const auto own = std::find_if(worker.stack.begin(), start, IsOwnFrame);
    if (own == start || start == worker.stack.end()) continue;
    const bool is_busy = worker.state == 'R' || worker.cpus >= kBusyCpus;
    return fmt::format(" for its worker pid {}, which {} in {}", worker.pid,
                       is_busy ? "computes" : "waits", ShortFrame(*own));
  }
  return "";
}

void Add(Finding* finding, HangCause kind, std::string text) {
  finding->kind = kind;
  finding->text = std::move(text);
}

}  // namespace

std::string PlaceOf(const std::vector<std::string>& stack) {
  const auto own = std::ranges::find_if(stack, IsOwnFrame);
  return stack.empty() ? "" : ShortFrame(own == stack.end() ? stack.front() : *own);
}

const char* NameOf(HangCause cause) {
  constexpr const char* kNames[] = {
      "stopped", "ended",    "uninterruptible", "gpu_error",    "opens",   "pipe",
      "lock",    "terminal", "asleep",          "killed_child", "missing", "silent_node",
      "outlier", "computes", "network",         "alike",        "unknown"};
  return kNames[static_cast<int>(cause)];
}

bool WaitsForWorker(const ProcessFacts& process) {
  return std::ranges::any_of(process.stack, [](std::string_view frame) {
    return Has(frame, "torch/utils/data/dataloader.py") || Has(frame, "/multiprocessing/pool.py") ||
           Has(frame, "/multiprocessing/queues.py") || Has(frame, "/concurrent/futures/");
  });
}

bool NeedsFunctions(const ProcessFacts& process) {
  return !CauseIn(process) &&
         (process.state == 'R' || process.cpus >= kBusyCpus || WaitsForOthers(process));
}

std::string CallText(const ProcessFacts& process) {
  return CallName(process) + ObjectText(process) + InText(process);
}

Finding FindingOf(const RankFacts& rank) {
  Finding finding;
  finding.rank = rank.rank;
  finding.host = rank.host;
  finding.pid = rank.processes.front().pid;
  const ProcessFacts& focus = FocusOf(rank);
  finding.is_still = focus.is_still;
  finding.collective = OutermostOf(focus.stack, IsCollective);
  if (finding.collective.empty() && focus.is_still && WaitsForOthers(focus))
    finding.collective = OutermostOf(focus.stack, IsBackward);
  finding.place = !finding.collective.empty() ? finding.collective
                  : !focus.stack.empty()      ? PlaceOf(focus.stack)
                                              : focus.call;
  if (finding.collective.empty()) finding.worker = WorkerText(rank, focus);
  for (const ProcessFacts& process : rank.processes) {
    const auto cause = CauseIn(process);
    if (!cause || (finding.kind && *finding.kind <= cause->first)) continue;
    const bool is_focus = &process == &focus;
    const bool stands = IsStopped(process) || process.state == 'D';
    // A rank in a collective has what its workers make; what else they wait for is no news.
    const bool counts = finding.collective.empty() ? is_focus || stands : is_focus && stands;
    if (!counts) continue;
    Add(&finding, cause->first,
        WhoseText(rank, process) + (process.pid != finding.pid && IsStopped(process) ? "is " : "") +
            cause->second);
    finding.is_direct = is_focus && process.thread == 0;
  }
  if (!rank.gpu_error.empty() && (!finding.kind || *finding.kind > HangCause::kGpuError)) {
    Add(&finding, HangCause::kGpuError, "its GPU has reported an error (" + rank.gpu_error + ")");
    finding.is_direct = false;  // it may be one that others have caused
  }
  const std::string killed = KilledChildText(rank);
  if (finding.kind == HangCause::kPipe && finding.is_direct && !killed.empty())
    Add(&finding, HangCause::kKilledChild, killed + "; it " + finding.text);
  if (finding.kind) return finding;
  if (!killed.empty()) {
    Add(&finding, HangCause::kKilledChild, killed);
  } else if (!finding.collective.empty()) {
    // It waits, though MPI and CUDA may do so with a busy CPU.
  } else if (focus.state == 'R' || focus.cpus >= kBusyCpus) {
    Add(&finding, HangCause::kComputes,
        fmt::format("computes ({:.1f} CPUs){}", focus.cpus, InText(focus)));
  } else if (!WaitsForOthers(focus)) {
    Add(&finding, HangCause::kUnknown, "in " + CallText(focus));
  }
  return finding;
}

}  // namespace launcher
