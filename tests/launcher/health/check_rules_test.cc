// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/check_rules.h"

#include "tests/launcher/health/fake_node_info.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Check, FindsNothingWrongWithHealthyNodes) {
  const FakeJob made(4);
  const std::vector<Verdict> verdicts = CheckNodes(made.job, made.info);
  EXPECT_EQ(verdicts.size(), 17U);
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.status, Status::kOk) << verdict.check << ": " << verdict.seen;
    EXPECT_EQ(verdict.advice, "") << verdict.check;
  }
  EXPECT_FALSE(AnyFailed(verdicts));
}

TEST(Check, NamesNodesThatDidNotAnswerAndJudgesTheOthers) {
  FakeJob made(4);
  made.info[2] = NodeInfo();
  made.info[3] = NodeInfo();
  made.job.launcher_end = "the launcher ended with exit code 1";
  const Verdict verdict = made.Of("nodes");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "no answer from n[3-4]; the launcher ended with exit code 1");
  EXPECT_THAT(verdict.advice, HasSubstr("--exclude=n[3-4]"));
  EXPECT_EQ(made.Of("shm").status, Status::kOk);
}

TEST(Check, WarnsWhenOneMachineAnswersForTwoHosts) {
  FakeJob made(4);
  made.info[1].machine = "n1";
  const Verdict verdict = made.Of("nodes");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "one machine answered for several hosts: n1 (n[1-2])");
}

TEST(Check, NamesTheFirstOfManyKinds) {
  FakeJob made(9);
  for (std::size_t node = 0; node < 9; ++node) {
    made.info[node].cpu_model = "model " + std::to_string(node);
  }
  EXPECT_THAT(made.Of("hardware").seen,
              AllOf(HasSubstr("model 7, 128 CPUs, 4 GPUs Tesla V100-SXM2-16GB (n8) and 1 more,"),
                    Not(HasSubstr("model 8"))));
  made.info[8].cpu_model = "model 7";
  EXPECT_THAT(made.Of("hardware").seen,
              AllOf(HasSubstr("(n[8-9]), 512 GiB of memory"), Not(HasSubstr(" more,"))));
}

TEST(Check, SaysOnlyThatWhenNobodyAnswered) {
  FakeJob made(2);
  made.info = {NodeInfo(), NodeInfo()};
  EXPECT_EQ(CheckNodes(made.job, made.info).size(), 1U);
  EXPECT_THAT(BadNodes(CheckNodes(made.job, made.info)), IsEmpty());
}

// The bad nodes that are found where `spoil` was done to the third of four.
std::vector<std::string> BadAfter(const std::function<void(NodeInfo&)>& spoil) {
  FakeJob made(4);
  spoil(made.info[2]);
  std::vector<std::string> bad;
  for (const BadNode& node : BadNodes(CheckNodes(made.job, made.info))) bad.push_back(node.host);
  return bad;
}

TEST(Check, KnowsWhichNodeAJobCouldDoWithout) {
  const std::vector<std::function<void(NodeInfo&)>> faults = {
      [](NodeInfo& info) { info = NodeInfo(); },
      [](NodeInfo& info) { info.gpus.pop_back(); },
      [](NodeInfo& info) {
        info.gpus[1].processes = {{77, 1}};
      },
      [](NodeInfo& info) { info.gpus[1].uncorrected_errors = 1; },
      [](NodeInfo& info) { info.ports[0].state = info.ports[1].state = "DOWN"; },
      [](NodeInfo& info) { info.memlock_bytes = 1; },
      [](NodeInfo& info) { info.shm_error = "no"; },
      [](NodeInfo& info) { info.directory.write_error = "no"; },
      [](NodeInfo& info) { info.directory.is_shared = false; },
      [](NodeInfo& info) { info.mpi = "another"; },
      [](NodeInfo& info) {
        info.exchange.failed = {{0, "lost", 0}, {3, "lost", 0}};
      },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_THAT(BadAfter(faults[i]), ElementsAre("n3")) << i;
  }
  EXPECT_THAT(BadAfter([](NodeInfo&) {}), IsEmpty());
  // Only a warning.
  EXPECT_THAT(BadAfter([](NodeInfo& info) { info.memory_bytes = 1; }), IsEmpty());
}

TEST(Check, BlamesNoNodeWhereItCannotBeTold) {
  FakeJob made(4);
  made.job.directory_error = "cannot be written";
  EXPECT_THAT(made.Of("directory").bad_hosts, IsEmpty());
  made = FakeJob(4);
  made.info[0].mpi = made.info[1].mpi = "another";
  EXPECT_EQ(made.Of("versions").status, Status::kFail);
  EXPECT_THAT(made.Of("versions").bad_hosts, IsEmpty());
  made.info[2].mpi = "another";
  EXPECT_THAT(made.Of("versions").bad_hosts, ElementsAre("n4"));
  made = FakeJob(4);
  made.info[1].exchange.problem = "PMIx_Init: UNREACHABLE";
  EXPECT_EQ(made.Of("connections").status, Status::kFail);
  EXPECT_THAT(made.Of("connections").bad_hosts, IsEmpty());
}

// What one check says where a job's healthy nodes were changed.
struct CheckCase {
  std::string name;  // Check_WhatIsSoOfIt
  int nodes;
  std::function<void(FakeJob&)> change;
  std::string check;
  Status status;
  testing::Matcher<std::string> seen = testing::_;
};

void PrintTo(const CheckCase& test, std::ostream* out) { *out << test.name; }

class CheckRules : public testing::TestWithParam<CheckCase> {};

TEST_P(CheckRules, Say) {
  FakeJob made(GetParam().nodes);
  GetParam().change(made);
  const Verdict verdict = made.Of(GetParam().check);
  EXPECT_EQ(verdict.status, GetParam().status);
  EXPECT_THAT(verdict.seen, GetParam().seen);
}

std::vector<CheckCase> HardwareCases() {
  return {
      {"Hardware_WarnsOfAnotherProcessor", 3,
       [](FakeJob& made) { made.info[1].cpu_model = "POWER8"; }, "hardware", Status::kWarn,
       AllOf(HasSubstr("POWER8, 128 CPUs, 4 GPUs Tesla V100-SXM2-16GB (n2)"),
             HasSubstr("(n[1,3])"))},
      {"Hardware_WarnsOfAnotherGpuModel", 2,
       [](FakeJob& made) { made.info[0].gpus[3].model = "Tesla V100-SXM2-32GB"; }, "hardware",
       Status::kWarn},
      {"Hardware_WarnsOfAnotherNumberOfGpus", 2,
       [](FakeJob& made) { made.info[0].nvidia_devices = 3; }, "hardware", Status::kWarn},
      {"Hardware_ToleratesWhatFirmwareKeepsOfMemory", 2,
       [](FakeJob& made) { made.info[1].memory_bytes = 508LL << 30; }, "hardware", Status::kOk},
      {"Hardware_WarnsOfLessMemory", 2,
       [](FakeJob& made) { made.info[1].memory_bytes = 256LL << 30; }, "hardware", Status::kWarn,
       HasSubstr("256 GiB of memory on n2 and 512 GiB on n1")},
      {"Hardware_MentionsAnotherKernelAndLetsItPass", 2,
       [](FakeJob& made) { made.info[1].kernel = "5.14.0"; }, "hardware", Status::kOk,
       HasSubstr("kernel 5.14.0 (n2)")},
      {"GpuCount_FailsWhenSlurmGrantedLess", 2,
       [](FakeJob& made) { made.info[1].granted_gpus = 2; }, "gpus", Status::kFail,
       "4 planned, Slurm granted 2 (n2)"},
      {"GpuCount_FailsWhenTheNodeShowsLess", 2, [](FakeJob& made) { made.info[1].gpus.pop_back(); },
       "gpus", Status::kFail, "4 planned, 3 seen (n2)"},
      {"GpuCount_FailsWhenTheDriverShowsNone", 2,
       [](FakeJob& made) {
         made.info[1].gpus.clear();
         made.info[1].granted_gpus = -1;
       },
       "gpus", Status::kFail,
       "4 planned, 4 devices on the PCI bus, but the driver shows none (n2)"},
      {"GpuCount_FailsWhereTheDriverDoesNotShowTheOnlyGpu", 1,
       [](FakeJob& made) {
         made = FakeJob(1, 1);
         made.info[0].gpus.clear();
       },
       "gpus", Status::kFail, "1 planned, 1 device on the PCI bus, but the driver shows none (n1)"},
      {"GpuCount_FailsWhereTheDriverDoesNotAnswer", 1,
       [](FakeJob& made) {
         made = FakeJob(1, 1);
         made.info[0].gpus.clear();
         made.info[0].nvidia_devices = 0;
         made.info[0].gpu_problem = "the NVIDIA driver has not answered for 10 s (NVML)";
       },
       "gpus", Status::kFail,
       "1 planned, but the NVIDIA driver has not answered for 10 s (NVML) (n1)"},
      {"GpuCount_IsNotKnownWhereNoNodeHasNvidiaDevices", 2,
       [](FakeJob& made) {
         for (NodeInfo& info : made.info) {
           info.gpus.clear();
           info.nvidia_devices = 0;
         }
       },
       "gpus", Status::kNotKnown},
      {"GpuCount_FailsOnOneNodeWithoutAnyAmongOthersThatHaveSome", 2,
       [](FakeJob& made) {
         made.info[0].gpus.clear();
         made.info[0].nvidia_devices = 0;
       },
       "gpus", Status::kFail, "4 planned, 0 seen (n1)"},
      {"GpuCount_AsksForNoneWhenNoneIsPlanned", 2, [](FakeJob& made) { made = FakeJob(2, 0); },
       "gpus", Status::kOk, "none planned, 0 seen"},
      {"GpuUse_HasNothingToLookAtWithoutGpus", 2, [](FakeJob& made) { made = FakeJob(2, 0); },
       "gpu-use", Status::kOk, "no GPUs to look at"},
      {"GpuUse_FailsWhenSomebodyComputesThere", 2,
       [](FakeJob& made) {
         made.info[1].gpus[2].processes = {{4711, 5LL << 30}, {4712, -1}};
       },
       "gpu-use", Status::kFail, "GPU 2 used by pid 4711 (5.0 GiB) pid 4712 (n2)"},
      {"GpuErrors_FailForUncorrectedErrors", 2,
       [](FakeJob& made) { made.info[0].gpus[1].uncorrected_errors = 3; }, "gpu-errors",
       Status::kFail, "GPU 1 3 uncorrected memory errors (n1)"},
      {"GpuErrors_FailForFailedRemaps", 2,
       [](FakeJob& made) {
         made.info[0].gpus[1].uncorrected_errors = 3;
         made.info[0].gpus[1].remap_failed = true;
       },
       "gpu-errors", Status::kFail, "GPU 1 has bad memory that cannot be put out of use (n1)"},
      {"GpuErrors_WarnOfAPendingRemap", 2,
       [](FakeJob& made) { made.info[0].gpus[0].remap_pending = true; }, "gpu-errors",
       Status::kWarn},
      {"GpuLinks_WarnOfFewerNvlinksThanOthersOfTheModelHave", 2,
       [](FakeJob& made) { made.info[1].gpus[0].nvlinks = 4; }, "gpu-links", Status::kWarn,
       "GPU 0 4 of 6 NVLinks active (n2)"},
      {"GpuLinks_WarnOfANarrowSlot", 1, [](FakeJob& made) { made.info[0].gpus[0].pcie_lanes = 8; },
       "gpu-links", Status::kWarn, "GPU 0 8 of 16 PCIe lanes (n1)"},
      {"GpuLinks_PassASlotOfWhichNobodyCanSay", 1,
       [](FakeJob& made) { made.info[0].gpus[0].pcie_lanes = 0; }, "gpu-links", Status::kOk},
  };
}

std::vector<CheckCase> NetworkCases() {
  return {
      {"Infiniband_IsNotNeeded", 2,
       [](FakeJob& made) {
         for (NodeInfo& info : made.info) info.ports.clear();
       },
       "infiniband", Status::kOk},
      {"Infiniband_WarnsWhenNoPortIsActiveAnywhere", 2,
       [](FakeJob& made) {
         for (NodeInfo& info : made.info) info.ports[0].state = info.ports[1].state = "DOWN";
       },
       "infiniband", Status::kWarn},
      {"Infiniband_FailsWhenOneNodeHasNoActivePortAndOthersHave", 3,
       [](FakeJob& made) { made.info[1].ports[0].state = made.info[1].ports[1].state = "DOWN"; },
       "infiniband", Status::kFail, "2 active ports at 100 Gbit/s (n[1,3]), no active port (n2)"},
      {"Infiniband_WarnsOfAMissingRail", 2,
       [](FakeJob& made) { made.info[0].ports[1].state = "INIT"; }, "infiniband", Status::kWarn},
      {"Infiniband_WarnsOfALowerRate", 2,
       [](FakeJob& made) {
         for (IbPortInfo& port : made.info[0].ports) port.rate_gbits = 25;
       },
       "infiniband", Status::kWarn},
      {"Memlock_FailsWhereInfinibandIsAndTheLimitIsLow", 2,
       [](FakeJob& made) { made.info[1].memlock_bytes = 65536; }, "memlock", Status::kFail,
       HasSubstr("the limit is 64 KiB (n2)")},
      {"Memlock_MayBeWhatIsNeeded", 2,
       [](FakeJob& made) { made.info[1].memlock_bytes = 1LL << 30; }, "memlock", Status::kOk,
       "enough for InfiniBand"},
      {"Memlock_DoesNotMatterWithoutInfiniband", 1,
       [](FakeJob& made) {
         made.info[0].ports.clear();
         made.info[0].memlock_bytes = 65536;
       },
       "memlock", Status::kOk, "without InfiniBand the limit does not matter"},
      {"Clocks_WarnOfANodeThatIsAhead", 3,
       [](FakeJob& made) { made.info[1].exchange.clock_seconds += 12.3; }, "clocks", Status::kWarn,
       "12.3 s ahead (n2)"},
      {"Clocks_WarnOfANodeThatIsBehind", 3,
       [](FakeJob& made) { made.info[1].exchange.clock_seconds -= 47.7; }, "clocks", Status::kWarn,
       "47.7 s behind (n2)"},
      {"Clocks_MayDifferByTheTimeThatNodesTakeToLeaveABarrier", 2,
       [](FakeJob& made) { made.info[1].exchange.clock_seconds += 0.25; }, "clocks", Status::kOk,
       "in step within 250 ms"},
      {"Clocks_AreNotKnownWithoutAnExchange", 2,
       [](FakeJob& made) {
         for (NodeInfo& info : made.info) {
           info.exchange = ConnectivityResult();
           info.exchange.unavailable = "the launcher gives no PMIx";
         }
       },
       "clocks", Status::kNotKnown, HasSubstr("the launcher gives no PMIx")},
      {"Versions_FailWhenTheyDiffer", 2,
       [](FakeJob& made) { made.info[1].mpi = "Open MPI v5.0.1"; }, "versions", Status::kFail,
       HasSubstr("Open MPI v5.0.1, PMIx 4.2.2, the launcher's PMIx 4.2.2, UCX 1.13.1 (n2)")},
      {"Versions_WarnOfAPairThatIsKnownToFail", 2,
       [](FakeJob& made) { made.job.pmix_fault = "Slurm 25.11.1, PMIx 5.0.8: MPI hangs"; },
       "versions", Status::kWarn, HasSubstr("PMIx 5.0.8: MPI hangs")},
      {"Versions_AreNotKnownWithoutAnMpiLibrary", 1,
       [](FakeJob& made) { made.info[0].mpi.clear(); }, "versions", Status::kNotKnown},
  };
}

std::vector<CheckCase> DirectoryCases() {
  return {
      {"Shm_WarnsOfLittle", 2, [](FakeJob& made) { made.info[1].shm_free_bytes = 64LL << 20; },
       "shm", Status::kWarn, HasSubstr("64 MiB (n2)")},
      {"Shm_FailsWhereThereIsNone", 2,
       [](FakeJob& made) {
         made.info[1].shm_free_bytes = 64LL << 20;
         made.info[1].shm_error = "Permission denied";
       },
       "shm", Status::kFail},
      {"Users_WarnsOfWhatIsOpenToThem", 3,
       [](FakeJob& made) {
         made.info[0].other_users = made.info[2].other_users = "fs.protected_regular is 0";
       },
       "users", Status::kWarn, "fs.protected_regular is 0 (n[1,3])"},
      {"Users_WarnsOfADirectoryOfAnother", 2,
       [](FakeJob& made) { made.info[1].other_users = "/tmp/ompi.n2.7 belongs to user 8"; },
       "users", Status::kWarn, "/tmp/ompi.n2.7 belongs to user 8 (n2)"},
      {"Directory_FailsWhenItIsNotShared", 3,
       [](FakeJob& made) { made.info[2].directory.is_shared = false; }, "directory", Status::kFail,
       "not the directory of ddlrun: /nobackup/work (n3)"},
      {"Directory_FailsWhenItCannotBeWritten", 2,
       [](FakeJob& made) { made.info[1].directory.write_error = "Read-only file system"; },
       "directory", Status::kFail, HasSubstr("Read-only file system (n2)")},
      {"Directory_FailsWhereDdlrunItselfCannotWrite", 2,
       [](FakeJob& made) {
         made.job.directory_error = "/proc cannot be written: No such file or directory";
       },
       "directory", Status::kFail, "/proc cannot be written: No such file or directory"},
      {"Directory_WarnsOfLittleSpace", 2,
       [](FakeJob& made) { made.info[0].directory.free_bytes = 100LL << 20; }, "directory",
       Status::kWarn},
      {"Master_IsFound", 4, [](FakeJob&) {}, "master-addr", Status::kOk,
       "MASTER_ADDR=n1 is found on 4 nodes"},
      {"Master_IsNotKnownWhereANodeDidNotGetThatFar", 2,
       [](FakeJob& made) { made.info[0].master = {}; }, "master-addr", Status::kNotKnown,
       "MASTER_ADDR=n1 was not looked up (n1)"},
      {"Master_WarnsWhereItIsNotFoundAndNotKnown", 2,
       [](FakeJob& made) {
         made.info[0].master = {};
         made.info[1].master.problem = "no such name";
       },
       "master-addr", Status::kWarn},
      {"Master_WarnsOfNodesThatFindThemselvesAtALoopbackAddress", 3,
       [](FakeJob& made) {
         made.info[1].master.own_loopback = "127.0.1.1";
         made.info[2].master.own_loopback = "127.0.1.1";
       },
       "master-addr", Status::kWarn, "nodes find their own names at 127.0.1.1 (n[2-3])"},
      {"Master_MayBeALoopbackAddressOnOneNode", 1,
       [](FakeJob& made) {
         made = FakeJob(1, 1);
         made.info[0].master.own_loopback = "127.0.1.1";
       },
       "master-addr", Status::kOk, "MASTER_ADDR=n1 is found on 1 node"},
      {"Master_IsNotKnownWhereNoNodeDid", 2,
       [](FakeJob& made) { made.info[0].master = made.info[1].master = {}; }, "master-addr",
       Status::kNotKnown, "MASTER_ADDR was not looked up (n[1-2])"},
  };
}

std::vector<CheckCase> ConnectionCases() {
  return {
      {"Connections_Of64NodesAreAllTested", 64, [](FakeJob&) {}, "connections", Status::kOk,
       HasSubstr(" of 64 nodes talk, the slowest ")},
      {"Connections_OfMoreNodesAreASampleWhoseSizeIsSaid", 65, [](FakeJob&) {}, "connections",
       Status::kOk, HasSubstr(" of 65 nodes talk (a sample, 8 partners each), the slowest ")},
      {"Connections_CountThePairsAndNameTheSlowest", 4, [](FakeJob&) {}, "connections", Status::kOk,
       "6 pairs of 4 nodes talk, the slowest n3 with n4 in 3.00 ms there and back"},
      {"Connections_TakeTheSlowestFromThePartnersOfTheFirstNode", 3,
       [](FakeJob& made) {
         made.info[2].exchange.slowest = {0, "", 0.5};
       },
       "connections", Status::kOk, HasSubstr("the slowest n1 with n3 in 500 ms")},
      {"Connections_NameAPairOnceThatBothEndsName", 3,
       [](FakeJob& made) {
         made.info[1].exchange.failed = {{2, "no answer", 0}};
         made.info[2].exchange.failed = {{1, "no answer", 0}};
       },
       "connections", Status::kFail, "do not reach each other: n2 with n3 (no answer)"},
      {"Connections_CountWhatIsTooMuchToName", 40,
       [](FakeJob& made) {
         for (int node = 0; node < 40; node += 2) {
           made.info[static_cast<std::size_t>(node)].exchange.failed = {{node + 1, "lost", 0}};
         }
       },
       "connections", Status::kFail, HasSubstr("n15 with n16 and 12 pairs more (lost)")},
      {"Connections_IgnoreNodesThatDoNotExist", 2,
       [](FakeJob& made) {
         made.info[0].exchange.failed = {{77, "lost", 0}, {-5, "lost", 0}};
         made.info[0].exchange.slowest = {77, "", 5};
         made.info[1].node = -3;
       },
       "connections", Status::kOk},
      {"Connections_FailWhenTheExchangeFails", 2,
       [](FakeJob& made) { made.info[1].exchange.problem = "PMIx_Init: UNREACHABLE"; },
       "connections", Status::kFail, "PMIx_Init: UNREACHABLE (n2)"},
      {"Connections_AreNotKnownWithoutPmixOrUcx", 2,
       [](FakeJob& made) {
         for (NodeInfo& info : made.info) {
           info.exchange.links_tested = false;
           info.exchange.unavailable = "ddlrun was built without UCX";
         }
       },
       "connections", Status::kNotKnown, "ddlrun was built without UCX (n[1-2])"},
      {"Connections_MayTakeASecond", 2,
       [](FakeJob& made) {
         made.info[0].exchange.slowest = {1, "", 1.0};
       },
       "connections", Status::kOk},
      {"Connections_WarnWhenAPairTakesLonger", 2,
       [](FakeJob& made) {
         made.info[0].exchange.slowest = {1, "", 1.5};
       },
       "connections", Status::kWarn},
  };
}

std::string NameOfCase(const testing::TestParamInfo<CheckCase>& test) { return test.param.name; }
INSTANTIATE_TEST_SUITE_P(Hardware, CheckRules, testing::ValuesIn(HardwareCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Network, CheckRules, testing::ValuesIn(NetworkCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Directory, CheckRules, testing::ValuesIn(DirectoryCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Connections, CheckRules, testing::ValuesIn(ConnectionCases()), NameOfCase);

TEST(GpuChecks, AreNotKnownWithoutNvml) {
  FakeJob made(2);
  made.info[0].gpu_source = "/proc";
  made.info[0].gpu_problem = "NVML: Driver/library version mismatch";
  for (const char* check : {"gpu-use", "gpu-errors", "gpu-links"}) {
    const Verdict verdict = made.Of(check);
    EXPECT_EQ(verdict.status, Status::kNotKnown) << check;
    EXPECT_EQ(verdict.seen, "NVML: Driver/library version mismatch (n1)");
  }
}

TEST(Master, WarnsOfNodesThatDoNotFindIt) {
  FakeJob made(4);
  made.info[1].master.problem = made.info[2].master.problem = "Name or service not known";
  made.info[3].master.problem = "no answer within 5 s";
  const Verdict verdict = made.Of("master-addr");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen,
            "MASTER_ADDR=n1 is not found: Name or service not known (n[2-3]), no answer within 5 s "
            "(n4)");
  EXPECT_THAT(verdict.advice, HasSubstr("-x MASTER_ADDR=ADDRESS"));
  EXPECT_FALSE(AnyFailed(CheckNodes(made.job, made.info)));
}

TEST(Connections, NameThePairThatFails) {
  FakeJob made(4);
  made.info[1].exchange.failed = {{2, "no answer within 5 s", 0}};
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "do not reach each other: n2 with n3 (no answer within 5 s)");
  EXPECT_THAT(verdict.bad_hosts, ElementsAre("n3"));  // either of them; ddlrun is on the first
}

TEST(Connections, NameTheNodeThatAllFailingPairsShareOnce) {
  FakeJob made(5);
  made.info[0].exchange.failed = {{2, "Connection reset", 0}, {1, "Connection reset", 0}};
  made.info[1].exchange.failed = {{2, "Connection reset", 0}};
  made.info[2].exchange.failed = {{3, "Connection reset", 0}, {4, "Connection reset", 0}};
  EXPECT_EQ(made.Of("connections").seen,
            "do not reach each other: n3 with n[1-2,4-5], n1 with n2 (Connection reset)");
  EXPECT_THAT(made.Of("connections").bad_hosts, ElementsAre("n3", "n2"));
}

TEST(Connections, AreNotKnownWhenNodesWereEndedBeforeTheyMet) {
  FakeJob made(3);
  made.info[2] = NodeInfo();
  for (std::size_t node = 0; node < 2; ++node) made.info[node].exchange = ConnectivityResult();
  for (const char* check : {"clocks", "connections"}) {
    const Verdict verdict = made.Of(check);
    EXPECT_EQ(verdict.status, Status::kNotKnown) << check;
    EXPECT_EQ(verdict.seen, "the nodes did not get as far as meeting");
  }
}

const std::string kOne = "0f1e2d3c4b5a69788796a5b4c3d2e1f0.1";
const std::string kTwo = "0f1e2d3c4b5a69788796a5b4c3d2e1f0.2";
const std::string kOther = "0f1e2d3c0000000000000000000000ff.1";  // alike in what is shown

// A job whose nodes are in these domains.
FakeJob JobOf(const std::vector<std::string>& domains) {
  FakeJob made(static_cast<int>(domains.size()));
  for (std::size_t node = 0; node < domains.size(); ++node) {
    for (GpuInfo& gpu : made.info[node].gpus) gpu.nvlink_domain = domains[node];
  }
  return made;
}

TEST(NvlinkDomains, ArePassedWhereTheirNodesAreSideBySide) {
  const Verdict one = JobOf({kOne, kOne, kOne}).Of("nvlink-domains");
  EXPECT_EQ(one.status, Status::kOk);
  EXPECT_EQ(one.seen, "0f1e2d3c.1 (n[1-3])");
  const Verdict two = JobOf({kTwo, kTwo, kOne, kOne}).Of("nvlink-domains");
  EXPECT_EQ(two.status, Status::kOk);
  EXPECT_EQ(two.seen, "0f1e2d3c.2 (n[1-2]), 0f1e2d3c.1 (n[3-4])");
  EXPECT_EQ(JobOf({"", ""}).Of("nvlink-domains").seen, "no GPU reaches other nodes over NVLink");
}

TEST(NvlinkDomains, AreTornByNodesOfOthersBetweenThem) {
  const Verdict verdict = JobOf({kOne, kTwo, kOne, kTwo}).Of("nvlink-domains");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen,
            "nodes of a domain are not side by side: 0f1e2d3c.1 (n[1,3]), 0f1e2d3c.2 (n[2,4])");
  EXPECT_THAT(verdict.advice, HasSubstr("-H n[1,3],n[2,4]"));
  EXPECT_THAT(verdict.bad_hosts, IsEmpty());
  EXPECT_EQ(JobOf({kOne, kOther, kOne}).Of("nvlink-domains").status, Status::kWarn);
  EXPECT_EQ(JobOf({kOne, kOther, kOther}).Of("nvlink-domains").status, Status::kOk);
}

TEST(NvlinkDomains, WarnOfANodeThatHasNotJoined) {
  const Verdict verdict = JobOf({kOne, "", kOne}).Of("nvlink-domains");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("none (n2)"));
  const Verdict last = JobOf({kOne, kOne, ""}).Of("nvlink-domains");
  EXPECT_EQ(last.status, Status::kWarn);
  EXPECT_THAT(last.advice, HasSubstr("nvidia-smi -q"));
}

TEST(NvlinkDomains, AreThoseOfEachGpu) {
  FakeJob made = JobOf({kOne, kOne});
  made.info[1].gpus[0].nvlink_domain = kTwo;
  EXPECT_EQ(made.Of("nvlink-domains").status, Status::kOk);
  EXPECT_THAT(made.Of("nvlink-domains").seen, HasSubstr("0f1e2d3c.1 (n1)"));
  EXPECT_EQ(made.Of("imex").seen, "not needed: no NVLink between these nodes");
}

TEST(Imex, IsNeededBetweenNodesOfOneDomainAlone) {
  FakeJob made = JobOf({kOne, kTwo});
  for (NodeInfo& info : made.info) info.imex_problem = "there is none";
  EXPECT_EQ(made.Of("imex").status, Status::kOk);
  EXPECT_EQ(made.Of("imex").seen, "not needed: no NVLink between these nodes");
  made = JobOf({"", ""});
  made.info[0].imex_problem = "there is none";
  EXPECT_EQ(made.Of("imex").status, Status::kOk);
  EXPECT_EQ(JobOf({kOne, kOne}).Of("imex").seen, "a channel can be opened on 2 nodes");
}

TEST(Imex, FailsOnANodeThatLacksAChannelWhereOthersHaveOne) {
  FakeJob made = JobOf({kOne, kOne, kOne, kTwo});
  made.info[1].imex_problem = "channel0: Permission denied";
  made.info[3].imex_problem = "there is none";  // alone in its domain
  const Verdict verdict = made.Of("imex");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "no channel: channel0: Permission denied (n2)");
  EXPECT_THAT(verdict.bad_hosts, ElementsAre("n2"));
  EXPECT_THAT(verdict.advice, HasSubstr("NCCL_MNNVL_ENABLE"));
}

TEST(Imex, IsAWarningWhereAllNodesLackIt) {
  FakeJob made = JobOf({kOne, kOne});
  for (NodeInfo& info : made.info) info.imex_problem = "there is none";
  const Verdict verdict = made.Of("imex");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "no channel: there is none (n[1-2])");
  EXPECT_THAT(verdict.bad_hosts, IsEmpty());
}

TEST(CheckNodes, GoesByTheLimitsOfTheSite) {
  FakeJob made(2);
  made.info[1].memory_bytes = made.info[0].memory_bytes / 2;
  made.info[1].ports = made.info[0].ports = {{"mlx5_0:1", "ACTIVE", 100, "InfiniBand"}};
  made.info[1].memlock_bytes = 1000;
  made.info[1].shm_free_bytes = 1000;
  made.info[1].directory.free_bytes = 1000;
  made.info[1].exchange.clock_seconds = made.info[0].exchange.clock_seconds + 5;
  made.info[0].exchange.slowest = {1, "", 5};
  const std::map<std::string, double CheckLimits::*> limits = {
      {"hardware", &CheckLimits::memory_difference},
      {"memlock", &CheckLimits::memlock_gib},
      {"shm", &CheckLimits::shm_gib},
      {"directory", &CheckLimits::directory_gib},
      {"clocks", &CheckLimits::clock_seconds},
      {"connections", &CheckLimits::link_seconds}};
  ASSERT_EQ(limits.size(), kCheckLimitKeys.size());
  for (const auto& [check, limit] : limits) {
    EXPECT_NE(made.Of(check).status, Status::kOk) << check;
    const double gib_or_ratio = check == "hardware" ? 0.6 : 1e-9;
    made.job.limits.*limit = check == "clocks" || check == "connections" ? 6 : gib_or_ratio;
    EXPECT_EQ(made.Of(check).status, Status::kOk) << check << ": " << made.Of(check).seen;
  }
}

}  // namespace
}  // namespace launcher
