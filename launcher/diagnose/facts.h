// SPDX-License-Identifier: Apache-2.0
//
// What Linux says of the ranks of a job on one node, and how that travels to the ddlctl that
// judges it (diagnosis.h): as JSON, in lines that are short enough for srun to pass each on whole.
// It never leaves one installation.  Pure.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

struct ProcessFacts {
  int pid = 0;
  int parent = 0;
  std::string name;  // of its program, cut by the kernel (comm)
  char state = '?';  // as /proc/PID/stat has it: 'R', 'S', 'D', 'T', 't', 'Z'
  // All below is of the first thread, or of this one where another cannot be interrupted.
  int thread = 0;
  // Where the kernel waits (wchan); "" where it does not tell.
  std::string wait;
  // The system call that has not returned, "read"; "" outside of one, and where ptrace(2) is not
  // permitted.
  std::string call;
  // What the call is about: an absolute path, "a pipe", "a socket", "a terminal"; "" for nothing,
  // or not known.
  std::string object;
  std::string file_system;  // of a path: "nfs4 at /home"
  // Nothing of it has run between two looks.
  bool is_still = false;
  double cpus = 0;      // that all of its threads have used on average between the looks
  int tracer = 0;       // the debugger
  int wait_status = 0;  // of a zombie, as waitpid(2) would have it
  // Python functions of the first thread, the innermost first: "step (me/job/train.py:17)".
  std::vector<std::string> stack;
};

struct CollectiveCount {
  std::string name;  // as NCCL has it: "AllReduce"
  long long count = 0;
  bool operator==(const CollectiveCount&) const = default;
};

// What a process has done in a communicator of NCCL (nccl_ras.h).
struct CommunicatorFacts {
  std::string name;  // the same in all of its ranks
  int rank = 0;      // in it
  int size = 0;
  std::vector<CollectiveCount> launched;  // since its start, of those that it has launched
};

// A collective as PyTorch's flight recorder has it.
struct RecordedCollective {
  long long number = 0;  // in its process group, from 1 on
  std::string name;      // "all_reduce"
  std::string state;     // "scheduled", "started" on the GPU, "completed"
  std::string sizes;     // of its input: "[[3, 4]]"
  std::string types;     // "Float, Half"
  std::string place;     // the program's own line that has called it; "" where it is not recorded
};

// The last collectives of a rank in a process group, the oldest first; of PyTorch (NCCL).
struct RecordedGroup {
  std::string name;         // the same in all of its ranks: "0"
  std::string description;  // "default_pg"
  std::vector<RecordedCollective> collectives;
};

struct RankFacts {
  int rank = 0;
  int world = 1;
  std::string host;  // as the plan names it
  // Processes of its control group that the kernel has killed for memory; -1: not known.
  long long memory_kills = -1;
  // "GPU 0000:3b:00: Xid 79", which the driver has reported of one of its processes; "": nothing.
  std::string gpu_error;
  // The first is the rank itself, and parents come before their children.  Of a rank that was found
  // there is at least one.
  std::vector<ProcessFacts> processes;
  std::vector<CommunicatorFacts> communicators;
  std::vector<RecordedGroup> recorded;
};

struct NodeFacts {
  std::string host;
  std::string run;        // where its ranks meet, which tells apart what runs in a job; "": no rank
  std::string directory;  // the run directory, as ranks on the node of ddlrun know it
  std::string status;     // the file `status` in it, where this node has it
  std::vector<std::string> notes;  // what could not be seen
  std::vector<std::string> gpus;   // a line of nvidia-smi for each, with kGpuColumns
  std::vector<RankFacts> ranks;
};

// What is read at most, of a node; the rest is left out by who writes it, refused by who reads it.
inline constexpr std::size_t kMaxProcessesOfRank = 64;
inline constexpr std::size_t kMaxFrames = 24;
inline constexpr std::size_t kMaxGpus = 64;
// As nvidia-smi calls them (--help-query-gpu).
inline constexpr char kGpuColumns[] =
    "index,pci.bus_id,utilization.gpu,clocks.sm,clocks_throttle_reasons.active,memory.used,"
    "ecc.errors.uncorrected.volatile.total";
inline constexpr std::size_t kMaxCommunicators = 64;  // of a process
inline constexpr std::size_t kMaxCollectives = 32;    // by their names
inline constexpr std::size_t kMaxRecordedGroups = 16;
inline constexpr std::size_t kMaxRecordedCollectives = 4;  // of a group
inline constexpr std::size_t kMaxRanksOfNode = 4096;
inline constexpr int kMaxWorld = 1 << 20;

// The process of a rank that is to be looked at: the rank itself, or where that waits for a
// child, as a shell does, the first child that has not ended, and so on.  REQUIRES: it has one.
const ProcessFacts& FocusOf(const RankFacts& rank);

// JSON in one line of ASCII, without its end.
std::string EncodeFacts(const NodeFacts& facts);
// Throws LaunchError(EX_SOFTWARE) for any other text.
NodeFacts DecodeFacts(const std::string& text);

// The same as lines with their ends, "ddlrun-facts HOST INDEX COUNT PART", of at most
// kMaxFactsLine bytes: srun passes longer ones on in parts, between which other nodes come.
inline constexpr std::size_t kMaxFactsLine = 900;
std::string FactsLines(const NodeFacts& facts);
// Of the output of all nodes, in which there may be other lines, the facts of those that are whole,
// by host.  What is not as it should be is left out, and named in `problem`.
std::map<std::string, NodeFacts> ReadFactsLines(std::string_view output, std::string* problem);

}  // namespace launcher
