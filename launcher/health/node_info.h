// SPDX-License-Identifier: Apache-2.0
//
// The facts of a node before the ranks start, which ddlrun-node-check gathers on the node and
// ddlrun judges (check_rules.h).  What could not be found out is -1 or "", where that is said
// below. Pure.

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

struct GpuProcess {
  long long pid = 0;
  long long bytes = -1;  // of GPU memory
};

struct GpuInfo {
  std::string model;                  // "Tesla V100-SXM2-16GB"; "" not known
  std::string pci_bus_id;             // "0004:04:00.0"; "" not known
  long long uncorrected_errors = -1;  // ECC, since the driver was loaded
  bool remap_pending = false;         // bad memory is put out of use at the next reset of the GPU
  bool remap_failed = false;          // bad memory could not be put out of use
  // The NVLink domain, whose GPUs reach each other over NVLink also from node to node:
  // "CLUSTERUUID.CLIQUE" of NVML, which are alike in one domain; "": it is in none.
  std::string nvlink_domain;
  int nvlinks = -1;                   // how many are active; -1: it has none, or it is not known
  int pcie_lanes = -1;                // in use now
  int pcie_lanes_max = -1;            // possible for this card and slot
  std::vector<GpuProcess> processes;  // computing on it, of any user
};

struct IbPortInfo {
  std::string name;      // "mlx5_0:1", as UCX_NET_DEVICES and NCCL_IB_HCA have it
  std::string state;     // "ACTIVE", "DOWN", ...
  int rate_gbits = 0;    // per second
  std::string protocol;  // "InfiniBand" or "Ethernet" (RoCE)
};

struct DirectoryInfo {
  std::string path;
  bool is_shared = false;     // the node sees the file that ddlrun has made in it
  std::string write_error;    // "" when a file could be made and written
  long long free_bytes = -1;  // for this user
};

// Where ranks will meet, as this node sees it.
struct MasterAddrInfo {
  std::string address;  // their MASTER_ADDR; "" when it was not looked up
  std::string problem;  // why this node finds no address of that name; "" when it does
  // Where this node finds its own host name, if that is a loopback address; "" otherwise.
  std::string own_loopback;
};

// One pair of nodes, seen by the one that speaks first.
struct LinkTestResult {
  int to = -1;          // index of the other node; -1: none
  std::string problem;  // "": it answered
  double seconds = 0;   // there and back
};

// What the nodes found out together.
struct ConnectivityResult {
  std::string unavailable;    // why not all was tried: a library or the launcher lacks something
  std::string problem;        // what failed
  double clock_seconds = 0;   // since 1970, read right after a common barrier; 0: not read
  bool links_tested = false;  // with every node that this one speaks to first
  int links_ok = 0;
  LinkTestResult slowest;  // of those that answered
  std::vector<LinkTestResult> failed;
};

// A line about the node that is told to people, and not judged: "SMT", "on"; "network eth0", "up,
// ..."
struct Detail {
  std::string name;  // unlike those of the other details of the node
  std::string text;
};

struct NodeInfo {
  int node = 0;         // index in the plan
  std::string host;     // as the plan names it
  std::string machine;  // as the node calls itself
  std::string cpu_model;
  int cpus = 0;  // hardware threads of the node, not of the job
  long long memory_bytes = 0;
  std::string kernel;
  std::string system;  // "Debian GNU/Linux 12 (bookworm)"

  std::string gpu_source;     // "NVML", "/proc" or "/dev"; "" when none of them has a GPU
  std::string gpu_problem;    // why NVML fails, when it is there
  std::vector<GpuInfo> gpus;  // which this job may use, in PCI order
  int nvidia_devices = 0;     // on the PCI bus, with or without a driver
  // Why no IMEX channel can be opened, without which NVLink does not reach other nodes; "": one
  // can.
  std::string imex_problem;
  int granted_gpus = -1;  // by Slurm on this node; -1: Slurm does not say

  std::vector<IbPortInfo> ports;
  long long memlock_bytes = 0;    // limit of a process; -1: there is none
  long long shm_free_bytes = -1;  // in /dev/shm
  std::string shm_error;          // why nothing can be made in it
  // What lets other users of the node meddle, "fs.protected_regular is 0"; "" for nothing.
  std::string other_users;
  DirectoryInfo directory;  // where ranks will start
  MasterAddrInfo master;

  std::string mpi;          // "Open MPI v4.1.4"; "" when no library is found
  std::string pmix;         // version of the library; "" when this build has none
  std::string pmix_server;  // version of srun or mpirun; "" when it does not say it
  std::string ucx;          // version of the library; "" when this build has none
  ConnectivityResult exchange;
  std::vector<Detail> details;  // none unless they are asked for (ddlrun-node-check --details)
};

// One line of JSON, ASCII.
std::string EncodeNodeInfo(const NodeInfo& info);

// The inverse.  Throws LaunchError(EX_SOFTWARE) for a text that EncodeNodeInfo did not write.
NodeInfo DecodeNodeInfo(const std::string& text);

// A line of the same form with the facts that are known later than the others: `directory`,
// `master` and `exchange`.
std::string EncodeLaterInfo(const NodeInfo& info);

// Puts what EncodeLaterInfo wrote into `info`.  Throws as DecodeNodeInfo does.
void DecodeLaterInfo(const std::string& text, NodeInfo* info);

// How facts travel from the nodes to ddlrun: as lines on standard output, which srun and mpirun
// bring from every node.  Pure.
//
// A report is cut into short lines, since srun may mix lines of 1,024 bytes or more with those of
// other tasks.  The first report of a node has all of its facts, later ones have only what was
// found out since.  mpirun may cut a line in two when a node writes much at once: so each line says
// how long it is, and under mpirun everything is sent once more at the end.
//
//   ddlrun-node-check: NODE REPORT PART/PARTS BYTES TEXT

inline constexpr std::size_t kMaxChunkBytes = 900;
// The most parts of one report.  One that names 63 nodes that do not answer has about ten.
inline constexpr int kMaxChunks = 1000;

enum class NodeInfoKind { kAll, kLater };

// The lines of report number `report` (from 0) of a node, each ended by '\n'.
std::string FormatNodeInfo(const NodeInfo& info, int report, NodeInfoKind kind);

// Puts the reports of `nodes` nodes together again.
class NodeInfoReader {
 public:
  explicit NodeInfoReader(int nodes) : parts_(static_cast<std::size_t>(nodes)) {}

  // Takes `line`, which is without its end, if it is one of FormatNodeInfo.  What stands in front
  // of it is ignored: a tag of mpirun --tag-output, or half a line of another node.  False for any
  // other line.
  bool Add(std::string_view line);

  // The facts of each node, from those of its reports that have come as a whole; a later report
  // overrules an earlier one.  Where no report has all facts, `host` is "".  Throws
  // LaunchError(EX_SOFTWARE) as DecodeNodeInfo does.
  std::vector<NodeInfo> Facts() const;

 private:
  struct NodeInfoMessage {
    int parts = 0;
    std::map<int, std::string> texts;
  };
  std::vector<std::map<int, NodeInfoMessage>> parts_;  // by node, by report
};

}  // namespace launcher
