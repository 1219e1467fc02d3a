// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/rank/gpu_check.h"
#include "launcher/rank/identity.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

std::string MessageOf(int planned, const Environment& environment, int devices = 0) {
  return tests::Rejection<LaunchError>(
      EX_CONFIG, [&] { CheckGpus(planned, "n2", environment, devices); }, "accepted");
}

TEST(GpuCheck, AcceptsANodeThatHasWhatWasPlanned) {
  const Environment environment = {
      {"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_STEP_GPUS", "0-3"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}};
  EXPECT_EQ(MessageOf(4, environment, 4), "accepted");
  EXPECT_EQ(MessageOf(4, environment, 8), "accepted");
  EXPECT_EQ(MessageOf(4, environment), "accepted");
}

TEST(GpuCheck, AcceptsANodeThatSaysNothing) { EXPECT_EQ(MessageOf(4, {}), "accepted"); }

TEST(GpuCheck, RejectsAnotherNumberInAnyVariable) {
  EXPECT_THAT(MessageOf(4, {{"SLURM_GPUS_ON_NODE", "2"}}),
              HasSubstr("SLURM_GPUS_ON_NODE=2 on this node, but the plan counts on 4 here"));
  EXPECT_THAT(MessageOf(4, {{"SLURM_STEP_GPUS", "0,2-3"}}), HasSubstr("SLURM_STEP_GPUS=0,2-3"));
  EXPECT_THAT(MessageOf(2, {{"CUDA_VISIBLE_DEVICES", "GPU-3f2a-11,GPU-77b0-0,GPU-1-2"}}),
              HasSubstr("CUDA_VISIBLE_DEVICES=GPU-3f2a-11"));
}

TEST(GpuCheck, RejectsANodeThatHasLostAGpu) {
  EXPECT_THAT(MessageOf(4, {{"SLURM_GPUS_ON_NODE", "4"}}, 3),
              AllOf(HasSubstr("3 GPU devices in /dev, but the plan counts on 4 here"),
                    HasSubstr("#SBATCH --exclude=n2")));
}

TEST(GpuCheck, SlicesShareADevice) {
  const Environment slices = {{"SLURM_GPUS_ON_NODE", "3"},
                              {"CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c"}};
  EXPECT_EQ(MessageOf(3, slices, 1), "accepted");
  EXPECT_THAT(MessageOf(4, slices, 1), HasSubstr("SLURM_GPUS_ON_NODE=3"));
}

// gpus[i] is that of local rank i on the second node; the first has one rank with GPU 0.
LaunchPlan PlanOf(const std::vector<int>& gpus) {
  LaunchPlan plan;
  plan.nodes.resize(2);
  for (std::size_t i = 0; i <= gpus.size(); ++i) {
    RankPlacement rank;
    rank.rank = static_cast<int>(i);
    rank.node = i == 0 ? 0 : 1;
    rank.gpu = i == 0 ? 0 : gpus[i - 1];
    plan.nodes[static_cast<std::size_t>(rank.node)].ranks.push_back(rank.rank);
    plan.ranks.push_back(rank);
  }
  return plan;
}

// The GPUs of the second node after Slurm's word; those before it, if that changed nothing.
std::vector<int> Taken(const std::vector<int>& planned, const std::string& granted) {
  LaunchPlan plan = PlanOf(planned);
  const bool has_changed = TakeGrantedGpus(granted, 1, &plan);
  std::vector<int> gpus;
  for (const int rank : plan.nodes[1].ranks) {
    gpus.push_back(plan.ranks[static_cast<std::size_t>(rank)].gpu);
  }
  EXPECT_EQ(has_changed, gpus != planned);
  EXPECT_EQ(plan.ranks[0].gpu, 0);
  return gpus;
}

TEST(TakeGrantedGpus, GivesRanksThoseOfTheirOwnNode) {
  EXPECT_THAT(Taken({0, 1}, "2,3"), ElementsAre(2, 3));
  EXPECT_THAT(Taken({0, 1}, "0-1"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "1-3"), ElementsAre(1, 2));
  EXPECT_THAT(Taken({0, 1, 0, 1}, "2,3"), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(Taken({1, 0}, "0,1"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "2,1"), ElementsAre(2, 1));
}

TEST(TakeGrantedGpus, ChangesNothingWhereTheListSaysLess) {
  EXPECT_THAT(Taken({0, 1}, "2"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, ""), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "GPU-3f,GPU-77"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({-1, -1}, "2,3"), ElementsAre(-1, -1));
}

// Two nodes of two ranks.
RankJob TwoByTwo() {
  RankJob job{.launcher = "mpirun"};
  job.plan.nodes.resize(2);
  job.plan.nodes[0].host = "n1";
  job.plan.nodes[1].host = "n2";
  for (int r = 0; r < 4; ++r) {
    RankPlacement rank{.rank = r, .node = r / 2, .local_rank = r % 2};
    job.plan.ranks.push_back(rank);
    job.plan.nodes[static_cast<std::size_t>(r / 2)].ranks.push_back(r);
  }
  return job;
}

std::string MessageOf(const Environment& environment) {
  return tests::Rejection<LaunchError>(
      EX_CONFIG,
      [&] {
        FindOwnPlacement(TwoByTwo(), ReadIdentity(environment, TraitsOf("mpirun"), "", {}),
                         environment, "login");
      },
      "accepted");
}

TEST(Identity, OpenMpiRankFindsItsPlan) {
  const Identity identity = ReadIdentity({{"OMPI_COMM_WORLD_RANK", "3"},
                                          {"OMPI_COMM_WORLD_SIZE", "4"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
                                         TraitsOf("mpirun"), "", {});
  const RankJob job = TwoByTwo();
  EXPECT_EQ(FindOwnPlacement(job, identity, {}, "").rank, 3);
  EXPECT_EQ(FindOwnPlacement(job, identity, {}, "").node, 1);
}

TEST(Identity, PmixRankAloneIsEnough) { EXPECT_EQ(MessageOf({{"PMIX_RANK", "2"}}), "accepted"); }

TEST(Identity, TheLocalSpawnersArgumentGoesFirst) {
  EXPECT_EQ(ReadIdentity({{"PMIX_RANK", "2"}}, TraitsOf("local"), "", 1).rank, 1);
}

TEST(Identity, RejectsAWorldOfOneWhereMoreWerePlanned) {
  EXPECT_THAT(MessageOf({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
              HasSubstr("rank 0: mpirun gives it a world of 1, the plan says 4"));
  EXPECT_THAT(MessageOf({}), HasSubstr("nothing says which rank this is"));
}

TEST(Identity, RejectsAnotherPlaceThanPlanned) {
  EXPECT_THAT(MessageOf({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
              HasSubstr("local rank 1, the plan says 0"));
  EXPECT_THAT(MessageOf({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
              HasSubstr("a local world of 4, the plan says 2"));
  EXPECT_THAT(MessageOf({{"PMIX_RANK", "4"}}),
              HasSubstr("PMIX_RANK is 4, the plan has ranks 0 to 3"));
}

TEST(Identity, KnowsTheHostThatARankRunsOn) {
  struct Case {
    const char* launcher;
    Environment environment;
    const char* kernel_name;
    const char* host;  // of rank 2, which is planned for n2
  };
  const std::vector<Case> cases = {
      {"srun", {{"SLURMD_NODENAME", "n2"}}, "x", "n2"},
      {"srun", {{"SLURMD_NODENAME", "n1"}}, "n2", "n1"},
      {"srun", {{"SLURMD_NODENAME", "n7"}}, "n2", "n7"},
      {"srun", {}, "n1", "n2"},  // nothing else than Slurm's name counts
      // The names of the plan are those of the job.
      {"mpirun", {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURMD_NODENAME", "n3"}}, "n2", "n3"},
      {"mpirun", {{"SLURM_JOB_NODELIST_HET_GROUP_1", "n2"}, {"SLURMD_NODENAME", "n1"}}, "", "n1"},
      {"mpirun", {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURMD_NODENAME", ""}}, "n2", "n2"},
      // They are not: hosts by ssh, from within a job.
      {"mpirun", {{"SLURM_JOB_NODELIST", "n[7-9]"}, {"SLURMD_NODENAME", "n7"}}, "n2", "n2"},
      {"mpirun", {{"SLURM_JOB_NODELIST", "n["}, {"SLURMD_NODENAME", "n7"}}, "x", "n2"},
      // Without Slurm: the name of this machine, where the plan has it.
      {"mpirun", {}, "n2.cluster.example", "n2"},
      {"mpirun", {}, "N1", "n1"},
      {"mpirun", {}, "container", "n2"},
  };
  for (const Case& test : cases) {
    RankJob job = TwoByTwo();
    job.launcher = test.launcher;
    EXPECT_EQ(HostOfRank(job, job.plan.ranks[2], test.environment, test.kernel_name), test.host)
        << test.launcher << " " << test.kernel_name;
  }
}

TEST(Identity, RejectsAnotherHostThanPlanned) {
  const Environment on_n1 = {
      {"PMIX_RANK", "2"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURMD_NODENAME", "n1"}};
  EXPECT_THAT(MessageOf(on_n1),
              HasSubstr("rank 2 runs on n1, the plan says n2; take options that"));
}

TEST(Identity, RejectsARankThatIsNoNumber) {
  EXPECT_THAT(MessageOf({{"PMIX_RANK", "-1"}}), HasSubstr("PMIX_RANK='-1'"));
  EXPECT_THAT(MessageOf({{"OMPI_COMM_WORLD_RANK", ""}}), HasSubstr("OMPI_COMM_WORLD_RANK=''"));
}

std::string MessageOfSrun(const Environment& environment, const std::string& pmi) {
  return tests::Rejection<LaunchError>(
      EX_CONFIG,
      [&] {
        FindOwnPlacement(TwoByTwo(), ReadIdentity(environment, TraitsOf("srun"), pmi, {}),
                         environment, "login");
      },
      "accepted");
}

TEST(Identity, ThePmiOfSrunMustSayTheSameRank) {
  EXPECT_EQ(MessageOfSrun({{"SLURM_PROCID", "2"}}, "none"), "accepted");
  EXPECT_EQ(MessageOfSrun({{"SLURM_PROCID", "2"}, {"PMI_RANK", "2"}}, "pmi2"), "accepted");
  EXPECT_EQ(MessageOfSrun({{"SLURM_PROCID", "2"}, {"PMIX_RANK", "2"}}, "pmix"), "accepted");
  EXPECT_THAT(MessageOfSrun({{"SLURM_PROCID", "2"}, {"PMI_RANK", "2"}}, "pmix"),
              HasSubstr("without pmix (no PMIX_RANK), so that every rank would be a world of its"));
  EXPECT_THAT(MessageOfSrun({{"SLURM_PROCID", "2"}, {"PMIX_RANK", "2"}}, "pmi2"),
              HasSubstr("without pmi2 (no PMI_RANK)"));
  EXPECT_THAT(MessageOfSrun({{"SLURM_PROCID", "2"}, {"PMI_RANK", "1"}}, "pmi2"),
              HasSubstr("SLURM_PROCID=2 contradicts PMI_RANK=1"));
  EXPECT_THAT(MessageOfSrun({}, "none"),
              HasSubstr("nothing says which rank this is (no SLURM_PROCID)"));
  EXPECT_THAT(MessageOfSrun({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}}, "none"),
              HasSubstr("gives it a world of 1, the plan says 4"));
}

TEST(Identity, ANumberInNoKnownFormSaysNothing) {
  EXPECT_EQ(MessageOf({{"OMPI_COMM_WORLD_RANK", "3"},
                       {"OMPI_COMM_WORLD_SIZE", "four"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "-5"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", ""}}),
            "accepted");
  const Identity of_srun = ReadIdentity({{"SLURM_PROCID", "2"},
                                         {"PMIX_RANK", "2"},
                                         {"SLURM_STEP_NUM_TASKS", "4+"},
                                         {"SLURM_LOCALID", "-1"}},
                                        TraitsOf("srun"), "pmix", {});
  EXPECT_EQ(of_srun.rank, 2);
  EXPECT_FALSE(of_srun.world_size);
  EXPECT_FALSE(of_srun.local_rank);
}

}  // namespace
}  // namespace launcher
