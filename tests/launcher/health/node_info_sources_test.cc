// SPDX-License-Identifier: Apache-2.0
//
// What a node tells, read from made-up trees and a made-up NVML.

#include <unistd.h>

#include <cstdlib>

#include "launcher/health/node/gpu_info.h"
#include "launcher/health/node/nvml.h"
#include "launcher/health/node/system_info.h"
#include "tests/support/directories.h"
#include "tests/support/other_user.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

const std::string kFakeNvml = tests::BuildDirectory() + "/tests/libfake_nvml.so";

class NodeTree : public tests::DirectoryTest {
 protected:
  const std::string root_ = directory_;
};

TEST_F(NodeTree, OfAPowerNodeIsRead) {
  Write("/proc/cpuinfo",
        "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n\n"
        "processor\t: 4\ncpu\t\t: POWER9, altivec supported\n");
  Write("/proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n");
  Write("/proc/sys/kernel/osrelease", "4.18.0-305.el8.ppc64le\n");
  Write("/proc/sys/kernel/hostname", "gpu025\n");
  Write("/etc/os-release", "NAME=\"Red Hat\"\nPRETTY_NAME=\"Red Hat Enterprise Linux 8.6\"\n");
  NodeInfo info;
  ReadSystemInfo(root_, info);
  EXPECT_EQ(info.cpu_model, "POWER9, altivec supported");
  EXPECT_EQ(info.cpus, 2);
  EXPECT_EQ(info.machine, "gpu025");
  EXPECT_EQ(info.memory_bytes, 1024 * 1024);
  EXPECT_EQ(info.kernel, "4.18.0-305.el8.ppc64le");
  EXPECT_EQ(info.system, "Red Hat Enterprise Linux 8.6");
}

TEST_F(NodeTree, TellsPortsAndNvidiaDevices) {
  for (const char* device : {"mlx5_0", "mlx5_1"}) {
    const std::string port = std::string("/sys/class/infiniband/") + device + "/ports/1/";
    Write(port + "state", device[5] == '0' ? "4: ACTIVE\n" : "1: DOWN\n");
    Write(port + "rate", "100 Gb/sec (4X EDR)\n");
    Write(port + "link_layer", "InfiniBand\n");
  }
  const std::string devices = "/sys/bus/pci/devices/";
  Write(devices + "0004:04:00.0/vendor", "0x10de\n");
  Write(devices + "0004:04:00.0/class", "0x030200\n");
  Write(devices + "0004:04:00.1/vendor", "0x10de\n");
  Write(devices + "0004:04:00.1/class", "0x040300\n");  // its sound
  Write(devices + "0005:00:00.0/vendor", "0x15b3\n");
  NodeInfo info;
  ReadSystemInfo(root_, info);
  ASSERT_EQ(info.ports.size(), 2U);
  EXPECT_EQ(info.ports[0].name, "mlx5_0:1");
  EXPECT_EQ(info.ports[0].state, "ACTIVE");
  EXPECT_EQ(info.ports[0].rate_gbits, 100);
  EXPECT_EQ(info.ports[0].protocol, "InfiniBand");
  EXPECT_EQ(info.ports[1].state, "DOWN");
  EXPECT_EQ(info.nvidia_devices, 1);
}

TEST_F(NodeTree, TellsWhatIsOpenToOtherUsers) {
  const struct {
    const char* regular;
    const char* symlinks;
    const char* text;
  } cases[] = {{"1", "1", ""},
               {"2", "1", ""},
               {"0", "1", "fs.protected_regular is 0"},
               {"1", "0", "fs.protected_symlinks is 0"},
               {"0", "0", "fs.protected_regular is 0, fs.protected_symlinks is 0"}};
  const auto told = [this] {
    NodeInfo info;
    ReadSystemInfo(root_, info);
    return info.other_users;
  };
  EXPECT_EQ(told(), "");  // Linux before 4.19
  Write("/proc/sys/kernel/hostname", "n2.site.org\n");
  for (const auto& [regular, symlinks, text] : cases) {
    Write("/proc/sys/fs/protected_regular", regular);
    Write("/proc/sys/fs/protected_symlinks", symlinks);
    EXPECT_EQ(told(), text);
  }
  const std::string name = "/tmp/ompi.n2." + std::to_string(geteuid());
  Write(name + "/file", "");
  EXPECT_EQ(told(), cases[4].text);
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "another user's directory is made by root alone";
  ASSERT_EQ(lchown((root_ + name).c_str(), 12345, 12345), 0);
  EXPECT_EQ(told(), name + " belongs to user 12345, " + cases[4].text);
}

TEST_F(NodeTree, ThatIsEmptyLeavesFactsUnknown) {
  NodeInfo info;
  ReadSystemInfo(root_, info);
  EXPECT_EQ(info.cpus, 0);
  EXPECT_TRUE(info.ports.empty());
  ReadGpuInfo({.nvml = root_ + "/no.so", .root = root_}, info);
  EXPECT_EQ(info.gpu_source, "");
  EXPECT_EQ(info.gpu_problem, "");
  EXPECT_TRUE(info.gpus.empty());
}

TEST_F(NodeTree, TellsGpusByProcAndByDevWithoutNvml) {
  GpuQuery sources{.nvml = root_ + "/no.so", .root = root_};
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"}) {
    Write(std::string("/dev/") + name, "");
  }
  NodeInfo info;
  ReadGpuInfo(sources, info);
  EXPECT_EQ(info.gpu_source, "/dev");
  EXPECT_EQ(info.gpus.size(), 2U);

  Write("/proc/driver/nvidia/gpus/0004:04:00.0/information",
        "Model: \t\t Tesla V100-SXM2-16GB\nIRQ:   \t\t 1\nGPU UUID: \t GPU-1234\n");
  Write("/proc/driver/nvidia/gpus/0035:03:00.0/information", "Model:\n");
  ReadGpuInfo(sources, info);
  EXPECT_EQ(info.gpu_source, "/proc");
  ASSERT_EQ(info.gpus.size(), 2U);
  EXPECT_EQ(info.gpus[0].model, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(info.gpus[0].pci_bus_id, "0004:04:00.0");
  EXPECT_EQ(info.gpus[1].model, "");
}

TEST(Nvml, TellsWhatIsWrongWithAGpu) {
  std::string problem;
  const std::vector<FoundGpu> gpus = ReadNvml(kFakeNvml, problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].uuid, "GPU-aaaa");
  const GpuInfo& broken = gpus[0].info;
  EXPECT_EQ(broken.model, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(broken.pci_bus_id, "0004:04:00.0");
  EXPECT_EQ(broken.uncorrected_errors, 7);
  EXPECT_TRUE(broken.remap_pending);
  EXPECT_FALSE(broken.remap_failed);
  EXPECT_EQ(broken.nvlinks, 5);
  EXPECT_EQ(broken.pcie_lanes, 8);
  EXPECT_EQ(broken.pcie_lanes_max, 16);
  ASSERT_EQ(broken.processes.size(), 2U);
  EXPECT_EQ(broken.processes[0].pid, 4711);
  EXPECT_EQ(broken.processes[0].bytes, 1LL << 30);
  EXPECT_EQ(broken.processes[1].bytes, -1);
  EXPECT_EQ(gpus[1].info.nvlinks, 6);
  EXPECT_TRUE(gpus[1].info.processes.empty());
  EXPECT_FALSE(gpus[1].info.remap_pending);
}

TEST(Nvml, TellsTheNvlinkDomainOfAGpu) {
  std::string problem;
  EXPECT_EQ(ReadNvml(kFakeNvml, problem)[1].info.nvlink_domain, "");
  setenv("FAKE_NVML", "fabric", 1);
  const std::vector<FoundGpu> gpus = ReadNvml(kFakeNvml, problem);
  setenv("FAKE_NVML", "hgx", 1);
  const std::vector<FoundGpu> inside = ReadNvml(kFakeNvml, problem);
  unsetenv("FAKE_NVML");
  EXPECT_EQ(gpus[0].info.nvlink_domain, "");
  EXPECT_EQ(gpus[1].info.nvlink_domain, "0f1e2d3c4b5a69788796a5b4c3d2e1f0.32766");
  EXPECT_EQ(inside[1].info.nvlink_domain, "");
}

// Of device files that the driver alone makes: here plain files.
TEST_F(NodeTree, TellsWhyNoImexChannelCanBeOpened) {
  NodeInfo info;
  const auto problem = [&] {
    ReadGpuInfo({.nvml = root_ + "/no.so", .root = root_}, info);
    return info.imex_problem;
  };
  EXPECT_EQ(problem(), "there is no /dev/nvidia-caps-imex-channels/channel*");
  const std::string directory = "/dev/nvidia-caps-imex-channels/";
  Write(directory + "other", "");
  EXPECT_EQ(problem(), "there is no /dev/nvidia-caps-imex-channels/channel*");
  fs::create_symlink("nothing", root_ + directory + "channel0");
  EXPECT_EQ(problem(), "/dev/nvidia-caps-imex-channels/channel0: No such file or directory");
  Write(directory + "channel7", "");
  EXPECT_EQ(problem(), "");
}

TEST(Nvml, ThatCannotBeStartedIsNamed) {
  setenv("FAKE_NVML", "broken", 1);
  std::string problem;
  EXPECT_TRUE(ReadNvml(kFakeNvml, problem).empty());
  unsetenv("FAKE_NVML");
  EXPECT_EQ(problem, "NVML: Driver Not Loaded");
}

TEST(Nvml, GivesTheVisibleGpusOnly) {
  NodeInfo info;
  ReadGpuInfo({.nvml = kFakeNvml, .visible = "1", .all_visible = false}, info);
  EXPECT_EQ(info.gpu_source, "NVML");
  ASSERT_EQ(info.gpus.size(), 1U);
  EXPECT_EQ(info.gpus[0].pci_bus_id, "0004:05:00.0");
}

TEST(Directory, IsProbedAndLeftAsItWas) {
  const fs::path before = fs::current_path();
  const TemporaryDirectory directory;
  fs::current_path(directory.path());
  std::ofstream("probe") << "";
  const DirectoryInfo seen = ReadDirectory("probe", std::chrono::seconds(0));
  const DirectoryInfo missed = ReadDirectory("another", std::chrono::seconds(0));
  fs::remove("probe");
  EXPECT_TRUE(fs::is_empty(directory.path()));
  fs::current_path(before);
  EXPECT_TRUE(seen.is_shared);
  EXPECT_FALSE(missed.is_shared);
  EXPECT_EQ(seen.write_error, "");
  EXPECT_GT(seen.free_bytes, 0);
  EXPECT_EQ(seen.path, directory.path());
}

TEST(WriteError, SaysWhyNothingCanBeMade) {
  EXPECT_NE(WriteError("/proc"), "");
  EXPECT_NE(WriteError("/nonexistent"), "");
  EXPECT_EQ(WriteError(testing::TempDir()), "");
}

}  // namespace
}  // namespace launcher
