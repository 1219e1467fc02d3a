// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/diagnosis.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

constexpr double kBusyCpus = 0.5;

// What a rank does, as far as one can tell without the others.  `kind` is nullopt of one that waits
// for others, as in a collective.
struct Finding {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::optional<HangCause> kind;
  std::string text;        // "stopped by a signal ..."
  std::string collective;  // "all_reduce (train.py:50)" of one that waits in a collective
  std::string place;       // a function, a call: what ranks that do the same have in common
  // False where it is a worker or another thread that is held up: the rank may not need it now.
  bool is_direct = true;
  std::string launched;  // "has launched AllReduce 17 times (others 18)", as NCCL counts them
  bool was_seen = true;  // false: its node was not looked at
  bool is_still = true;  // nothing of it has run between the two looks
};

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

std::string CallText(const ProcessFacts& process) {
  if (!process.call.empty()) return process.call;
  return process.wait.empty() ? "a call of the kernel" : process.wait;
}

// Where a process is: its innermost function that is none of Python's own or of a package, which
// wait in many places for the same; of those that have none such, the innermost.
std::string PlaceOf(const std::vector<std::string>& stack) {
  const auto own = std::ranges::find_if(stack, [](std::string_view frame) {
    return !Has(frame, "lib/python3") && !Has(frame, "-packages/") && !Has(frame, "<frozen ");
  });
  return stack.empty() ? "" : ShortFrame(own == stack.end() ? stack.front() : *own);
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
        fmt::format("cannot be interrupted in {}{}{}{}", CallText(process), ObjectText(process),
                    InText(process),
                    process.thread == 0 ? "" : fmt::format(" (thread {})", process.thread)));
  }
  if (Has(process.call, "nanosleep") || Has(process.wait, "nanosleep")) {
    return found(HangCause::kAsleep, "asleep (" + CallText(process) + ")" + InText(process));
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

void Add(Finding* finding, HangCause kind, std::string text) {
  finding->kind = kind;
  finding->text = std::move(text);
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
    Add(&finding, HangCause::kUnknown, "in " + CallText(focus) + ObjectText(focus) + InText(focus));
  }
  return finding;
}

// "AllReduce 17 times (others 18), AllGather 1 time (others 0)".
std::string DifferenceText(const std::vector<CollectiveCount>& own,
                           const std::vector<CollectiveCount>& others) {
  std::map<std::string, std::pair<long long, long long>> counts;
  for (const CollectiveCount& one : own) counts[one.name].first = one.count;
  for (const CollectiveCount& one : others) counts[one.name].second = one.count;
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count.first == count.second) continue;
    text += fmt::format("{}{} {} (others {})", text.empty() ? "" : ", ", name,
                        support::Counted(count.first, "time"), count.second);
  }
  return text;
}

long long TotalOf(const std::vector<CollectiveCount>& counts) {
  long long total = 0;
  for (const CollectiveCount& one : counts) total += one.count;
  return total;
}

// What ranks have launched in a communicator of NCCL otherwise than most of its ranks; of as many
// on both sides those that have launched more are the others.
std::map<int, std::string> LaunchedOtherwise(const HangingJob& job) {
  struct Group {
    std::vector<CollectiveCount> counts;
    std::vector<int> ranks;
  };
  std::map<std::string, std::vector<Group>> communicators;
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) {
      for (const CommunicatorFacts& communicator : rank.communicators) {
        std::vector<Group>& groups = communicators[communicator.name];
        auto group = std::ranges::find(groups, communicator.launched, &Group::counts);
        if (group == groups.end()) group = groups.insert(group, {communicator.launched, {}});
        group->ranks.push_back(rank.rank);
      }
    }
  }
  std::map<int, std::string> odd;
  for (const auto& [name, groups] : communicators) {
    if (groups.size() < 2) continue;
    const auto others = std::ranges::max_element(groups, {}, [](const Group& group) {
      return std::pair(group.ranks.size(), TotalOf(group.counts));
    });
    for (const Group& group : groups) {
      if (&group == &*others) continue;
      for (const int rank : group.ranks)
        odd.emplace(rank, "has launched " + DifferenceText(group.counts, others->counts));
    }
  }
  return odd;
}

int WorldOf(const HangingJob& job) {
  int world = support::Size(job.hosts);
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) world = std::max(world, rank.world);
  }
  return world;
}

std::vector<Finding> FindingsOf(const HangingJob& job) {
  std::map<int, Finding> found;
  std::set<std::string> answered;
  for (const NodeFacts& node : job.nodes) {
    answered.insert(node.host);
    for (const RankFacts& rank : node.ranks) {
      answered.insert(rank.host);
      found.emplace(rank.rank, FindingOf(rank));
    }
  }
  for (const auto& [rank, text] : LaunchedOtherwise(job)) found.at(rank).launched = text;
  std::vector<Finding> findings;
  for (int rank = 0; rank < WorldOf(job); ++rank) {
    if (const auto seen = found.find(rank); seen != found.end()) {
      findings.push_back(std::move(seen->second));
      continue;
    }
    Finding& missing = findings.emplace_back();
    missing.rank = rank;
    if (rank < support::Size(job.hosts)) missing.host = job.hosts[static_cast<std::size_t>(rank)];
    const auto end = job.ended.find(rank);
    if (end != job.ended.end()) {
      Add(&missing, HangCause::kEnded, fmt::format("has ended with exit code {}", end->second));
    } else if (std::ranges::find(job.silent_nodes, missing.host) != job.silent_nodes.end()) {
      Add(&missing, HangCause::kSilentNode, "its node does not answer");
    } else if (answered.contains(missing.host)) {
      Add(&missing, HangCause::kMissing, "no process of it was found there");
    } else {
      missing.was_seen = false;
    }
  }
  return findings;
}

using Findings = std::vector<const Finding*>;

// "3, 5 and 7"; long lists are cut.
std::string NumbersOf(const Findings& findings) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(findings.size(), kNamed); ++i) {
    const bool is_last = i + 1 == findings.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(findings[i]->rank);
  }
  if (findings.size() > kNamed) text += fmt::format(" and {} more", findings.size() - kNamed);
  return text;
}

std::string NameOfRank(const Finding& finding) {
  std::string where = finding.host.empty() ? "" : support::WithoutControls(finding.host);
  if (finding.pid != 0) where += fmt::format("{}pid {}", where.empty() ? "" : ", ", finding.pid);
  return fmt::format("rank {}{}", finding.rank, where.empty() ? "" : " (" + where + ")");
}

// What all of them have in common by this field; "" where they differ, or it is not known.
std::string CommonOf(const Findings& findings, std::string Finding::*field) {
  if (findings.empty()) return "";
  const std::string& first = findings.front()->*field;
  const bool is_common =
      std::ranges::all_of(findings, [&](const Finding* other) { return other->*field == first; });
  return is_common ? first : "";
}

// "7 other ranks wait in all_reduce (train.py:50)".
std::string OthersText(const Findings& waiting, const char* verb = "wait") {
  if (waiting.empty()) return "";
  const std::string collective = CommonOf(waiting, &Finding::collective);
  const std::string place = CommonOf(waiting, &Finding::place);
  return fmt::format("; {} {}{}{}",
                     support::Counted(static_cast<long long>(waiting.size()), "other rank"), verb,
                     waiting.size() == 1 ? "s" : "",
                     !collective.empty() ? " in " + collective
                     : !place.empty()    ? " (" + place + ")"
                                         : "");
}

std::string UnseenText(const Findings& unseen) {
  if (unseen.empty()) return "";
  const bool is_one = unseen.size() == 1;
  const std::string host = support::WithoutControls(unseen.front()->host);
  return fmt::format("; rank{} {} not looked at{}", is_one ? "" : "s",
                     NumbersOf(unseen) + (is_one ? " was" : " were"),
                     host.empty() ? "" : ": ask on " + host + " too");
}

// Whether a cause leaves no doubt where all others wait.  One that the rank may come out of by what
// another rank does, or that was in order, leaves none only where these are known to wait in a
// collective: a rank that receives may do so from anywhere.
bool IsDefinite(HangCause cause, const Findings& waiting) {
  if (cause > HangCause::kAsleep) return false;
  return cause == HangCause::kUninterruptible || cause == HangCause::kOpens ||
         std::ranges::none_of(waiting,
                              [](const Finding* finding) { return finding->collective.empty(); });
}

Diagnosis Blame(const Findings& blamed, HangCause cause, const std::string& text, bool is_sure,
                const std::string& rest) {
  Diagnosis diagnosis;
  diagnosis.cause = cause;
  for (const Finding* finding : blamed) diagnosis.ranks.push_back(finding->rank);
  diagnosis.host = blamed.front()->host;
  diagnosis.pid = blamed.front()->pid;
  diagnosis.is_sure = is_sure;
  const Findings more(blamed.begin() + 1, blamed.end());
  const std::string also = more.empty() ? ""
                                        : fmt::format("; likewise rank{} {}",
                                                      more.size() == 1 ? "" : "s", NumbersOf(more));
  diagnosis.line =
      fmt::format("{}{}: {}{}{}", is_sure ? "" : "perhaps ", NameOfRank(*blamed.front()),
                  support::WithoutControls(text), also, rest);
  return diagnosis;
}

Diagnosis BlameNobody(HangCause cause, std::string line) {
  Diagnosis diagnosis;
  diagnosis.cause = cause;
  diagnosis.line = std::move(line);
  return diagnosis;
}

// All wait, or all compute: who does so elsewhere than most, or has launched other collectives;
// else the network.
Diagnosis DiagnoseAlike(const Findings& ranks, bool do_wait, const std::string& rest) {
  std::map<std::string, Findings> groups;
  Findings odd;
  for (const Finding* finding : ranks) {
    groups[finding->place].push_back(finding);
    if (!finding->launched.empty()) odd.push_back(finding);
  }
  const auto largest =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  const std::size_t count = largest->second.size();
  const bool has_most = 2 * count > ranks.size() && count > 1;
  const char* const verb = do_wait ? "wait" : "compute";
  if (!odd.empty() && (groups.size() == 1 || !has_most)) {
    Findings others;
    for (const Finding* finding : ranks) {
      if (finding->launched.empty()) others.push_back(finding);
    }
    return Blame(odd, HangCause::kOutlier, odd.front()->launched, false,
                 OthersText(others, verb) + rest);
  }
  const std::string all = ranks.size() == 1 ? fmt::format("rank {} {}s", ranks[0]->rank, verb)
                                            : fmt::format("all {} ranks {}", ranks.size(), verb);
  if (groups.size() == 1) {
    const std::string& collective = ranks.front()->collective;
    if (!collective.empty()) {
      return BlameNobody(HangCause::kNetwork,
                         fmt::format("{} in {}: perhaps the network, or sizes that differ{}", all,
                                     support::WithoutControls(collective), rest));
    }
    return BlameNobody(
        HangCause::kAlike,
        fmt::format(
            "{}{}: no single rank stands out; perhaps the network{}", all,
            largest->first.empty() ? "" : " (" + support::WithoutControls(largest->first) + ")",
            rest));
  }
  if (!has_most) {
    return BlameNobody(
        HangCause::kUnknown,
        fmt::format("{}, but in {} different places (-v shows them): perhaps they call "
                    "collectives in different orders{}",
                    all, groups.size(), rest));
  }
  Findings outliers;
  for (const Finding* finding : ranks) {
    if (finding->place != largest->first) outliers.push_back(finding);
  }
  // The odd one of those that were seen in a function first.
  std::ranges::stable_sort(outliers, {},
                           [](const Finding* finding) { return !finding->collective.empty(); });
  const Finding& first = *outliers.front();
  const std::string place = first.place.empty() ? "elsewhere" : first.place;
  return Blame(outliers, HangCause::kOutlier,
               fmt::format("{}s in {}{}{}", verb, place, first.launched.empty() ? "" : " and ",
                           first.launched),
               false, OthersText(largest->second, verb) + rest);
}

}  // namespace

const char* NameOf(HangCause cause) {
  constexpr const char* kNames[] = {
      "stopped", "ended",    "uninterruptible", "gpu_error",    "opens",   "pipe",
      "lock",    "terminal", "asleep",          "killed_child", "missing", "silent_node",
      "outlier", "computes", "network",         "alike",        "unknown"};
  return kNames[static_cast<int>(cause)];
}

bool NeedsFunctions(const ProcessFacts& process) {
  return !CauseIn(process) &&
         (process.state == 'R' || process.cpus >= kBusyCpus || WaitsForOthers(process));
}

Diagnosis Diagnose(const HangingJob& job) {
  const std::vector<Finding> findings = FindingsOf(job);
  Findings waiting, others, ended, unseen;
  for (const Finding& finding : findings) {
    const bool has_ended = finding.kind == HangCause::kEnded;
    (!finding.was_seen ? unseen
     : !finding.kind   ? waiting
     : has_ended       ? ended
                       : others)
        .push_back(&finding);
  }
  std::string rest = UnseenText(unseen);
  // MPI and NCCL may also wait with a busy CPU.
  if (!findings.empty() && std::ranges::none_of(findings, &Finding::is_still))
    rest += "; all ranks ran between two looks: perhaps nothing hangs";
  // Where most have ended, those that have not are to be looked at.
  if (2 * ended.size() >= findings.size()) {
    if (!ended.empty())
      rest = fmt::format("; {} of {} ranks have ended", ended.size(), findings.size()) + rest;
  } else {
    others.insert(others.end(), ended.begin(), ended.end());
    std::ranges::sort(others, {}, &Finding::rank);
  }
  if (waiting.empty() && others.empty()) {
    return BlameNobody(HangCause::kUnknown,
                       findings.empty() ? "no rank was found" : "all ranks have ended" + rest);
  }
  if (others.empty()) return DiagnoseAlike(waiting, /*do_wait=*/true, rest);
  const HangCause cause = *(*std::ranges::min_element(others, {}, [](const Finding* finding) {
                             return *finding->kind;
                           }))->kind;
  Findings blamed, busy;
  for (const Finding* finding : others) (finding->kind == cause ? blamed : busy).push_back(finding);
  const bool is_of_all = waiting.empty() && busy.empty() && blamed.size() > 1;
  // As MPI and NCCL wait: where they do is more than that they compute.
  const bool has_places = std::ranges::any_of(blamed, [&](const Finding* finding) {
    return finding->place != blamed.front()->place || !finding->launched.empty();
  });
  if (is_of_all && has_places && cause == HangCause::kComputes)
    return DiagnoseAlike(blamed, /*do_wait=*/false, rest);
  if (is_of_all) {
    const std::string alike = cause == HangCause::kStopped
                                  ? "are stopped"
                                  : fmt::format("are in the same state ({})", NameOf(cause));
    return BlameNobody(HangCause::kAlike,
                       fmt::format("all {} ranks {}: no single rank is to blame; rank {}: {}{}",
                                   blamed.size(), alike, blamed.front()->rank,
                                   support::WithoutControls(blamed.front()->text), rest));
  }
  // Who is stopped is so whatever the others do; who has run meanwhile may go on by itself, as one
  // that sleeps again and again.
  const bool is_direct = std::ranges::all_of(
      blamed, [](const Finding* finding) { return finding->is_direct && finding->is_still; });
  const bool is_sure = is_direct && (cause == HangCause::kStopped ||
                                     (IsDefinite(cause, waiting) && blamed.size() == 1 &&
                                      busy.empty() && unseen.empty() && !waiting.empty()));
  if (!busy.empty()) {
    rest = fmt::format("; {} {} something else (-v)",
                       support::Counted(static_cast<long long>(busy.size()), "other rank"),
                       busy.size() == 1 ? "does" : "do") +
           rest;
  }
  return Blame(blamed, cause, blamed.front()->text, is_sure, OthersText(waiting) + rest);
}

std::string RankTable(const HangingJob& job) {
  std::string text = fmt::format("{:>6} {:<16} {:>8} {:<5} {:>5} {}\n", "rank", "host", "pid",
                                 "state", "CPUs", "what");
  std::map<int, const RankFacts*> ranks;
  for (const NodeFacts& node : job.nodes) {
    for (const RankFacts& rank : node.ranks) ranks.emplace(rank.rank, &rank);
  }
  for (const Finding& finding : FindingsOf(job)) {
    const auto facts = ranks.find(finding.rank);
    const ProcessFacts* const focus = facts == ranks.end() ? nullptr : &FocusOf(*facts->second);
    std::string what = !finding.was_seen ? "not looked at" : finding.text;
    if (focus != nullptr && what.empty()) {
      what = finding.collective.empty()
                 ? "waits: " + CallText(*focus) + ObjectText(*focus) + InText(*focus)
                 : "waits in " + finding.collective;
    }
    text += fmt::format(
        "{:>6} {:<16} {:>8} {:<5} {:>5} {}\n", finding.rank, support::WithoutControls(finding.host),
        finding.pid == 0 ? "-" : std::to_string(finding.pid), focus == nullptr ? '-' : focus->state,
        focus == nullptr ? "-" : fmt::format("{:.1f}", focus->cpus),
        support::WithoutControls(what));
  }
  for (const NodeFacts& node : job.nodes) {
    for (const std::string& gpu : node.gpus) {
      text += fmt::format("{}: GPU {}\n", support::WithoutControls(node.host),
                          support::WithoutControls(gpu));
    }
    for (const std::string& note : node.notes) {
      text += fmt::format("{}: {}\n", support::WithoutControls(node.host),
                          support::WithoutControls(note));
    }
  }
  return text;
}

}  // namespace launcher
