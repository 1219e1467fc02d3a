// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/job_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_allocation.h"
#include "rankfile/hostlist.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/folders.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string FixtureText(const std::string& name) {
  std::ifstream file(tests::SourceFolder() + "/tests/fixtures/slurm-env/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines of job 7.
std::map<std::string, NodeGrant> Parse(const std::string& lines) {
  return ParseJobDetail("JobId=7 JobName=x\n" + lines, "7");
}

TEST(JobDetail, ReadsUnevenGpus) {
  const auto grants = ParseJobDetail(FixtureText("N2-gpus-6-uneven.txt"), "4");
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants.at("n1").gpus, 4);
  EXPECT_THAT(grants.at("n1").gpu_indices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(grants.at("n2").gpus, 2);
  EXPECT_THAT(grants.at("n2").gpu_indices, ElementsAre(0, 1));
}

TEST(JobDetail, ReadsTheAddressOfANode) {
  EXPECT_EQ(AddressOfANode("NodeName=n1 Arch=x86_64\n   NodeAddr=10.1.2.3 NodeHostName=x7 "
                           "Version=24.11.5\n"),
            "10.1.2.3");
  EXPECT_EQ(AddressOfANode("Node n1 not found\n"), "");
}

TEST(JobDetail, ReadsALineForSeveralNodes) {
  const auto grants = Parse("     Nodes=n[1-3,7] CPU_IDs=0-3 Mem=400 GRES=gpu:v100:2(IDX:1,3)\n");
  ASSERT_EQ(grants.size(), 4U);
  EXPECT_EQ(grants.at("n7").gpus, 2);
  EXPECT_THAT(grants.at("n7").gpu_indices, ElementsAre(1, 3));
}

TEST(JobDetail, AddsTypesUpAndPassesOverOtherResources) {
  const auto grants = Parse(
      " Nodes=a CPU_IDs=0 Mem=1 GRES=gpu:v100:2(IDX:0-1),tmp:9,gpu:a100:1(IDX:4)\n"
      " Nodes=b CPU_IDs=0 Mem=1 GRES=\n"
      " Nodes=c CPU_IDs=0 Mem=1 GRES=gpu:2\n");
  EXPECT_EQ(grants.at("a").gpus, 3);
  EXPECT_THAT(grants.at("a").gpu_indices, ElementsAre(0, 1, 4));
  EXPECT_EQ(grants.at("b").gpus, 0);
  EXPECT_EQ(grants.at("c").gpus, 2);
  EXPECT_THAT(grants.at("c").gpu_indices, IsEmpty());
}

// The last task of an array has the number of the array, by which scontrol shows all of them.
TEST(JobDetail, IsOfTheJobAndItsComponentsAlone) {
  const std::string text =
      "JobId=12 ArrayJobId=12 ArrayTaskId=2 JobName=x\n"
      "     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:2(IDX:0-1)\n"
      "   Command=/home/me/JobId=13\n"
      "\n"
      "JobId=13 ArrayJobId=12 ArrayTaskId=0 JobName=x\n"
      "     Nodes=n[1-2] CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:3)\n"
      "\n"
      "JobId=14 HetJobId=12 HetJobOffset=1 JobName=x\n"
      "     Nodes=n3 CPU_IDs=0 Mem=1 GRES=gpu:4(IDX:0-3)\n";
  const auto grants = ParseJobDetail(text, "12");
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants.at("n1").gpus, 2);
  EXPECT_EQ(grants.at("n3").gpus, 4);
}

TEST(JobDetail, SaysWhetherTheJobHasEnded) {
  const auto state_of = [](const std::string& state) {
    return StateOfEndedJob(
        "JobId=9 JobName=x\n   JobState=FAILED Reason=None\n\n"
        "JobId=7 JobName=JobState=x\n   JobState=" +
            state + " Reason=None\n\nJobId=8 HetJobId=7\n   JobState=FAILED\n",
        "7");
  };
  for (const char* over : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
                           "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}) {
    EXPECT_EQ(state_of(over), over);
  }
  for (const char* other :
       {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STOPPED", "NEW"}) {
    EXPECT_EQ(state_of(other), "") << other;
  }
  EXPECT_EQ(StateOfEndedJob("JobId=7 JobName=x\n", "7"), "");
}

TEST(JobDetail, PassesOverTheRestOfTheText) {
  EXPECT_THAT(ParseJobDetail("JobId=7 JobName=x\n   NodeList=n1\n   BatchHost=n1\n", "7"),
              IsEmpty());
}

TEST(JobDetail, RefusesALineThatCannotBeRead) {
  for (const char* line : {" Nodes=n[1- CPU_IDs=0 GRES=gpu:1", " Nodes=n1 CPU_IDs=0 GRES=gpu:x"}) {
    EXPECT_THROW(Parse(line), LaunchError) << line;
  }
}

TEST(JobDetail, ReadsAsManyHostsAsAListMayHave) {
  const std::string most = " Nodes=n[1-65536] CPU_IDs=0 GRES=gpu:1\n";
  EXPECT_EQ(Parse(most).size(), rankfile::kMaxHosts);
  EXPECT_THROW(Parse(most + " Nodes=m CPU_IDs=0 GRES=gpu:1\n"), LaunchError);
}

TEST(JobDetail, DoesWithoutTheNumbersOfGpus) {
  const auto grants = Parse(" Nodes=n1 CPU_IDs=0 GRES=gpu:1(IDX:9-1)");
  EXPECT_EQ(grants.at("n1").gpus, 1);
  EXPECT_THAT(grants.at("n1").gpu_indices, IsEmpty());
}

TEST(JobDetail, FillsTheAllocationOfSalloc) {
  Allocation allocation =
      *ReadSlurmAllocation(ReadEnvironmentFile("salloc-N2-gres-gpu-2.txt")[0].variables);
  ApplyJobDetail(Parse(" Nodes=n[1-2] CPU_IDs=0 Mem=100 GRES=gpu:2(IDX:0-1)"), &allocation);
  EXPECT_EQ(allocation.gpus_unclear, "");
  EXPECT_EQ(allocation.nodes[1].gpus, 2);
  EXPECT_THAT(allocation.nodes[1].gpu_indices, ElementsAre(0, 1));
}

TEST(JobDetail, RefusesANodeThatSlurmDoesNotName) {
  Allocation allocation;
  allocation.nodes.emplace_back().host = "n9";
  try {
    ApplyJobDetail({}, &allocation);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not name n9"));
  }
}

TEST(NodeDetail, SaysHowManyGpusANodeHas) {
  EXPECT_EQ(MostGpusOfANode("NodeName=n1 Arch=x86_64\n   Gres=gpu:v100:2(S:0-1),tmp:9\n\n"
                            "NodeName=n2\n   Gres=gpu:v100:4\n   AllocTRES=gres/gpu=1\n"),
            4);
  EXPECT_EQ(MostGpusOfANode("NodeName=n1\n   Gres=(null)\n"), 0);
  EXPECT_EQ(MostGpusOfANode("Node n1 not found"), 0);
  EXPECT_EQ(MostGpusOfANode("   Gres=gpu:x\n   Gres=gpu:2\n"), 2);
}

TEST(CpusOfANode, AreTheTotal) {
  EXPECT_EQ(CpusOfANode("NodeName=n1\n   CPUAlloc=4 CPUEfctv=64 CPUTot=64 CPULoad=0.10\n"), 64);
  EXPECT_EQ(CpusOfANode("Node n1 not found"), 0);
  EXPECT_EQ(CpusOfANode("   CPUTot=many\n   CPUTot=8\n"), 8);
}

}  // namespace
}  // namespace launcher
