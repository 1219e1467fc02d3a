// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace trainer {
namespace {

namespace fs = std::filesystem;

TEST(ControlGroup, IsTheOneThatAccountsMemory) {
  const auto version_1 = [](const std::string& path) { return MemoryControlGroup{path, false}; };
  const auto version_2 = [](const std::string& path) { return MemoryControlGroup{path, true}; };
  // As on RHEL 8, with Slurm.
  EXPECT_EQ(ParseControlGroup("12:pids:/user.slice\n"
                              "9:memory:/slurm/uid_1000/job_7/step_0\n"
                              "1:name=systemd:/system.slice/slurmd.service\n"),
            version_1("/slurm/uid_1000/job_7/step_0"));
  EXPECT_EQ(ParseControlGroup("4:cpu,memory:/a\n0::/b\n"), version_1("/a"));
  // As on RHEL 9.
  EXPECT_EQ(ParseControlGroup("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"),
            version_2("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"));
  EXPECT_EQ(ParseControlGroup("0::/\n"), version_2("/"));
  EXPECT_EQ(ParseControlGroup("0::/a:b\n"), version_2("/a:b"));
  for (const char* none : {"", "1:name=memory:/x\n", "1:cpu:/x\n", "0::\n", "0::../x\n", "0\n"}) {
    EXPECT_EQ(ParseControlGroup(none), MemoryControlGroup{}) << none;
  }
}

// A root of a file system that holds what the test writes.
class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    std::string name = (fs::temp_directory_path() / "host-memory-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
    Write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:    1000 kB\nMemAvailable:    8000 kB\n");
  }
  ~HostMemoryTest() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  HostMemory Find(HostMemoryOptions options = {}) {
    options.file_system = root_;
    return FindHostMemory(options);
  }

  void ExpectFound(std::size_t bytes, const std::string& origin, HostMemoryOptions options = {}) {
    const HostMemory found = Find(std::move(options));
    EXPECT_EQ(found.bytes, bytes);
    EXPECT_EQ(found.origin, origin);
  }

  fs::path root_;
};

TEST_F(HostMemoryTest, IsWhatTheMachineHasLeft) {
  ExpectFound(8000 * 1024, "left on this machine (MemAvailable)");
}

TEST_F(HostMemoryTest, IsWithoutLimitWhereNothingIsKnown) {
  fs::remove_all(root_ / "proc");
  EXPECT_EQ(Find().bytes, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(Find({.processes = 4}).bytes, std::numeric_limits<std::size_t>::max());
}

// What the kernel would give back of cached files is as good as free.
TEST_F(HostMemoryTest, IsWhatAControlGroupOfVersion1Leaves) {
  Write("proc/self/cgroup", "9:memory:/slurm/job_7/step_0\n");
  const fs::path job = "sys/fs/cgroup/memory/slurm/job_7";
  Write(job / "step_0/memory.limit_in_bytes", "9223372036854771712\n");
  Write(job / "step_0/memory.usage_in_bytes", "1000\n");
  Write(job / "memory.limit_in_bytes", "5000000\n");
  Write(job / "memory.usage_in_bytes", "2000000\n");
  Write(job / "memory.stat",
        "inactive_file 7\ntotal_cache 900000\ntotal_inactive_file 300000\n"
        "total_active_file 200000\n");
  ExpectFound(3500000, "left in the control group /slurm/job_7");
}

TEST_F(HostMemoryTest, IsWhatAControlGroupOfVersion2Leaves) {
  Write("proc/self/cgroup", "0::/job_7/step_0\n");
  const fs::path job = "sys/fs/cgroup/job_7";
  Write(job / "step_0/memory.max", "max\n");
  Write(job / "step_0/memory.current", "1000\n");
  Write(job / "memory.max", "5000000\n");
  Write(job / "memory.current", "2000000\n");
  Write(job / "memory.stat", "anon 1\ninactive_file 300000\nactive_file 200000\n");
  ExpectFound(3500000, "left in the control group /job_7");
  Write(job / "step_0/memory.max", "1001000\n");
  ExpectFound(1000000, "left in the control group /job_7/step_0");
}

// In a container the group's path is not below what is mounted.
TEST_F(HostMemoryTest, IsWhatTheGroupLeavesThatIsMountedInAContainer) {
  Write("proc/self/cgroup", "9:memory:/docker/0123\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  ExpectFound(2000000, "left in the control group /");
}

TEST_F(HostMemoryTest, AGroupThatHoldsMoreThanItsLimitLeavesNothing) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "1000\n");
  Write("sys/fs/cgroup/memory.current", "2000\n");
  ExpectFound(0, "left in the control group /");
  Write("sys/fs/cgroup/memory.stat", "inactive_file 5000\n");
  ExpectFound(1000, "left in the control group /");
}

TEST_F(HostMemoryTest, IsSharedByTheRanksOfANodeButForTheAddressSpace) {
  ExpectFound(2000 * 1024, "its share of what is left on this machine (MemAvailable)",
              {.processes = 4});
  ExpectFound(3000000, "left of its address space (ulimit -v)",
              {.processes = 2, .address_space_bytes = 3000000});
  ExpectFound(2000 * 1024, "its share of what is left on this machine (MemAvailable)",
              {.processes = 4, .address_space_bytes = 3000000});
}

TEST_F(HostMemoryTest, OfThisMachineIsKnown) {
  const HostMemory memory = FindHostMemory({});
  EXPECT_GT(memory.bytes, std::size_t{10} << 20);
  EXPECT_LT(memory.bytes, std::size_t{1} << 50);
}

}  // namespace
}  // namespace trainer
