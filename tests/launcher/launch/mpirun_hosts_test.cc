// SPDX-License-Identifier: Apache-2.0
//
// Hosts whose names are not as mpirun takes them to be: they differ in their domain alone, or are
// not the host names of the nodes.

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
#include "support/quoting.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

LaunchRequest JobOnTwoHosts(const std::string& first, const std::string& second) {
  LaunchRequest job;
  for (const std::string& host : {first, second}) {
    RankPlacement rank;
    rank.rank = rank.node = static_cast<int>(job.plan.ranks.size());
    NodePlacement& node = job.plan.nodes.emplace_back();
    node.host = host;
    node.ranks.push_back(rank.rank);
    job.plan.ranks.push_back(rank);
  }
  job.program = {"true"};
  job.mpirun = "/usr/bin/mpirun";
  return job;
}

std::string LineOf(const LaunchRequest& job) {
  return support::QuoteCommand(MakeMpirunCommands(job).at(0).argv);
}

TEST(MpirunHosts, ThatDifferInTheirDomainAloneAreSaidToDiffer) {
  using ::testing::HasSubstr;
  using ::testing::Not;
  EXPECT_THAT(LineOf(JobOnTwoHosts("n1", "n2")), Not(HasSubstr("keep_fqdn")));
  EXPECT_THAT(LineOf(JobOnTwoHosts("n1.a.example", "n2.a.example")), Not(HasSubstr("keep_fqdn")));
  LaunchRequest job = JobOnTwoHosts("worker.a.example", "worker.b.example");
  EXPECT_THAT(LineOf(job), HasSubstr("--mca orte_keep_fqdn_hostnames 1"));
  job.mpi_runtime = MpiRuntime::kPrrte;
  try {
    MakeMpirunCommands(job);
    ADD_FAILURE();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_THAT(error.what(),
                HasSubstr("takes worker.a.example and worker.b.example for one host"));
  }
}

TEST(MpirunHosts, ThatAreCalledOtherwiseGetADaemonOnThisNodeAsWell) {
  using ::testing::HasSubstr;
  LaunchRequest job = JobOnTwoHosts("n1", "n2");
  for (NodePlacement& node : job.plan.nodes) node.gpus = 2;
  job.in_slurm = true;
  job.hosts_of_job = {"n1", "n2", "n3"};
  job.environment = {{"SLURMD_NODENAME", "n1"},
                     {"SLURM_GPUS_ON_NODE", "2"},
                     {"SLURM_GPUS", "6"},
                     {"SLURM_JOB_NUM_NODES", "3"}};
  EXPECT_THAT(LineOf(job), HasSubstr("--nodelist=n2 --gpus-per-node=2'"));
  job.has_other_host_names = true;
  EXPECT_THAT(LineOf(job), HasSubstr("--nodelist=n[1-2] --gpus-per-node=2'"));
}

}  // namespace
}  // namespace launcher
