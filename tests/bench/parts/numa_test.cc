// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/temporary_folder.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Of an AC922: the memory of its GPUs is nodes without CPUs.
TEST(ReadNumaCpus, AreTheNodesThatHaveCpus) {
  const trainer::TemporaryFolder folder;
  const std::filesystem::path nodes = folder.path() / "sys/devices/system/node";
  for (const auto& [name, list] : {std::pair("node8", "80-159\n"),
                                   {"node0", "0-3,8\n"},
                                   {"node255", "\n"},
                                   {"node1x", "1\n"},
                                   {"power", "1\n"}}) {
    std::filesystem::create_directories(nodes / name);
    std::ofstream(nodes / name / "cpulist") << list;
  }
  const std::vector<NumaCpus> found = ReadNumaCpus(folder.path().string());
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].number, 0);
  EXPECT_THAT(found[0].cpus, ElementsAre(0, 1, 2, 3, 8));
  EXPECT_EQ(found[1].number, 8);
  EXPECT_THAT(found[1].cpus, SizeIs(80));
  EXPECT_THAT(ReadNumaCpus((folder.path() / "nothing").string()), IsEmpty());
}

// As on most machines: the device is behind a root port, and that behind the host bridge.
TEST(HostBridgeOf, IsFoundThroughOtherBridges) {
  namespace fs = std::filesystem;
  const trainer::TemporaryFolder folder;
  const fs::path sys = folder.path() / "sys";
  const fs::path device = sys / "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  fs::create_directories(device);
  fs::create_directories(sys / "bus/pci/devices");
  fs::create_symlink(device, sys / "bus/pci/devices/0000:3b:00.0");
  const std::string root = folder.path().string();
  EXPECT_EQ(HostBridgeOf(root, "0000:3B:00.0"), "0000:3a");
  EXPECT_EQ(HostBridgeOf(root, "0000:3b:00.0"), "0000:3a");
  EXPECT_EQ(HostBridgeOf(root, "0000:3c:00.0"), "-");
  EXPECT_EQ(HostBridgeOf(root, ""), "-");
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(OnCpus, RunsThereAndThenWhereItDidBefore) {
  const std::vector<int> before = AllowedCpus();
  ASSERT_FALSE(before.empty());
  {
    const OnCpus last({before.back()});
    EXPECT_TRUE(last.are_allowed());
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
    {
      // A rank that is bound may go elsewhere.
      const OnCpus first({before.front()});
      EXPECT_TRUE(first.are_allowed());
      EXPECT_THAT(AllowedCpus(), ElementsAre(before.front()));
    }
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
  }
  EXPECT_EQ(AllowedCpus(), before);
}

// As ddlrun has it of a rank that it binds.
TEST(OnCpus, TakesMemoryOfWhereItRunsAndThenAsBefore) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED
  const auto policy = [] {
    int mode = -1;
    ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0);
    return mode;
  };
  const unsigned long node_0 = 1;
  if (::syscall(SYS_set_mempolicy, kPreferred, &node_0, 64) != 0)
    GTEST_SKIP() << "not allowed here";
  {
    const OnCpus there(AllowedCpus());
    EXPECT_EQ(policy(), 0);
  }
  EXPECT_EQ(policy(), kPreferred);
  ::syscall(SYS_set_mempolicy, 0, nullptr, 0);
}

TEST(OnCpus, StaysWhereThereAreNone) {
  const std::vector<int> before = AllowedCpus();
  for (const std::vector<int>& cpus : {std::vector<int>{}, {8191}, {70000}}) {
    const OnCpus nowhere(cpus);
    EXPECT_FALSE(nowhere.are_allowed());
    EXPECT_EQ(AllowedCpus(), before);
  }
}

}  // namespace
}  // namespace bench
