// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "launcher/health/node/details.h"
#include "launcher/health/node/gpu_info.h"
#include "launcher/health/node/runtime_library.h"
#include "launcher/health/node/system_info.h"
#include "launcher/health/node/watchdog.h"
#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(RuntimeLibrary, TakesTheFirstThatIsThere) {
  RuntimeLibrary library("libm", {"/nowhere/libm.so.6", "libm.so.6", "/nowhere/libm.so.7"});
  EXPECT_EQ(library.problem(), "");
  double (*function)(double) = library.Find("floor");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function(2.5), 2);
  function = library.Find("cellar");
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(library.problem(), "libm has no function cellar");
}

TEST(RuntimeLibrary, SaysWhyThereIsNone) {
  RuntimeLibrary library("PMIx", {"/nowhere/first.so", "/nowhere/second.so"});
  const std::string problem = library.problem();
  EXPECT_THAT(problem, StartsWith("PMIx cannot be loaded: /nowhere/first.so: "));
  int (*function)() = library.Find("PMIx_Initialized");
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(library.problem(), problem);
}

class DetailTree : public tests::DirectoryTest {
 protected:
  // The text of a detail; "none" where there is no such.
  std::string Of(const std::string& name) const {
    for (const Detail& detail : details_) {
      if (detail.name == name) return detail.text;
    }
    return "none";
  }

  const std::string root_ = directory_;
  Details details_;
};

TEST_F(DetailTree, TellsNumaNodesAndTheKernel) {
  Write("/sys/devices/system/node/node0/cpulist", "0-63\n");
  Write("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  268435456 kB\n");
  Write("/sys/devices/system/node/node255/cpulist", "\n");
  Write("/sys/devices/system/node/node255/meminfo", "Node 255 MemTotal: 16252928 kB\n");
  Write("/sys/devices/system/node/possible", "0-255\n");
  Write("/sys/devices/system/cpu/smt/active", "1\n");
  Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  Write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  Write("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7,16\n");
  for (const char* module : {"nvidia", "nvidia_peermem", "floppy"}) {
    fs::create_directories(root_ + "/sys/module/" + module);
  }
  ReadMachineDetails(root_, details_);
  EXPECT_EQ(Of("NUMA node 0"), "CPUs 0-63, 256.0 GiB");
  EXPECT_EQ(Of("NUMA node 255"), "no CPUs, 15.5 GiB");
  EXPECT_EQ(Of("SMT"), "on");
  EXPECT_EQ(Of("huge pages"), "madvise");
  EXPECT_EQ(Of("ptrace_scope"), "1");
  EXPECT_EQ(Of("CPUs of this job"), "0-7,16");
  EXPECT_EQ(Of("kernel modules"), "nvidia, nvidia_peermem");
  EXPECT_EQ(Of("CPU governor"), "none");
}

TEST_F(DetailTree, TellsNetworksWithTheirPlaces) {
  for (const char* name : {"ib0", "docker0", "lo", "veth12ab"}) {
    Write(std::string("/sys/class/net/") + name + "/operstate", "up\n");
    Write(std::string("/sys/class/net/") + name + "/mtu", "2044\n");
  }
  Write("/sys/class/net/ib0/speed", "100000\n");
  Write("/sys/class/net/docker0/speed", "-1\n");
  Write("/sys/class/net/ib0/device/numa_node", "8\n");
  fs::create_symlink("/sys/bus/pci/drivers/mlx5_core", root_ + "/sys/class/net/ib0/device/driver");
  Write("/sys/class/infiniband/mlx5_0/fw_ver", "16.35.2000\n");
  Write("/sys/class/infiniband/mlx5_0/board_id", "MT_0000000008\n");
  Write("/sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
  ReadNetworkDetails(root_, details_);
  EXPECT_EQ(Of("network ib0"), "up, 100000 Mbit/s, 2044 bytes at most, mlx5_core at NUMA node 8");
  EXPECT_EQ(Of("network docker0"), "up, 2044 bytes at most, virtual");
  EXPECT_EQ(Of("adapter mlx5_0"), "firmware 16.35.2000, board MT_0000000008");
  EXPECT_EQ(details_.size(), 3U);
}

TEST_F(DetailTree, TellsLimitsOfTheProcess) {
  Write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        "Max open files            1024                 4096                 files     \n"
        "Max locked memory         65536                65536                bytes     \n");
  ReadLimitDetails(root_, details_);
  EXPECT_EQ(Of("limit of open files"), "1024, 4096 if raised");
  EXPECT_EQ(Of("limit of locked memory"), "65536 bytes");
  EXPECT_EQ(Of("limit of cpu time"), "none");
}

TEST_F(DetailTree, TellsTheLeastOfTheGroupsAbove) {
  Write("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  Write("/sys/fs/cgroup/slurm/memory.max", "4294967296\n");
  Write("/sys/fs/cgroup/slurm/job_7/memory.max", "max\n");
  Write("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "8589934592\n");
  Write("/sys/fs/cgroup/slurm/job_7/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/pids.max", "max\n");
  ReadLimitDetails(root_, details_);
  EXPECT_EQ(Of("control group's memory"), "4294967296 bytes");
  EXPECT_EQ(Of("control group's CPUs"), "2");
  EXPECT_EQ(Of("control group's processes"), "none");
}

TEST_F(DetailTree, ReadsGroupsOfVersion1) {
  Write("/proc/self/cgroup", "4:memory:/slurm/job_7\n3:pids:/\n0::/\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "1073741824\n");
  Write("/sys/fs/cgroup/pids/pids.max", "512\n");
  ReadLimitDetails(root_, details_);
  EXPECT_EQ(Of("control group's memory"), "1073741824 bytes");
  EXPECT_EQ(Of("control group's processes"), "512");
}

TEST_F(DetailTree, ThatIsEmptyHasNone) {
  ReadMachineDetails(root_, details_);
  ReadNetworkDetails(root_, details_);
  EXPECT_TRUE(details_.empty());
}

const std::string kNvmlOfTests = tests::BuildDirectory() + "/tests/libfake_nvml.so";

// The text of the detail of this name; "" where there is none.
std::string TextOf(const Details& details, const std::string& name) {
  for (const Detail& detail : details) {
    if (detail.name == name) return detail.text;
  }
  return "";
}

Details PlacesOf(const std::string& nvml) {
  NodeInfo info;
  ReadGpuInfo({.nvml = kNvmlOfTests}, info);
  Details details;
  ReadGpuPlaces(nvml, "/nowhere", info.gpus, details);
  return details;
}

TEST(GpuDetails, TellTheDriver) {
  Details details;
  ReadGpuLibraries(kNvmlOfTests, "/nowhere", details);
  EXPECT_EQ(TextOf(details, "NVIDIA driver"), "535.104.05, CUDA up to 12.2");
}

TEST(GpuDetails, TellEachGpuAndTheWayBetween) {
  const Details details = PlacesOf(kNvmlOfTests);
  EXPECT_EQ(TextOf(details, "GPU 0"),
            "PCI 0004:04:00.0, 16384 MiB, 300 W at most, slowed down by heat");
  EXPECT_EQ(TextOf(details, "GPU 1"), "PCI 0004:05:00.0, 16384 MiB, 300 W at most");
  EXPECT_EQ(TextOf(details, "pairs of GPUs"), "between NUMA nodes: all");
  setenv("FAKE_NVML", "nvlink", 1);
  EXPECT_EQ(TextOf(PlacesOf(kNvmlOfTests), "pairs of GPUs"), "NVLink: all");
  unsetenv("FAKE_NVML");
}

TEST(GpuDetails, WithoutNvmlAreThePlacesAlone) {
  const Details details = PlacesOf("/nowhere/libnvidia-ml.so");
  ASSERT_EQ(details.size(), 2U);
  EXPECT_EQ(details[1].text, "PCI 0004:05:00.0");
}

TEST(GpuDetails, ReadVersionsOfOldAndNewLibraries) {
  EXPECT_EQ(NcclVersionText(2708), "2.7.8");
  EXPECT_EQ(NcclVersionText(20906), "2.9.6");
  EXPECT_EQ(NcclVersionText(21805), "2.18.5");
  EXPECT_EQ(CudnnVersionText(7605), "7.6.5");
  EXPECT_EQ(CudnnVersionText(8902), "8.9.2");
  EXPECT_EQ(CudnnVersionText(91900), "9.19.0");
}

using Clock = std::chrono::steady_clock;

TEST(LookUpHost, FindsAddressesAndThisMachine) {
  for (const char* host : {"127.0.0.1", "::1", "localhost"})
    EXPECT_EQ(LookUpHost(host), "") << host;
}

// No name server is asked for a name with a part of more than 63 bytes.
TEST(LookUpHost, SaysWhyThereIsNone) { EXPECT_NE(LookUpHost(std::string(64, 'n')), ""); }

TEST(NameLookup, SaysWhatWasFound) {
  NameLookup found("n1", [](const std::string& host) { return host == "n1" ? "" : "another"; });
  EXPECT_EQ(found.Problem(Clock::now() + seconds(60)), "");
  NameLookup missing("n2", [](const std::string& host) { return host + " is not there"; });
  EXPECT_EQ(missing.Problem(Clock::now() + seconds(60)), "n2 is not there");
}

TEST(NameLookup, DoesNotWaitForNameServersThatDoNotAnswer) {
  // Shared with the thread, which may go on when the test has ended.
  const auto gate = std::make_shared<std::promise<void>>();
  NameLookup lookup("n1", [opened = gate->get_future().share()](const std::string&) {
    opened.wait();
    return std::string();
  });
  EXPECT_EQ(lookup.Problem(Clock::now() + milliseconds(20)), "the name servers do not answer");
  gate->set_value();
}

TEST(NameLookup, LooksForNoHostWhereThereIsNone) {
  NameLookup lookup("", [](const std::string&) { return std::string("was looked up"); });
  EXPECT_EQ(lookup.Problem(Clock::now() + seconds(60)), "");
}

[[noreturn]] void WaitForEver() {
  while (true) pause();
}

TEST(Watchdog, EndsAProcessThatWaitsForEverAndSaysSo) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(60));
        StartWatchdog(steady_clock::now() + milliseconds(50),
                      [] { std::fputs("time is up", stderr); });
        WaitForEver();
      },
      testing::ExitedWithCode(0), "time is up");
}

TEST(Watchdog, EndsTheProcessWhenASignalAsksForIt) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(60));
        kill(getpid(), SIGTERM);  // before the watchdog: it waits
        StartWatchdog(steady_clock::now() + seconds(60), [] {});
        WaitForEver();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Watchdog, IsBackedByTheKernel) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(1));
        WaitForEver();
      },
      testing::KilledBySignal(SIGALRM), "");
}

}  // namespace
}  // namespace launcher
