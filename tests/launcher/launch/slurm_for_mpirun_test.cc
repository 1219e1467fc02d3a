// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/slurm_for_mpirun.h"

#include "launcher/base/error.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Words = std::vector<std::string>;

SlurmForMpirun OfOrte(const std::vector<HostSlots>& hosts, const Environment& environment,
                      const Words& mpirun_args = {}) {
  return MakeSlurmForMpirun(hosts, hosts.size(), environment, MpiRuntime::kOrte, mpirun_args);
}

SlurmForMpirun OfPrrte(const std::vector<HostSlots>& hosts, const Environment& environment,
                       const Words& mpirun_args = {}) {
  return MakeSlurmForMpirun(hosts, hosts.size(), environment, MpiRuntime::kPrrte, mpirun_args);
}

// What the srun of the daemons is told; "" where there is nothing.
std::string Arguments(const std::vector<HostSlots>& hosts, const Environment& environment,
                      const Words& mpirun_args = {}) {
  const auto variables = OfOrte(hosts, environment, mpirun_args).variables;
  const auto found = variables.find("OMPI_MCA_plm_slurm_args");
  return found == variables.end() ? "" : found->second;
}

const Environment kOnN1 = {{"SLURMD_NODENAME", "n1"}, {"SLURM_GPUS_ON_NODE", "4"}};

Environment OnN1With(const Environment& more) {
  Environment environment = kOnN1;
  environment.insert(more.begin(), more.end());
  return environment;
}

TEST(SlurmForMpirun, WritesWhatSlurmWouldForSoManyTasks) {
  using Variables = std::map<std::string, std::string>;
  EXPECT_EQ(OfOrte({{"n1", 4}}, {}).variables,
            (Variables{{"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "4"}}));
  EXPECT_EQ(OfOrte({{"n1", 4}, {"n2", 4}, {"n3", 2}, {"n5", 4}}, {}).variables,
            (Variables{{"SLURM_NODELIST", "n[1-3,5]"}, {"SLURM_TASKS_PER_NODE", "4(x2),2,4"}}));
}

TEST(SlurmForMpirun, GivesDaemonsTheGpusOfTheirNodes) {
  // -N3 --gres=gpu:1 --exclusive, of which no variable says a number for the other nodes.
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 4, 4}, {"n3", 4, 4}}, kOnN1), "--gpus-per-node=4");
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 2, 2}, {"n3", 2, 2}}, kOnN1), "--gpus-per-node=2");
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 2, 2}, {"n3", 1, 1}}, kOnN1), "--gpus=3");
  // Whole nodes by --gpus=3.
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 4, 4}},
                      OnN1With({{"SLURM_GPUS", "3"}, {"SLURM_JOB_NUM_NODES", "2"}})),
            "--gpus-per-node=4");
  // In the shell of salloc no node is this one.
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 2, 2}}, {}), "--gpus=6");
}

TEST(SlurmForMpirun, AsksForNoneWhereNoDaemonNeedsThem) {
  EXPECT_EQ(Arguments({{"n1", 4, 4}}, kOnN1), "");
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 1, 0}}, kOnN1), "");
  EXPECT_EQ(Arguments({{"n1", 1, 0}, {"n2", 1, 0}}, {}), "");
  EXPECT_TRUE(OfPrrte({{"n1", 1, 0}, {"n2", 1, 0}}, {}).options.empty());
}

TEST(SlurmForMpirun, TakesATotalForWhatTheOtherNodesHave) {
  // --gpus=8 with 4, 2 and 2 GPUs, where the plan has taken the other nodes for ones like the
  // first.
  const Environment job = OnN1With({{"SLURM_GPUS", "v100:8"}, {"SLURM_JOB_NUM_NODES", "3"}});
  EXPECT_EQ(Arguments({{"n1", 1, 4}, {"n2", 1, 4}, {"n3", 1, 4}}, job), "--gpus=4");
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 2, 2}, {"n3", 2, 2}}, job), "--gpus-per-node=2");
  // A total says nothing of some of the nodes.
  EXPECT_EQ(Arguments({{"n1", 4, 4}, {"n2", 2, 2}}, job), "--gpus-per-node=2");
}

TEST(SlurmForMpirun, GivesThemToTheSrunOfPrrteByAnOption) {
  const SlurmForMpirun slurm = OfPrrte({{"n1", 4, 4}, {"n2", 2, 2}}, kOnN1);
  EXPECT_EQ(slurm.options, (Words{"--prtemca", "plm_slurm_args", "--gpus-per-node=2"}));
  EXPECT_FALSE(slurm.variables.contains("OMPI_MCA_plm_slurm_args"));
  EXPECT_TRUE(OfOrte({{"n1", 4, 4}, {"n2", 2, 2}}, kOnN1).options.empty());
}

TEST(SlurmForMpirun, AddsToWhatSlurmItselfSays) {
  const std::vector<HostSlots> hosts = {{"n1", 4, 4}, {"n2", 2, 2}};
  const Environment environment = OnN1With({{"OMPI_MCA_plm_slurm_args", "--external-launcher"}});
  EXPECT_EQ(Arguments(hosts, environment), "--external-launcher --gpus-per-node=2");
  EXPECT_EQ(OfPrrte(hosts, environment).options.size(), 3U);
}

// mpirun of Open MPI 4 and 5 names no nodes to srun where its list is full of nodes without a
// daemon, which then takes the first nodes of the job.
TEST(SlurmForMpirun, NamesTheNodesOfTheDaemonsWhereTheyAreAPartOfTheJob) {
  const auto arguments = [](const std::vector<HostSlots>& hosts, const Environment& environment) {
    const SlurmForMpirun slurm = MakeSlurmForMpirun(hosts, 3, environment, MpiRuntime::kOrte, {});
    const auto found = slurm.variables.find("OMPI_MCA_plm_slurm_args");
    return found == slurm.variables.end() ? "" : found->second;
  };
  EXPECT_EQ(arguments({{"n2", 2, 2}, {"n3", 2, 2}}, kOnN1), "--nodelist=n[2-3] --gpus-per-node=2");
  EXPECT_EQ(arguments({{"n1", 2}, {"n3", 2}}, kOnN1), "--nodelist=n3");
  EXPECT_EQ(arguments({{"n3", 2}}, kOnN1), "--nodelist=n3");
  EXPECT_EQ(arguments({{"n1", 2}}, kOnN1), "");
  EXPECT_EQ(arguments({{"n1", 2}, {"n2", 2}, {"n3", 2}}, kOnN1), "");
  EXPECT_EQ(arguments({{"n1", 2}, {"n2", 2}}, {}), "--nodelist=n[1-2]");  // the shell of salloc
  Environment users = kOnN1;
  users["OMPI_MCA_plm_slurm_args"] = "--exact";
  EXPECT_EQ(arguments({{"n2", 2, 2}}, users), "--exact --nodelist=n2");
}

TEST(SlurmForMpirun, NamesTheComponentOfTheDaemonsInAHeterogeneousJob) {
  const Environment het = OnN1With({{"SLURM_HET_SIZE", "2"}});
  const HostSlots n1 = {"n1", 2, 0, 0};
  const HostSlots n2 = {"n2", 2, 0, 1};
  const HostSlots n3 = {"n3", 2, 0, 1};
  const HostSlots n4 = {"n4", 2, 0, 0};
  EXPECT_EQ(Arguments({n1, n2, n3}, het), "--het-group=1");
  EXPECT_EQ(Arguments({n1, n4}, het), "--het-group=0");
  EXPECT_EQ(Arguments({n1}, het), "");
  const auto part = MakeSlurmForMpirun({n3}, 4, het, MpiRuntime::kOrte, {}).variables;
  EXPECT_EQ(part.at("OMPI_MCA_plm_slurm_args"), "--het-group=1 --nodelist=n3");
  EXPECT_THAT(tests::Rejection<LaunchError>(EX_CONFIG,
                                            [&] {
                                              OfOrte({n1, n2, n4}, het);
                                            }),
              ::testing::HasSubstr("n2 and n4 are in two: use --launcher=srun"));
}

TEST(SlurmForMpirun, AddsTheNodesToTheArgumentsOfTheUser) {
  const Words words = {"--mca", "plm_slurm_args", "--exact", "-v"};
  for (const MpiRuntime runtime : {MpiRuntime::kOrte, MpiRuntime::kPrrte}) {
    const SlurmForMpirun slurm = MakeSlurmForMpirun({{"n2", 2, 2}}, 3, kOnN1, runtime, words);
    EXPECT_EQ(slurm.mpirun_args, (Words{"--mca", "plm_slurm_args", "--exact --nodelist=n2", "-v"}));
    EXPECT_TRUE(slurm.options.empty());
    EXPECT_FALSE(slurm.variables.contains("OMPI_MCA_plm_slurm_args"));
  }
  const SlurmForMpirun of_prrte = MakeSlurmForMpirun({{"n2", 1}}, 3, kOnN1, MpiRuntime::kPrrte, {});
  EXPECT_EQ(of_prrte.options, (Words{"--prtemca", "plm_slurm_args", "--nodelist=n2"}));
}

TEST(SlurmForMpirun, HidesWhatTheJobHasAskedForFromTheSrunOfItsDaemons) {
  const std::vector<HostSlots> hosts = {{"n1", 4, 4}, {"n2", 2, 2}};
  const Environment environment = OnN1With({{"SLURM_TRES_PER_TASK", "gres/gpu=1"},
                                            {"SLURM_TRES_BIND", "gres/gpu:per_task:1"},
                                            {"SLURM_GPUS", "6"},
                                            {"SLURM_NTASKS", "6"}});
  const Words names = {"SLURM_GPUS", "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK"};
  EXPECT_EQ(OfOrte(hosts, environment).hidden, names);
  EXPECT_EQ(OfPrrte(hosts, environment).hidden, names);
  EXPECT_TRUE(OfOrte({{"n1", 4, 4}}, environment).hidden.empty());
}

TEST(SlurmForMpirun, LeavesTheArgumentsOfTheUserAlone) {
  const std::vector<HostSlots> hosts = {{"n1", 4, 4}, {"n2", 2, 2}};
  const Environment own = OnN1With({{"SLURM_GPUS", "6"}, {"OMPI_MCA_plm_slurm_args", "--overlap"}});
  EXPECT_EQ(Arguments(hosts, own), "");
  EXPECT_TRUE(OfOrte(hosts, own).hidden.empty());
  EXPECT_FALSE(OfPrrte(hosts, own).options.empty());  // PRRTE does not read the variable
  EXPECT_EQ(Arguments(hosts, kOnN1, {"--mca", "plm_slurm_args", "--exact"}), "");
  const Words words = {"--prtemca", "plm_slurm_args", "--exact"};
  EXPECT_TRUE(OfPrrte(hosts, kOnN1, words).options.empty());
  EXPECT_TRUE(OfPrrte(hosts, own, words).hidden.empty());
}

}  // namespace
}  // namespace launcher
