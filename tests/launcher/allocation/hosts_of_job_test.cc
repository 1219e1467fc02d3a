// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/hosts_of_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/allocation/host_allocation.h"
#include "launcher/base/error.h"

namespace launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// n1 with 4 GPUs, n2 of which nobody says, n3 with 2 in a second component.
Allocation Job() {
  Allocation job;
  job.origin = Allocation::Origin::kSlurm;
  job.origin_text = "SLURM_JOB_NODELIST=n[1-3]";
  job.job_id = "7";
  job.ranks = 3;
  job.nodes.resize(3);
  for (int i = 0; i < 3; ++i) {
    job.nodes[i].host = "n" + std::to_string(i + 1);
    job.nodes[i].slots = 1;
  }
  job.nodes[0].gpus = 4;
  job.nodes[2].gpus = 2;
  job.nodes[2].component = 1;
  return job;
}

std::vector<std::string> HostsOf(const Allocation& allocation) {
  std::vector<std::string> hosts;
  for (const AllocatedNode& node : allocation.nodes) hosts.push_back(node.host);
  return hosts;
}

TEST(HostsOfJob, MayBeWrittenWithTheirDomainAndInAnyCase) {
  const Allocation job = Job();
  EXPECT_EQ(HostsOfJob(job).Find("n2.cluster"), &job.nodes[1]);
  EXPECT_EQ(HostsOfJob(job).Find("N2"), &job.nodes[1]);
  EXPECT_EQ(HostsOfJob(job).Find("n9"), nullptr);
}

TEST(HostsOfJob, KeepTheOrderOfTheUserAndWhatSlurmKnows) {
  const Allocation result = RestrictToHosts(Job(), AllocationFromHostList("n3.cluster,n2,n1:2"));
  EXPECT_THAT(HostsOf(result), ElementsAre("n3", "n2", "n1"));
  EXPECT_EQ(result.nodes[0].component, 1);
  EXPECT_EQ(result.nodes[0].gpus, 2);
  EXPECT_EQ(result.nodes[1].gpus, 4);  // as n1
  EXPECT_EQ(result.nodes[1].slots, std::nullopt);
  EXPECT_EQ(result.nodes[2].slots, 2);
  EXPECT_EQ(result.ranks, std::nullopt);
  EXPECT_EQ(result.job_id, "7");
}

TEST(HostsOfJob, KeepSlurmsTasksWhereThereAreNoGpus) {
  Allocation job = Job();
  job.nodes[0].gpus = 0;
  job.nodes[0].slots = 3;
  EXPECT_EQ(RestrictToHosts(job, AllocationFromHostList("n1")).nodes[0].slots, 3);
}

TEST(HostsOfJob, TwoNamesOfANodeAreOneNode) {
  const Allocation result = RestrictToHosts(Job(), AllocationFromHostList("n1:2,n1.cluster:1"));
  EXPECT_THAT(HostsOf(result), ElementsAre("n1"));
  EXPECT_EQ(result.nodes[0].slots, 3);
}

TEST(HostsOfJob, RefuseAHostOutsideTheJob) {
  try {
    RestrictToHosts(Job(), AllocationFromHostList("n1,n9.cluster"));
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("-H n1,n9.cluster names n9.cluster, which is not in "
                                              "this job (SLURM_JOB_NODELIST=n[1-3])"),
                                    HasSubstr("#SBATCH --nodelist=n9")));
  }
}

}  // namespace
}  // namespace launcher
