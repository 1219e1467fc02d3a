// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/check_rules.h"

#include "tests/launcher/health/fake_node_info.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Check, FindsNothingWrongWithHealthyNodes) {
  const FakeJob made(4);
  const std::vector<Verdict> verdicts = CheckNodes(made.job, made.info);
  EXPECT_EQ(verdicts.size(), 16U);
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

TEST(Hardware, WarnsOfAnotherProcessor) {
  FakeJob made(3);
  made.info[1].cpu_model = "POWER8";
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("POWER8, 128 CPUs, 4 GPUs Tesla V100-SXM2-16GB (n2)"));
  EXPECT_THAT(verdict.seen, HasSubstr("(n[1,3])"));
}

TEST(Hardware, WarnsOfAnotherGpuModelAndNumber) {
  FakeJob made(2);
  made.info[0].gpus[3].model = "Tesla V100-SXM2-32GB";
  EXPECT_EQ(made.Of("hardware").status, Status::kWarn);
  made = FakeJob(2);
  made.info[0].nvidia_devices = 3;
  EXPECT_EQ(made.Of("hardware").status, Status::kWarn);
}

TEST(Hardware, ToleratesWhatFirmwareKeepsOfMemoryAndNoMore) {
  FakeJob made(2);
  made.info[1].memory_bytes = 508LL << 30;
  EXPECT_EQ(made.Of("hardware").status, Status::kOk);
  made.info[1].memory_bytes = 256LL << 30;
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_THAT(verdict.seen, HasSubstr("256 GiB of memory on n2 and 512 GiB on n1"));
}

TEST(Hardware, MentionsAnotherKernelAndLetsItPass) {
  FakeJob made(2);
  made.info[1].kernel = "5.14.0";
  const Verdict verdict = made.Of("hardware");
  EXPECT_EQ(verdict.status, Status::kOk);
  EXPECT_THAT(verdict.seen, HasSubstr("kernel 5.14.0 (n2)"));
}

TEST(GpuCount, FailsWhenSlurmGrantedLess) {
  FakeJob made(2);
  made.info[1].granted_gpus = 2;
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "4 planned, Slurm granted 2 (n2)");
}

TEST(GpuCount, FailsWhenTheNodeShowsLess) {
  FakeJob made(2);
  made.info[1].gpus.pop_back();
  EXPECT_EQ(made.Of("gpus").seen, "4 planned, 3 seen (n2)");
  made.info[1].gpus.clear();
  made.info[1].granted_gpus = -1;
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "4 planned, 4 devices on the PCI bus, but the driver shows none (n2)");
}

TEST(GpuCount, FailsWhereTheDriverDoesNotShowTheOnlyGpu) {
  FakeJob made(1, 1);
  made.info[0].gpus.clear();
  const Verdict verdict = made.Of("gpus");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "1 planned, 1 device on the PCI bus, but the driver shows none (n1)");
}

TEST(GpuCount, IsNotKnownWhereNoNodeHasNvidiaDevices) {
  FakeJob made(2);
  for (NodeInfo& info : made.info) {
    info.gpus.clear();
    info.nvidia_devices = 0;
  }
  EXPECT_EQ(made.Of("gpus").status, Status::kNotKnown);
}

TEST(GpuCount, FailsOnOneNodeWithoutAnyAmongOthersThatHaveSome) {
  FakeJob made(2);
  made.info[0].gpus.clear();
  made.info[0].nvidia_devices = 0;
  EXPECT_EQ(made.Of("gpus").seen, "4 planned, 0 seen (n1)");
}

TEST(GpuCount, AsksForNoneWhenNoneIsPlanned) {
  EXPECT_EQ(FakeJob(2, 0).Of("gpus").seen, "none planned, 0 seen");
  EXPECT_EQ(FakeJob(2, 0).Of("gpu-use").seen, "no GPUs to look at");
}

TEST(GpuUse, FailsWhenSomebodyComputesThere) {
  FakeJob made(2);
  made.info[1].gpus[2].processes = {{4711, 5LL << 30}, {4712, -1}};
  const Verdict verdict = made.Of("gpu-use");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "GPU 2 used by pid 4711 (5.0 GiB) pid 4712 (n2)");
}

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

TEST(GpuErrors, FailForUncorrectedErrorsAndFailedRemaps) {
  FakeJob made(2);
  made.info[0].gpus[1].uncorrected_errors = 3;
  EXPECT_EQ(made.Of("gpu-errors").status, Status::kFail);
  EXPECT_EQ(made.Of("gpu-errors").seen, "GPU 1 3 uncorrected memory errors (n1)");
  made.info[0].gpus[1].remap_failed = true;
  EXPECT_EQ(made.Of("gpu-errors").seen, "GPU 1 has bad memory that cannot be put out of use (n1)");
}

TEST(GpuErrors, WarnOfAPendingRemap) {
  FakeJob made(2);
  made.info[0].gpus[0].remap_pending = true;
  EXPECT_EQ(made.Of("gpu-errors").status, Status::kWarn);
}

TEST(GpuLinks, WarnOfFewerNvlinksThanOthersOfTheModelHave) {
  FakeJob made(2);
  made.info[1].gpus[0].nvlinks = 4;
  const Verdict verdict = made.Of("gpu-links");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "GPU 0 4 of 6 NVLinks active (n2)");
}

TEST(GpuLinks, WarnOfANarrowSlot) {
  FakeJob made(1);
  made.info[0].gpus[0].pcie_lanes = 8;
  EXPECT_EQ(made.Of("gpu-links").seen, "GPU 0 8 of 16 PCIe lanes (n1)");
  made.info[0].gpus[0].pcie_lanes = 0;  // nobody can say
  EXPECT_EQ(made.Of("gpu-links").status, Status::kOk);
}

TEST(Infiniband, IsNotNeeded) {
  FakeJob made(2);
  for (NodeInfo& info : made.info) info.ports.clear();
  EXPECT_EQ(made.Of("infiniband").status, Status::kOk);
}

TEST(Infiniband, WarnsWhenNoPortIsActiveAnywhere) {
  FakeJob made(2);
  for (NodeInfo& info : made.info) {
    for (IbPortInfo& port : info.ports) port.state = "DOWN";
  }
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
}

TEST(Infiniband, FailsWhenOneNodeHasNoActivePortAndOthersHave) {
  FakeJob made(3);
  for (IbPortInfo& port : made.info[1].ports) port.state = "DOWN";
  const Verdict verdict = made.Of("infiniband");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "2 active ports at 100 Gbit/s (n[1,3]), no active port (n2)");
}

TEST(Infiniband, WarnsOfAMissingRailAndALowerRate) {
  FakeJob made(2);
  made.info[0].ports[1].state = "INIT";
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
  made = FakeJob(2);
  for (IbPortInfo& port : made.info[0].ports) port.rate_gbits = 25;
  EXPECT_EQ(made.Of("infiniband").status, Status::kWarn);
}

TEST(Memlock, FailsWhereInfinibandIsAndTheLimitIsLow) {
  FakeJob made(2);
  made.info[1].memlock_bytes = 65536;
  const Verdict verdict = made.Of("memlock");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_THAT(verdict.seen, HasSubstr("the limit is 64 KiB (n2)"));
  made.info[1].memlock_bytes = 1LL << 30;
  EXPECT_EQ(made.Of("memlock").status, Status::kOk);
  EXPECT_EQ(made.Of("memlock").seen, "enough for InfiniBand");
}

TEST(Memlock, DoesNotMatterWithoutInfiniband) {
  FakeJob made(1);
  made.info[0].ports.clear();
  made.info[0].memlock_bytes = 65536;
  EXPECT_EQ(made.Of("memlock").status, Status::kOk);
  EXPECT_EQ(made.Of("memlock").seen, "without InfiniBand the limit does not matter");
}

TEST(Shm, WarnsOfLittleAndFailsWithoutIt) {
  FakeJob made(2);
  made.info[1].shm_free_bytes = 64LL << 20;
  EXPECT_EQ(made.Of("shm").status, Status::kWarn);
  EXPECT_THAT(made.Of("shm").seen, HasSubstr("64 MiB (n2)"));
  made.info[1].shm_error = "Permission denied";
  EXPECT_EQ(made.Of("shm").status, Status::kFail);
}

TEST(Directory, FailsWhenItIsNotShared) {
  FakeJob made(3);
  made.info[2].directory.is_shared = false;
  const Verdict verdict = made.Of("directory");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "not the directory of ddlrun: /nobackup/work (n3)");
}

TEST(Directory, FailsWhenItCannotBeWritten) {
  FakeJob made(2);
  made.info[1].directory.write_error = "Read-only file system";
  EXPECT_EQ(made.Of("directory").status, Status::kFail);
  EXPECT_THAT(made.Of("directory").seen, HasSubstr("Read-only file system (n2)"));
  made = FakeJob(2);
  made.job.directory_error = "/proc cannot be written: No such file or directory";
  EXPECT_EQ(made.Of("directory").status, Status::kFail);
  EXPECT_EQ(made.Of("directory").seen, made.job.directory_error);
}

TEST(Master, WarnsOfNodesThatDoNotFindIt) {
  FakeJob made(4);
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR=n1 is found on 4 nodes");
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

TEST(Master, IsNotKnownWhereANodeDidNotGetThatFar) {
  FakeJob made(2);
  made.info[0].master = {};
  EXPECT_EQ(made.Of("master-addr").status, Status::kNotKnown);
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR=n1 was not looked up (n1)");
  made.info[1].master.problem = "no such name";
  EXPECT_EQ(made.Of("master-addr").status, Status::kWarn);
  made.info[1].master = {};
  EXPECT_EQ(made.Of("master-addr").seen, "MASTER_ADDR was not looked up (n[1-2])");
}

TEST(Directory, WarnsOfLittleSpace) {
  FakeJob made(2);
  made.info[0].directory.free_bytes = 100LL << 20;
  EXPECT_EQ(made.Of("directory").status, Status::kWarn);
}

TEST(Clocks, WarnOfANodeThatIsOffByMoreThanASecond) {
  FakeJob made(3);
  made.info[1].exchange.clock_seconds += 12.3;
  Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kWarn);
  EXPECT_EQ(verdict.seen, "12.3 s ahead (n2)");
  made.info[1].exchange.clock_seconds -= 60;
  EXPECT_EQ(made.Of("clocks").seen, "47.7 s behind (n2)");
}

TEST(Clocks, MayDifferByTheTimeThatNodesTakeToLeaveABarrier) {
  FakeJob made(2);
  made.info[1].exchange.clock_seconds += 0.25;
  const Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kOk);
  EXPECT_EQ(verdict.seen, "in step within 250 ms");
}

TEST(Clocks, AreNotKnownWithoutAnExchange) {
  FakeJob made(2);
  for (NodeInfo& info : made.info) {
    info.exchange = ConnectivityResult();
    info.exchange.unavailable = "the launcher gives no PMIx";
  }
  const Verdict verdict = made.Of("clocks");
  EXPECT_EQ(verdict.status, Status::kNotKnown);
  EXPECT_THAT(verdict.seen, HasSubstr("the launcher gives no PMIx"));
}

TEST(Versions, FailWhenTheyDiffer) {
  FakeJob made(2);
  made.info[1].mpi = "Open MPI v5.0.1";
  const Verdict verdict = made.Of("versions");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_THAT(verdict.seen, HasSubstr("Open MPI v5.0.1, PMIx 4.2.2, the launcher's PMIx 4.2.2, UCX "
                                      "1.13.1 (n2)"));
}

TEST(Versions, AreNotKnownWithoutAnMpiLibrary) {
  FakeJob made(1);
  made.info[0].mpi.clear();
  EXPECT_EQ(made.Of("versions").status, Status::kNotKnown);
}

TEST(Connections, OfManyNodesAreASampleWhoseSizeIsSaid) {
  EXPECT_THAT(FakeJob(64).Of("connections").seen, HasSubstr(" of 64 nodes talk, the slowest "));
  EXPECT_THAT(FakeJob(65).Of("connections").seen,
              HasSubstr(" of 65 nodes talk (a sample, 8 partners each), the slowest "));
}

TEST(Connections, CountThePairsAndNameTheSlowest) {
  EXPECT_EQ(FakeJob(4).Of("connections").seen,
            "6 pairs of 4 nodes talk, the slowest n3 with n4 in 3.00 ms there and back");
}

TEST(Connections, TakeTheSlowestFromThePartnersOfTheFirstNode) {
  FakeJob made(3);
  made.info[2].exchange.slowest = {0, "", 0.5};
  EXPECT_THAT(made.Of("connections").seen, HasSubstr("the slowest n1 with n3 in 500 ms"));
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

TEST(Connections, NameAPairOnceThatBothEndsName) {
  FakeJob made(3);
  made.info[1].exchange.failed = {{2, "no answer", 0}};
  made.info[2].exchange.failed = {{1, "no answer", 0}};
  EXPECT_EQ(made.Of("connections").seen, "do not reach each other: n2 with n3 (no answer)");
}

TEST(Connections, CountWhatIsTooMuchToName) {
  FakeJob made(40);
  for (int node = 0; node < 40; node += 2) {
    made.info[static_cast<std::size_t>(node)].exchange.failed = {{node + 1, "lost", 0}};
  }
  EXPECT_THAT(made.Of("connections").seen, HasSubstr("n15 with n16 and 12 pairs more (lost)"));
}

TEST(Connections, IgnoreNodesThatDoNotExist) {
  FakeJob made(2);
  made.info[0].exchange.failed = {{77, "lost", 0}, {-5, "lost", 0}};
  made.info[0].exchange.slowest = {77, "", 5};
  made.info[1].node = -3;
  EXPECT_EQ(made.Of("connections").status, Status::kOk);
}

TEST(Connections, FailWhenTheExchangeFails) {
  FakeJob made(2);
  made.info[1].exchange.problem = "PMIx_Init: UNREACHABLE";
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kFail);
  EXPECT_EQ(verdict.seen, "PMIx_Init: UNREACHABLE (n2)");
}

TEST(Connections, AreNotKnownWithoutPmixOrUcx) {
  FakeJob made(2);
  for (NodeInfo& info : made.info) {
    info.exchange.links_tested = false;
    info.exchange.unavailable = "ddlrun was built without UCX";
  }
  const Verdict verdict = made.Of("connections");
  EXPECT_EQ(verdict.status, Status::kNotKnown);
  EXPECT_EQ(verdict.seen, "ddlrun was built without UCX (n[1-2])");
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

TEST(Connections, WarnWhenAPairTakesLongerThanASecond) {
  FakeJob made(2);
  made.info[0].exchange.slowest = {1, "", 1.0};
  EXPECT_EQ(made.Of("connections").status, Status::kOk);
  made.info[0].exchange.slowest = {1, "", 1.5};
  EXPECT_EQ(made.Of("connections").status, Status::kWarn);
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
