// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Judge, FindsNothingWrongWithHealthyNodes) {
  const MadeUpJob made(4);
  const std::vector<Verdict> verdicts = JudgeNodes(made.job, made.facts);
  EXPECT_EQ(verdicts.size(), 16U);
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.status, Status::kOk) << verdict.check << ": " << verdict.seen;
    EXPECT_EQ(verdict.advice, "") << verdict.check;
  }
  EXPECT_FALSE(AnyFailed(verdicts));
}

TEST(Judge, NamesNodesThatDidNotAnswerAndJudgesTheOthers) {
  MadeUpJob made(4);
  made.facts[2] = NodeFacts();
  made.facts[3] = NodeFacts();
  made.job.launcher_end = "the launcher ended with exit code 1";
  const Verdict verdict = made.Of("nodes");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "no answer from n[3-4]; the launcher ended with exit code 1");
  EXPECT_THAT(verdict.advice, HasSubstr("--exclude=n[3-4]"));
  EXPECT_EQ(made.Of("shm").status, Status::kOk);
}

TEST(Judge, WarnsWhenOneMachineAnswersForTwoHosts) {
  MadeUpJob made(4);
  made.facts[1].machine = "n1";
  const Verdict verdict = made.Of("nodes");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "one machine answered for several hosts: n1 (n[1-2])");
}

TEST(Judge, SaysOnlyThatWhenNobodyAnswered) {
  MadeUpJob made(2);
  made.facts = {NodeFacts(), NodeFacts()};
  EXPECT_EQ(JudgeNodes(made.job, made.facts).size(), 1U);
  EXPECT_THAT(BadNodes(JudgeNodes(made.job, made.facts)), IsEmpty());
}

// The bad nodes that are found where `spoil` was done to the third of four.
std::vector<std::string> BadAfter(const std::function<void(NodeFacts&)>& spoil) {
  MadeUpJob made(4);
  spoil(made.facts[2]);
  std::vector<std::string> bad;
  for (const BadNode& node : BadNodes(JudgeNodes(made.job, made.facts))) bad.push_back(node.host);
  return bad;
}

TEST(Judge, KnowsWhichNodeAJobCouldDoWithout) {
  const std::vector<std::function<void(NodeFacts&)>> faults = {
      [](NodeFacts& facts) { facts = NodeFacts(); },
      [](NodeFacts& facts) { facts.gpus.pop_back(); },
      [](NodeFacts& facts) {
        facts.gpus[1].processes = {{77, 1}};
      },
      [](NodeFacts& facts) { facts.gpus[1].uncorrected_errors = 1; },
      [](NodeFacts& facts) { facts.ports[0].state = facts.ports[1].state = "DOWN"; },
      [](NodeFacts& facts) { facts.memlock_bytes = 1; },
      [](NodeFacts& facts) { facts.shm_error = "no"; },
      [](NodeFacts& facts) { facts.directory.write_error = "no"; },
      [](NodeFacts& facts) { facts.directory.is_shared = false; },
      [](NodeFacts& facts) { facts.mpi = "another"; },
      [](NodeFacts& facts) {
        facts.exchange.failed = {{0, "lost", 0}, {3, "lost", 0}};
      },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_THAT(BadAfter(faults[i]), ElementsAre("n3")) << i;
  }
  EXPECT_THAT(BadAfter([](NodeFacts&) {}), IsEmpty());
  // Only a warning.
  EXPECT_THAT(BadAfter([](NodeFacts& facts) { facts.memory_bytes = 1; }), IsEmpty());
}

TEST(Judge, BlamesNoNodeWhereItCannotBeTold) {
  MadeUpJob made(4);
  made.job.directory_error = "cannot be written";
  EXPECT_THAT(made.Of("directory").bad_hosts, IsEmpty());
  made = MadeUpJob(4);
  made.facts[0].mpi = made.facts[1].mpi = "another";
  EXPECT_EQ(made.Of("versions").status, Status::kFail);
  EXPECT_THAT(made.Of("versions").bad_hosts, IsEmpty());
  made.facts[2].mpi = "another";
  EXPECT_THAT(made.Of("versions").bad_hosts, ElementsAre("n4"));
  made = MadeUpJob(4);
  made.facts[1].exchange.problem = "PMIx_Init: UNREACHABLE";
  EXPECT_EQ(made.Of("connections").status, Status::kFail);
  EXPECT_THAT(made.Of("connections").bad_hosts, IsEmpty());
}

TEST(Hardware, WarnsOfAnotherProcessor) {
  MadeUpJob made(3);
  made.facts[1].cpu_model = "POWER8";
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("POWER8, 128 CPUs, 4 GPUs Tesla V100-SXM2-16GB (n2)"));
  EXPECT_THAT(verdict.seen, HasSubstr("(n[1,3])"));
}

TEST(Hardware, WarnsOfAnotherGpuModelAndNumber) {
  MadeUpJob made(2);
  made.facts[0].gpus[3].model = "Tesla V100-SXM2-32GB";
  EXPECT_EQ(made.Of("hardware").status, Status::kWarn);
  made = MadeUpJob(2);
  made.facts[0].nvidia_devices = 3;
  EXPECT_EQ(made.Of("hardware").status, Status::kWarn);
}

TEST(Hardware, ToleratesWhatFirmwareKeepsOfMemoryAndNoMore) {
  MadeUpJob made(2);
  made.facts[1].memory_bytes = 508LL << 30;
  EXPECT_EQ(made.Of("hardware").status, Status::kOk);
  made.facts[1].memory_bytes = 256LL << 30;
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("256 GiB of memory on n2 and 512 GiB on n1"));
}

TEST(Hardware, MentionsAnotherKernelAndLetsItPass) {
  MadeUpJob made(2);
  made.facts[1].kernel = "5.14.0";
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kOk);
  EXPECT_THAT(verdict.seen, HasSubstr("kernel 5.14.0 (n2)"));
}

TEST(GpuCount, FailsWhenSlurmGrantedLess) {
  MadeUpJob made(2);
  made.facts[1].granted_gpus = 2;
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "4 planned, Slurm granted 2 (n2)");
}

TEST(GpuCount, FailsWhenTheNodeShowsLess) {
  MadeUpJob made(2);
  made.facts[1].gpus.pop_back();
  EXPECT_EQ(made.Of("gpus").seen, "4 planned, 3 seen (n2)");
  made.facts[1].gpus.clear();
  made.facts[1].granted_gpus = -1;
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "4 planned, 4 devices on the PCI bus, but the driver shows none (n2)");
}

TEST(GpuCount, FailsWhereTheDriverDoesNotShowTheOnlyGpu) {
  MadeUpJob made(1, 1);
  made.facts[0].gpus.clear();
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "1 planned, 1 device on the PCI bus, but the driver shows none (n1)");
}

TEST(GpuCount, IsNotKnownWhereNoNodeHasNvidiaDevices) {
  MadeUpJob made(2);
  for (NodeFacts& facts : made.facts) {
    facts.gpus.clear();
    facts.nvidia_devices = 0;
  }
  EXPECT_EQ(made.Of("gpus").status, Status::kNotKnown);
}

TEST(GpuCount, FailsOnOneNodeWithoutAnyAmongOthersThatHaveSome) {
  MadeUpJob made(2);
  made.facts[0].gpus.clear();
  made.facts[0].nvidia_devices = 0;
  EXPECT_EQ(made.Of("gpus").seen, "4 planned, 0 seen (n1)");
}

TEST(GpuCount, AsksForNoneWhenNoneIsPlanned) {
  EXPECT_EQ(MadeUpJob(2, 0).Of("gpus").seen, "none planned, 0 seen");
  EXPECT_EQ(MadeUpJob(2, 0).Of("gpu-use").seen, "no GPUs to look at");
}

TEST(GpuUse, FailsWhenSomebodyComputesThere) {
  MadeUpJob made(2);
  made.facts[1].gpus[2].processes = {{4711, 5LL << 30}, {4712, -1}};
  const Verdict verdict = made.Of("gpu-use");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "GPU 2 used by pid 4711 (5.0 GiB) pid 4712 (n2)");
}

TEST(GpuChecks, AreNotKnownWithoutNvml) {
  MadeUpJob made(2);
  made.facts[0].gpu_source = "/proc";
  made.facts[0].gpu_problem = "NVML: Driver/library version mismatch";
  for (const char* check : {"gpu-use", "gpu-errors", "gpu-links"}) {
    const Verdict verdict = made.Of(check);
    EXPECT_EQ(verdict.status, Status::kNotKnown) << check;
    EXPECT_EQ(verdict.seen, "NVML: Driver/library version mismatch (n1)");
  }
}

TEST(GpuErrors, FailForUncorrectedErrorsAndFailedRemaps) {
  MadeUpJob made(2);
  made.facts[0].gpus[1].uncorrected_errors = 3;
  EXPECT_EQ(made.Of("gpu-errors").status, Status::kFail);
  EXPECT_EQ(made.Of("gpu-errors").seen, "GPU 1 3 uncorrected memory errors (n1)");
  made.facts[0].gpus[1].remap_failed = true;
  EXPECT_EQ(made.Of("gpu-errors").seen, "GPU 1 has bad memory that cannot be put out of use (n1)");
}

TEST(GpuErrors, WarnOfAPendingRemap) {
  MadeUpJob made(2);
  made.facts[0].gpus[0].remap_pending = true;
  EXPECT_EQ(made.Of("gpu-errors").status, Status::kWarn);
}

TEST(GpuLinks, WarnOfFewerNvlinksThanOthersOfTheModelHave) {
  MadeUpJob made(2);
  made.facts[1].gpus[0].nvlinks = 4;
  const Verdict verdict = made.Of("gpu-links");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "GPU 0 4 of 6 NVLinks active (n2)");
}

TEST(GpuLinks, WarnOfANarrowSlot) {
  MadeUpJob made(1);
  made.facts[0].gpus[0].pcie_lanes = 8;
  EXPECT_EQ(made.Of("gpu-links").seen, "GPU 0 8 of 16 PCIe lanes (n1)");
  made.facts[0].gpus[0].pcie_lanes = 0;  // nobody can say
  EXPECT_EQ(made.Of("gpu-links").status, Status::kOk);
}

TEST(Infiniband, IsNotNeeded) {
  MadeUpJob made(2);
  for (NodeFacts& facts : made.facts) facts.ports.clear();
  EXPECT_EQ(made.Of("infiniband").status, Status::kOk);
}

TEST(Infiniband, WarnsWhenNoPortIsActiveAnywhere) {
  MadeUpJob made(2);
  for (NodeFacts& facts : made.facts) {
    for (PortFacts& port : facts.ports) port.state = "DOWN";
  }
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
}

TEST(Infiniband, FailsWhenOneNodeHasNoActivePortAndOthersHave) {
  MadeUpJob made(3);
  for (PortFacts& port : made.facts[1].ports) port.state = "DOWN";
  const Verdict verdict = made.Of("infiniband");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "2 active ports at 100 Gbit/s (n[1,3]), no active port (n2)");
}

TEST(Infiniband, WarnsOfAMissingRailAndALowerRate) {
  MadeUpJob made(2);
  made.facts[0].ports[1].state = "INIT";
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
  made = MadeUpJob(2);
  for (PortFacts& port : made.facts[0].ports) port.rate_gbits = 25;
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
}

TEST(Memlock, FailsWhereInfinibandIsAndTheLimitIsLow) {
  MadeUpJob made(2);
  made.facts[1].memlock_bytes = 65536;
  const Verdict verdict = made.Of("memlock");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_THAT(verdict.seen, HasSubstr("the limit is 64 KiB (n2)"));
  made.facts[1].memlock_bytes = kMemlockNeeded;
  EXPECT_EQ(made.Of("memlock").status, Status::kOk);
  EXPECT_EQ(made.Of("memlock").seen, "enough for InfiniBand");
}

TEST(Memlock, DoesNotMatterWithoutInfiniband) {
  MadeUpJob made(1);
  made.facts[0].ports.clear();
  made.facts[0].memlock_bytes = 65536;
  EXPECT_EQ(made.Of("memlock").status, Status::kOk);
  EXPECT_EQ(made.Of("memlock").seen, "without InfiniBand the limit does not matter");
}

TEST(Shm, WarnsOfLittleAndFailsWithoutIt) {
  MadeUpJob made(2);
  made.facts[1].shm_free_bytes = 64LL << 20;
  EXPECT_EQ(made.Of("shm").status, Status::kWarn);
  EXPECT_THAT(made.Of("shm").seen, HasSubstr("64 MiB (n2)"));
  made.facts[1].shm_error = "Permission denied";
  EXPECT_EQ(made.Of("shm").status, Status::kFail);
}

TEST(Directory, FailsWhenItIsNotShared) {
  MadeUpJob made(3);
  made.facts[2].directory.is_shared = false;
  const Verdict verdict = made.Of("directory");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "not the directory of ddlrun: /nobackup/work (n3)");
}

TEST(Directory, FailsWhenItCannotBeWritten) {
  MadeUpJob made(2);
  made.facts[1].directory.write_error = "Read-only file system";
  EXPECT_EQ(made.Of("directory").status, Status::kFail);
  EXPECT_THAT(made.Of("directory").seen, HasSubstr("Read-only file system (n2)"));
  made = MadeUpJob(2);
  made.job.directory_error = "/proc cannot be written: No such file or directory";
  EXPECT_EQ(made.Of("directory").status, Status::kFail);
  EXPECT_EQ(made.Of("directory").seen, made.job.directory_error);
}

TEST(Master, WarnsOfNodesThatDoNotFindIt) {
  MadeUpJob made(4);
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR=n1 is found on 4 nodes");
  made.facts[1].master.problem = made.facts[2].master.problem = "Name or service not known";
  made.facts[3].master.problem = "no answer within 5 s";
  const Verdict verdict = made.Of("master-addr");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen,
            "MASTER_ADDR=n1 is not found: Name or service not known (n[2-3]), no answer within 5 s "
            "(n4)");
  EXPECT_THAT(verdict.advice, HasSubstr("-x MASTER_ADDR=ADDRESS"));
  EXPECT_FALSE(AnyFailed(JudgeNodes(made.job, made.facts)));
}

TEST(Master, IsNotKnownWhereANodeDidNotGetThatFar) {
  MadeUpJob made(2);
  made.facts[0].master = {};
  EXPECT_EQ(made.Of("master-addr").status, Status::kNotKnown);
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR=n1 was not looked up (n1)");
  made.facts[1].master.problem = "no such name";
  EXPECT_EQ(made.Of("master-addr").status, Status::kWarn);
  made.facts[1].master = {};
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR was not looked up (n[1-2])");
}

TEST(Directory, WarnsOfLittleSpace) {
  MadeUpJob made(2);
  made.facts[0].directory.free_bytes = 100LL << 20;
  EXPECT_EQ(made.Of("directory").status, Status::kWarn);
}

}  // namespace
}  // namespace launcher
