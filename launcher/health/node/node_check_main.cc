// SPDX-License-Identifier: Apache-2.0
//
// ddlrun-node-check, which ddlrun starts on each node before the ranks, as a program of the shim.
// It prints the facts of its node (node_info.h).  Each report says more than the one
// before: what the node is, what its working directory is like, and what the nodes have found out
// together.
//
//   ddlrun-node-check [--limit SECONDS] [--link-limit SECONDS] [--probe FILE]
//                     [--master-address ADDRESS] [--details yes]

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/health/node/details.h"
#include "launcher/health/node/exchange.h"
#include "launcher/health/node/fabric.h"
#include "launcher/health/node/gpu_info.h"
#include "launcher/health/node/rendezvous.h"
#include "launcher/health/node/system_info.h"
#include "launcher/health/node/watchdog.h"
#include "launcher/health/node_info.h"
#include "launcher/protocol/launchers.h"
#include "support/number.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

// How long a name may be looked for, so that other nodes do not wait for one without name servers
// until they give up.  A resolver asks a second server after five seconds.
constexpr std::chrono::seconds kLookupTimeout{5};

struct Arguments {
  int limit_seconds = 30;      // for everything
  int link_limit_seconds = 5;  // for one pair of nodes
  std::string probe;           // a file that ddlrun has made in the working directory
  std::string master_address;  // MASTER_ADDR of the ranks; "": none
  bool details = false;        // are told, too
};

int ReadSeconds(const std::string& text) {
  const int seconds = support::WholeNumber<int>(text).value_or(0);
  if (seconds >= 1 && seconds <= 3600) return seconds;
  throw LaunchError(EX_USAGE, "'" + text + "' is not a number of seconds from 1 to 3600");
}

Arguments ReadArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t next = 0; next < words.size(); next += 2) {
    const std::string value = next + 1 < words.size() ? words[next + 1] : "";
    if (words[next] == "--limit") {
      arguments.limit_seconds = ReadSeconds(value);
    } else if (words[next] == "--link-limit") {
      arguments.link_limit_seconds = ReadSeconds(value);
    } else if (words[next] == "--probe") {
      arguments.probe = value;
    } else if (words[next] == "--master-address") {
      arguments.master_address = value;
    } else if (words[next] == "--details" && value == "yes") {
      arguments.details = true;
    } else {
      throw LaunchError(
          EX_USAGE,
          "usage: ddlrun-node-check [--limit SECONDS] [--link-limit SECONDS] "
          "[--probe FILE] [--master-address ADDRESS] [--details yes]; it is started by ddlrun "
          "--check=full");
    }
  }
  return arguments;
}

int NumberOr(const Environment& environment, const std::string& name, int fallback) {
  return support::WholeNumber<int>(ValueOr(environment, name, "")).value_or(fallback);
}

// Prints reports: first one with all facts, then only what is new.  The thread of the watchdog uses
// it as well.
class Reporter {
 public:
  void Say(const NodeInfo& info, bool is_final) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Print(info, reports_ == 0 ? NodeInfoKind::kAll : NodeInfoKind::kLater);
    is_final_ = is_final;
  }

  // Prints all facts once more.
  void PrintAll(const NodeInfo& info) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Print(info, NodeInfoKind::kAll);
  }

  // Prints all facts twice more, since mpirun may cut lines.
  void Repeat() {
    for (int again = 0; again < 2; ++again) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::lock_guard<std::mutex> lock(mutex_);
      Print(last_, NodeInfoKind::kAll);
    }
  }

  // Prints the last report with `problem`, unless that was the final one.
  void LogTimeLimitReached(const std::string& problem) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_final_) return;
    NodeInfo info = last_;
    info.exchange.problem = problem;
    Print(info, NodeInfoKind::kLater);
  }

 private:
  void Print(const NodeInfo& info, NodeInfoKind kind) {
    last_ = info;
    const std::string lines = FormatNodeInfo(info, reports_++, kind);
    std::fwrite(lines.data(), 1, lines.size(), stdout);
    std::fflush(stdout);
  }

  std::mutex mutex_;
  NodeInfo last_;
  int reports_ = 0;
  bool is_final_ = false;
};

std::string NameOfMachine() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// A driver that hangs keeps whoever calls it, for ever.
constexpr std::chrono::seconds kDriverTimeout{10};

// Reads what there is of GPUs in a thread of its own.  False, with gpu_problem, where the driver
// has not answered when kDriverTimeout is over: that thread then runs until the process ends.
bool ReadGpus(const GpuQuery& sources, NodeInfo& info) {
  auto answer = std::make_shared<std::promise<NodeInfo>>();
  std::future<NodeInfo> answered = answer->get_future();
  std::thread([answer, sources, read = info]() mutable {
    ReadGpuInfo(sources, read);
    answer->set_value(std::move(read));
  }).detach();
  const bool has_answered = answered.wait_for(kDriverTimeout) == std::future_status::ready;
  if (has_answered) {
    info = answered.get();
  } else {
    info.gpu_problem = "the NVIDIA driver has not answered for " +
                       std::to_string(kDriverTimeout.count()) + " s (NVML)";
  }
  return has_answered;
}

// The facts that this node finds out without the others.  `has_driver`: that of the GPUs answers.
NodeInfo ReadNode(const Environment& environment, bool* has_driver) {
  NodeInfo info;
  info.node = NumberOr(environment, "DDLRUN_NODE_RANK", 0);
  info.host = ValueOr(environment, "DDLRUN_HOST", "localhost");
  ReadSystemInfo("", info);
  ReadLimits(info);
  GpuQuery sources;
  sources.all_visible = !environment.contains("CUDA_VISIBLE_DEVICES");
  sources.visible = ValueOr(environment, "CUDA_VISIBLE_DEVICES", "");
  *has_driver = ReadGpus(sources, info);
  info.granted_gpus = NumberOr(environment, "SLURM_GPUS_ON_NODE", -1);
  info.mpi = FindMpiVersion();
  info.pmix = Rendezvous::LibraryVersion();
  info.pmix_server = ValueOr(environment, "PMIX_VERSION", "");
  info.ucx = Fabric::LibraryVersion();
  info.directory.write_error = "the file system does not answer";
  return info;
}

// The libraries may take long to load, and must not keep the facts from being told.
void ReadDetails(NodeInfo& info) {
  ReadMachineDetails("", info.details);
  ReadNetworkDetails("", info.details);
  ReadLimitDetails("", info.details);
  const GpuQuery sources;
  ReadGpuLibraries(sources.nvml, "", info.details);
  ReadGpuPlaces(sources.nvml, "", info.gpus, info.details);
}

void Run(const std::vector<std::string>& words) {
  const Arguments arguments = ReadArguments(words);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(arguments.limit_seconds);
  LimitLifetime(std::chrono::seconds(arguments.limit_seconds + 2));
  const Environment environment = SnapshotEnvironment();
  // Otherwise UCX would wait in connect() for a node that does not answer, and could not talk to
  // the others meanwhile.
  setenv("UCX_TCP_CONN_NB", "y", 0);

  // A daemon may end before it has passed on what was printed last.
  const bool has_daemon = TraitsOf(ValueOr(environment, "DDLRUN_LAUNCHER", "").c_str()).has_daemons;
  static Reporter reporter;                     // the watchdog's thread outlives this function
  NameLookup master(arguments.master_address);  // meanwhile the rest is looked at
  NameLookup own_name(arguments.master_address.empty() ? "" : NameOfMachine(), LoopbackOfHost);
  const Clock::time_point lookup_end = Clock::now() + kLookupTimeout;
  bool has_driver = false;
  NodeInfo info = ReadNode(environment, &has_driver);
  reporter.Say(info, false);
  if (arguments.details && has_driver) {
    ReadDetails(info);
    reporter.PrintAll(info);
  }
  info.directory = ReadDirectory(arguments.probe, std::chrono::seconds(3));
  if (!arguments.master_address.empty()) {
    info.master = {arguments.master_address, master.Problem(lookup_end), ""};
    const std::string own = own_name.Problem(lookup_end);  // or that nobody has answered
    if (own.starts_with("127.")) info.master.own_loopback = own;
  }
  reporter.Say(info, false);
  StartWatchdog(deadline, [limit = arguments.limit_seconds] {
    reporter.LogTimeLimitReached("the exchange did not end within " + std::to_string(limit) + " s");
  });

  const std::string problem = Rendezvous::Problem();
  if (!environment.contains("PMIX_NAMESPACE") || !problem.empty()) {
    info.exchange.unavailable = problem.empty() ? "the launcher gives no PMIx" : problem;
    reporter.Say(info, true);
    if (has_daemon) reporter.Repeat();
    return;
  }
  ExchangeOptions plan;
  plan.node = info.node;
  plan.nodes = NumberOr(environment, "DDLRUN_NODE_COUNT", 1);
  plan.deadline = deadline;
  plan.link_limit = std::chrono::seconds(arguments.link_limit_seconds);
  ExchangeWithNodes(plan, info.exchange, [&info] { reporter.Say(info, true); });
  if (has_daemon) reporter.Repeat();
}

}  // namespace
}  // namespace launcher

int main(int argc, char** argv) {
  try {
    launcher::Run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const launcher::LaunchError& error) {
    std::fprintf(stderr, "ddlrun-node-check: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlrun-node-check: %s\n", error.what());
    return EX_SOFTWARE;
  }
  // The destructors of UCX and of the drivers are left out: they would wait for nodes that do not
  // answer.
  std::fflush(stdout);
  _exit(0);
}
