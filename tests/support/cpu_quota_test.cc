// SPDX-License-Identifier: Apache-2.0

#include "support/cpu_quota.h"

#include <unistd.h>

#include <climits>

#include "tests/support/test.h"

namespace support {
namespace {

namespace fs = std::filesystem;

TEST(CpuQuota, OfVersion2IsReadFromCpuMax) {
  const CpuQuota quota = ParseCpuMax("150000 100000\n");
  EXPECT_EQ(quota.time, 150000);
  EXPECT_EQ(quota.period, 100000);
  EXPECT_EQ(ParseCpuMax("150000 100000").period, 100000);
}

TEST(CpuQuota, OfVersion1IsReadFromTwoFiles) {
  const CpuQuota quota = ParseCfsQuota("50000\n", "100000\n");
  EXPECT_EQ(quota.time, 50000);
  EXPECT_EQ(quota.period, 100000);
}

TEST(CpuQuota, IsNoLimitWhereTheTextSaysNone) {
  for (const char* text :
       {"max 100000\n", "", "\n", "100000\n", "x y\n", "-1 100000\n", "0 100000\n", "1000 0\n",
        "1000 -5\n", "1000x 100000\n", "1000 100000x\n", "99999999999999999999 100000\n"}) {
    EXPECT_EQ(ParseCpuMax(text).period, 0) << text;
  }
  EXPECT_EQ(ParseCfsQuota("-1\n", "100000\n").period, 0);
  EXPECT_EQ(ParseCfsQuota("", "100000\n").period, 0);
  EXPECT_EQ(ParseCfsQuota("50000\n", "").period, 0);
  EXPECT_EQ(ParseCfsQuota("50000 7\n", "100000\n").period, 0);
}

TEST(CpuQuota, IsSharedByTheRanksAndRoundedUp) {
  struct Case {
    CpuQuota quota;
    int ranks;
    int threads;
  };
  for (const Case& c :
       {Case{{50000, 100000}, 1, 1}, Case{{50000, 100000}, 4, 1}, Case{{150000, 100000}, 1, 2},
        Case{{150000, 100000}, 2, 1}, Case{{200000, 100000}, 1, 2}, Case{{200001, 100000}, 1, 3},
        Case{{800000, 100000}, 2, 4}, Case{{700000, 100000}, 2, 4}, Case{{600000, 100000}, 2, 3},
        Case{{LLONG_MAX, 1}, 1, INT_MAX}, Case{{1, LLONG_MAX}, 3, 1}, Case{{}, 2, INT_MAX}}) {
    EXPECT_EQ(ThreadsOfShare(c.quota, c.ranks), c.threads)
        << c.quota.time << '/' << c.quota.period << " for " << c.ranks;
  }
}

std::string GroupIn(const std::string& text, GroupVersion version) {
  char path[16] = "untouched";
  return FindCpuGroup(text.c_str(), version, path, sizeof(path)) ? path : "none";
}

TEST(CpuGroup, IsThatOfTheControllerCpu) {
  const std::string hybrid =
      "5:cpuset:/set\n4:cpuacct,cpu:/job_7\n3:name=cpu:/named\n1:memory:/m\n0::/job_8\n";
  EXPECT_EQ(GroupIn(hybrid, GroupVersion::k1), "/job_7");
  EXPECT_EQ(GroupIn(hybrid, GroupVersion::k2), "/job_8");
  EXPECT_EQ(GroupIn("1:cpu:/a:b", GroupVersion::k1), "/a:b");
  EXPECT_EQ(GroupIn("0::/\n", GroupVersion::k1), "none");
  EXPECT_EQ(GroupIn("2:cpuacct:/\n1:cpu:/\n", GroupVersion::k2), "none");
}

TEST(CpuGroup, IsNotInATextOfAnotherForm) {
  for (const char* text : {"", "\n\n", "0", "0:", "0::", "0::\n", "0::x", "1:cpu", "1:cpu\n:/x",
                           "cpu:/x", "0:\n:/x", "1:cpu:relative\n"}) {
    EXPECT_EQ(GroupIn(text, GroupVersion::k1), "none") << text;
    EXPECT_EQ(GroupIn(text, GroupVersion::k2), "none") << text;
  }
}

TEST(CpuGroup, IsNotFoundWhereItsPathIsTooLong) {
  EXPECT_EQ(GroupIn("0::/4567890123456\n", GroupVersion::k2), "/4567890123456");
  EXPECT_EQ(GroupIn("0::/456789012345678\n", GroupVersion::k2), "none");
}

// A made-up machine of 8 cores.
class ThreadsWithinQuotaTest : public ::testing::Test {
 protected:
  ThreadsWithinQuotaTest() : root_(testing::TempDir() + "cpu_quota." + std::to_string(getpid())) {}
  ~ThreadsWithinQuotaTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int Threads(int ranks = 1) { return ThreadsWithinQuota(root_.c_str(), 8, ranks); }

  fs::path root_;
};

TEST_F(ThreadsWithinQuotaTest, AreTheCoresWhereNothingIsKnown) {
  EXPECT_EQ(Threads(), 8);
  Write("proc/self/cgroup", "0::/job\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "garbage\n");
  EXPECT_EQ(Threads(), 8);
  Write("sys/fs/cgroup/job/cpu.max", "1600000 100000\n");
  EXPECT_EQ(Threads(), 8);
}

TEST_F(ThreadsWithinQuotaTest, AreOneForHalfACpuOfVersion2) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(Threads(), 1);
}

TEST_F(ThreadsWithinQuotaTest, AreTheShareOfEachRank) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Threads(1), 2);
  EXPECT_EQ(Threads(2), 1);
}

TEST_F(ThreadsWithinQuotaTest, AreThoseOfTheTightestGroupAbove) {
  Write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  Write("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "500000 100000\n");
  EXPECT_EQ(Threads(), 5);
  Write("sys/fs/cgroup/slurm/job_7/cpu.max", "300000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("sys/fs/cgroup/slurm/cpu.max", "400000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Threads(), 2);
}

// The limit of a group beside it, or of another machine's, is none of ours.
TEST_F(ThreadsWithinQuotaTest, AreNotThoseOfOtherGroups) {
  Write("proc/self/cgroup", "0::/job_7\n");
  Write("sys/fs/cgroup/job_8/cpu.max", "100000 100000\n");
  Write("sys/fs/cpu.max", "100000 100000\n");
  EXPECT_EQ(Threads(), 8);
}

TEST_F(ThreadsWithinQuotaTest, AreThoseOfVersion1ByAllNamesOfItsMount) {
  for (const std::string mount : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    fs::remove_all(root_ / "sys");
    Write("proc/self/cgroup", "4:memory:/m\n3:cpuacct,cpu:/docker/0123\n");
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_quota_us", "-1\n");
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(Threads(), 8) << mount;
    Write("sys/fs/cgroup/" + mount + "/docker/0123/cpu.cfs_quota_us", "250000\n");
    EXPECT_EQ(Threads(), 3) << mount;
  }
}

// The path is the host's; what is mounted is the container's own group.
TEST_F(ThreadsWithinQuotaTest, AreThoseOfTheMountInAContainer) {
  Write("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n0::/docker/0123\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 2);
  fs::remove_all(root_ / "sys");
  Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(Threads(), 3);
  Write("proc/self/cgroup", "0::/../0123\n");
  Write("sys/fs/0123/cpu.max", "100000 100000\n");
  EXPECT_EQ(Threads(), 3);
}

TEST_F(ThreadsWithinQuotaTest, AreTheLeastOfBothVersions) {
  Write("proc/self/cgroup", "1:cpu:/job\n0::/job\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Threads(), 4);
  Write("sys/fs/cgroup/unified/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(Threads(), 2);
}

}  // namespace
}  // namespace support
