// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace launcher {
namespace {

namespace fs = std::filesystem;

class DetailTree : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/ddlrun-detail-tree-" + std::to_string(getpid());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  // The text of a detail; "none" where there is no such.
  std::string Of(const std::string& name) const {
    for (const Detail& detail : details_) {
      if (detail.name == name) return detail.text;
    }
    return "none";
  }

  std::string root_;
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

}  // namespace
}  // namespace launcher
