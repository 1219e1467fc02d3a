// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_allocation.h"
#include "launcher/base/error.h"
#include "launcher/bede/bede_mpirun.h"
#include "launcher/bede/bede_options.h"
#include "launcher/slurm/slurm_allocation.h"
#include "support/quoting.h"
#include "tests/launcher/placement/plan_fixtures.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

Allocation OfSlurm(const std::string& fixture) {
  return ReadSlurmAllocation(ReadBatchEnvironment(fixture)).value();
}

BedeLayout PlanOf(const std::string& fixture, const std::string& par) {
  return PlanBede(OfSlurm(fixture), ReadTopologyFixture("ac922_16c_4v100.xml"), ParseBedePar(par));
}

// "ranks x threads" on one AC922 (2 x 16 cores of 4 hardware threads, 4 GPUs).
std::string OnAc922(const std::string& par) {
  const BedeLayout plan = PlanBede(AllocationOfThisMachine("n1"),
                                   ReadTopologyFixture("ac922_16c_4v100.xml"), ParseBedePar(par));
  EXPECT_EQ(HostfileText(plan), "n1 slots=" + std::to_string(plan.ranks) + "\n");
  return std::to_string(plan.ranks) + "x" + std::to_string(plan.threads);
}

TEST(BedeLayout, SharesOutAnAc922) {
  EXPECT_EQ(OnAc922("1ppn:1tpc"), "1x32");
  EXPECT_EQ(OnAc922("1ppn:1tpt"), "1x128");
  EXPECT_EQ(OnAc922("1ppn:none"), "1x1");
  EXPECT_EQ(OnAc922("1ppg:1tpc"), "4x8");
  EXPECT_EQ(OnAc922("1ppg:1tpt"), "4x32");
  EXPECT_EQ(OnAc922("1ppg:none"), "4x1");
  EXPECT_EQ(OnAc922("1ppc:1tpc"), "32x1");
  EXPECT_EQ(OnAc922("1ppc:1tpt"), "32x4");
  EXPECT_EQ(OnAc922("1ppc:none"), "32x1");
  EXPECT_EQ(OnAc922("1ppt:1tpc"), "128x1");
  EXPECT_EQ(OnAc922("1ppt:1tpt"), "128x1");
  EXPECT_EQ(OnAc922("1ppt:none"), "128x1");
}

TEST(BedeLayout, OneThreadPerCoreMakesCoresOfHardwareThreads) {
  // As on aarch64.
  const NodeTopology node = MakeNode({8}, 1, {});
  for (const std::string par : {"1ppc", "1ppt"}) {
    const BedeLayout plan = PlanBede(AllocationOfThisMachine("n1"), node, ParseBedePar(par));
    EXPECT_EQ(plan.ranks, 8);
    EXPECT_EQ(plan.threads, 1);
  }
}

TEST(BedeLayout, TakesAllNodesOfTheJobAsThisOne) {
  const BedeLayout plan = PlanOf("N2-gres-gpu-4.txt", "1ppc");
  EXPECT_EQ(HostfileText(plan), "n1 slots=32\nn2 slots=32\n");
  EXPECT_EQ(plan.ranks, 64);
  EXPECT_EQ(plan.rankfile, "");
}

TEST(BedeLayout, PutsRanksNearTheirGpus) {
  const BedeLayout plan = PlanOf("N2-gres-gpu-4.txt", "1ppg");
  EXPECT_EQ(HostfileText(plan), "n1 slots=4\nn2 slots=4\n");
  EXPECT_THAT(plan.rankfile, HasSubstr("rank 0=n1     slot=0:0-7\n"));
  EXPECT_THAT(plan.rankfile, HasSubstr("rank 7=n2     slot=1:8-15\n"));
}

TEST(BedeLayout, CountsGpusWhereNodesHaveUnequalNumbers) {
  const BedeLayout plan = PlanOf("N2-gpus-6-uneven.txt", "1ppg:1tpc");
  EXPECT_EQ(plan.ranks, 6);
  // 4 GPUs on one node, where a rank has 8 cores; 2 on the other, where it has more.
  EXPECT_EQ(plan.threads, 8);
}

TEST(BedeLayout, KnowsTheGpusOfEveryNodeForTheDaemons) {
  for (const std::string par : {"1ppn", "1ppg"}) {
    const BedeLayout even = PlanOf("N2-exclusive-gres-gpu-4-time-mem0.txt", par);
    EXPECT_EQ(even.hosts[1].gpus, 4) << par;
    EXPECT_EQ(PlanOf("N2-gpus-6-uneven.txt", par).hosts[1].gpus, 2) << par;
  }
}

TEST(BedeLayout, DoesNotTakeSlurmsTasksForRanks) {
  EXPECT_EQ(PlanOf("N4-gres-gpu-4-ntasks-per-node-4.txt", "1ppn").ranks, 4);
  EXPECT_EQ(PlanOf("N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", "1ppc").ranks, 32);
  EXPECT_EQ(PlanOf("N4-gres-gpu-4-ntasks-per-node-4.txt", "1ppg").ranks, 16);
}

TEST(BedeLayout, RejectsOneRankPerGpuWithoutGpus) {
  Allocation allocation = AllocationOfThisMachine("n1");
  EXPECT_THAT(
      tests::Rejection<LaunchError>(
          EX_CONFIG, [&] { PlanBede(allocation, MakeNode({4}, 2, {}), ParseBedePar("1ppg")); }),
      HasSubstr("no GPU on n1: ask for GPUs with '#SBATCH --gres=gpu:4'"));
}

BedeJob JobOf(const std::string& par) {
  BedeJob job{.par = ParseBedePar(par)};
  job.plan.threads = 4;
  job.mpirun = "/usr/bin/mpirun";
  job.mpirun_args = {"-np", "2", "program", "a b"};
  job.environment = {{"PATH", "/bin"}, {"SLURM_PROCID", "0"}};
  job.rankfile = "/tmp/ddlrun.abc/RANKFILE";
  job.hostfile = "/tmp/ddlrun.abc/HOSTFILE";
  return job;
}

std::string LineOf(const BedeJob& job) { return support::QuoteCommand(MakeBedeCommand(job).argv); }

TEST(BedeCommand, MapsByParameters) {
  EXPECT_EQ(LineOf(JobOf("1ppn")),
            "/usr/bin/env OMPI_MCA_hwloc_base_binding_policy=none "
            "OMPI_MCA_orte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "OMPI_MCA_rmaps_base_mapping_policy=slot "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
  EXPECT_EQ(LineOf(JobOf("1ppg")),
            "/usr/bin/env OMPI_MCA_orte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "OMPI_MCA_orte_rankfile=/tmp/ddlrun.abc/RANKFILE "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
  EXPECT_EQ(LineOf(JobOf("1ppc")),
            "/usr/bin/env OMPI_MCA_hwloc_base_binding_policy=core "
            "OMPI_MCA_orte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "OMPI_MCA_rmaps_base_mapping_policy=core "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
  EXPECT_EQ(LineOf(JobOf("1ppt")),
            "/usr/bin/env OMPI_MCA_hwloc_base_binding_policy=hwthread "
            "OMPI_MCA_hwloc_base_use_hwthreads_as_cpus=1 "
            "OMPI_MCA_orte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "OMPI_MCA_rmaps_base_mapping_policy=hwthread "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
}

// Under PRRTE, the runtime of Open MPI 5.
BedeJob PrrteJobOf(const std::string& par) {
  BedeJob job = JobOf(par);
  job.mpi_runtime = MpiRuntime::kPrrte;
  return job;
}

TEST(BedeCommand, MapsByParametersOfPrrte) {
  EXPECT_EQ(LineOf(PrrteJobOf("1ppn")),
            "/usr/bin/env PRTE_MCA_hwloc_default_binding_policy=none "
            "PRTE_MCA_prte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
  EXPECT_EQ(LineOf(PrrteJobOf("1ppg")),
            "/usr/bin/env PRTE_MCA_hwloc_default_binding_policy=:overload-allowed "
            "PRTE_MCA_prte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 "
            "--map-by rankfile:FILE=/tmp/ddlrun.abc/RANKFILE -np 2 program 'a b'");
  EXPECT_EQ(LineOf(PrrteJobOf("1ppc")),
            "/usr/bin/env PRTE_MCA_hwloc_default_binding_policy=core "
            "PRTE_MCA_prte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
  EXPECT_EQ(LineOf(PrrteJobOf("1ppt")),
            "/usr/bin/env PRTE_MCA_hwloc_default_binding_policy=hwthread "
            "PRTE_MCA_prte_default_hostfile=/tmp/ddlrun.abc/HOSTFILE "
            "PRTE_MCA_rmaps_default_mapping_policy=:HWTCPUS "
            "/usr/bin/mpirun -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
}

TEST(BedeCommand, PrrteInSlurmHasItsVariables) {
  BedeJob job = PrrteJobOf("1ppc");
  job.in_slurm = true;
  job.plan.hosts = {{"n1", 4, 2}, {"n2", 2, 1}};
  job.environment["SLURMD_NODENAME"] = "n1";
  EXPECT_THAT(LineOf(job),
              StartsWith("/usr/bin/env PRTE_MCA_hwloc_default_binding_policy=core "
                         "'SLURM_NODELIST=n[1-2]' SLURM_TASKS_PER_NODE=4,2 "
                         "/usr/bin/mpirun --prtemca plm_slurm_args --gpus-per-node=1 -x "));
  job.mpirun_args = {"--prtemca", "plm_slurm_args", "--exact", "program"};
  EXPECT_THAT(LineOf(job), Not(HasSubstr("--gpus-per-node")));
}

TEST(BedeCommand, InheritsTheEnvironmentButForRankIdentities) {
  const std::vector<std::string> environment = MakeBedeCommand(JobOf("1ppc")).environment;
  EXPECT_THAT(environment, AllOf(Contains("PATH=/bin"), Not(Contains("SLURM_PROCID=0"))));
}

TEST(BedeCommand, LeavesParametersOfTheUserAlone) {
  BedeJob job = JobOf("1ppc");
  job.environment["OMPI_MCA_hwloc_base_binding_policy"] = "socket";
  EXPECT_THAT(LineOf(job), Not(HasSubstr("hwloc_base_binding_policy")));
  EXPECT_THAT(MakeBedeCommand(job).environment,
              Contains("OMPI_MCA_hwloc_base_binding_policy=socket"));
  job.mpi_runtime = MpiRuntime::kPrrte;
  job.environment["PRTE_MCA_hwloc_default_binding_policy"] = "package";
  EXPECT_THAT(LineOf(job), Not(HasSubstr("hwloc_default_binding_policy")));
}

TEST(BedeCommand, TheDefaultOfThreadsYieldsToTheUsersOwn) {
  BedeJob job = JobOf("1ppc");
  job.environment["OMP_NUM_THREADS"] = "3";
  EXPECT_THAT(LineOf(job), HasSubstr("mpirun -x OMP_NUM_THREADS -np 2"));
  job.par = ParseBedePar("1ppc:1tpt");
  EXPECT_THAT(LineOf(job), HasSubstr("mpirun -x OMP_NUM_THREADS=4 -np 2"));
}

TEST(BedeCommand, TheSiteComesBeforeTheUser) {
  BedeJob job = JobOf("1ppc");
  job.mpi_arguments = {"--mca", "btl_tcp_if_include", "ib0"};
  job.rank_settings = {{"NCCL_IB_HCA", "mlx5_0"}};
  EXPECT_THAT(LineOf(job),
              HasSubstr("-x OMP_NUM_THREADS=4 -x NCCL_IB_HCA --mca btl_tcp_if_include ib0 -np 2 "));
  EXPECT_THAT(MakeBedeCommand(job).environment, Contains("NCCL_IB_HCA=mlx5_0"));
}

TEST(BedeCommand, RootAndSlurmNeedMore) {
  BedeJob job = JobOf("1ppn");
  job.is_root = true;
  job.in_slurm = true;
  job.plan.hosts = {{"n1", 1}, {"n2", 1}};
  EXPECT_EQ(LineOf(job),
            "/usr/bin/env OMPI_MCA_hwloc_base_binding_policy=none "
            "OMPI_MCA_rmaps_base_mapping_policy=slot "
            "'SLURM_NODELIST=n[1-2]' 'SLURM_TASKS_PER_NODE=1(x2)' "
            "/usr/bin/mpirun --allow-run-as-root -x OMP_NUM_THREADS=4 -np 2 program 'a b'");
}

// The refusal's text; fails when there is none, or with another exit code.
std::string Rejection(const std::vector<std::string>& arguments) {
  const std::string rejection =
      tests::Rejection<LaunchError>(EX_USAGE, [&] { ParseBedeOptions(arguments); });
  EXPECT_NE(rejection, "");
  return rejection;
}

TEST(BedePar, ReadsEveryDistribution) {
  for (const std::string ranks : {"1ppn", "1ppg", "1ppc", "1ppt"}) {
    EXPECT_EQ(FormatBedePar(ParseBedePar(ranks)), ranks + ":1tpt");
    EXPECT_FALSE(ParseBedePar(ranks).are_threads_requested);
    for (const std::string threads : {"1tpc", "1tpt", "none"}) {
      const std::string text = ranks + ":" + threads;
      EXPECT_EQ(FormatBedePar(ParseBedePar(text)), text);
      EXPECT_TRUE(ParseBedePar(text).are_threads_requested);
    }
  }
}

TEST(BedePar, IsOneRankPerCoreWhenNothingIsSaid) {
  EXPECT_EQ(FormatBedePar(ParseBedeOptions({"program"}).par), "1ppc:1tpt");
}

TEST(BedePar, RejectsAnythingElseWithTheOnesThereAre) {
  EXPECT_THAT(Rejection({"--bede-par", "2ppc", "program"}),
              HasSubstr("--bede-par 2ppc: '2ppc' is none of 1ppn, 1ppg, 1ppc, 1ppt"));
  EXPECT_THAT(Rejection({"--bede-par=1ppc:4tpc", "program"}),
              HasSubstr("--bede-par 1ppc:4tpc: '4tpc' is none of 1tpc, 1tpt, none"));
  EXPECT_THAT(Rejection({"--bede-par", "1ppc:", "program"}), HasSubstr("'' is none of 1tpc"));
  EXPECT_THAT(Rejection({"--bede-par", ":1tpc", "program"}), HasSubstr("'' is none of 1ppn"));
  EXPECT_THAT(Rejection({"--bede-par=", "program"}), HasSubstr("'' is none of 1ppn"));
  EXPECT_THAT(Rejection({"--bede-par", "1ppc:1tpc:none", "x"}),
              HasSubstr("'1tpc:none' is none of"));
}

TEST(BedeOptions, HandOnTheRestAsItIs) {
  const std::vector<std::string> rest = {"-np", "4", "--mca", "btl", "tcp,self", "a b", "--", "-x"};
  std::vector<std::string> arguments = {"--bede-par", "1ppg:none"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  const BedeOptions options = ParseBedeOptions(arguments);
  EXPECT_EQ(FormatBedePar(options.par), "1ppg:none");
  EXPECT_EQ(options.mpirun_args, rest);
}

TEST(BedeOptions, AreFoundBehindThoseOfMpirun) {
  const BedeOptions options =
      ParseBedeOptions({"-np", "4", "--bede-par=1ppn", "--bede-dry-run", "program", "--help"});
  EXPECT_EQ(FormatBedePar(options.par), "1ppn:1tpt");
  EXPECT_TRUE(options.dry_run);
  EXPECT_FALSE(options.help);
  EXPECT_THAT(options.mpirun_args, ElementsAre("-np", "4", "program", "--help"));
}

TEST(BedeOptions, TakeOnlyTheFirstOfAKind) {
  const BedeOptions options = ParseBedeOptions(
      {"--bede-par", "1ppn", "bede-mpirun", "--bede-par", "1ppc", "--bede-par=1ppt", "program"});
  EXPECT_EQ(FormatBedePar(options.par), "1ppn:1tpt");
  EXPECT_THAT(options.mpirun_args,
              ElementsAre("bede-mpirun", "--bede-par", "1ppc", "--bede-par=1ppt", "program"));
}

TEST(BedeOptions, RejectALineWithoutAProgram) {
  EXPECT_THAT(Rejection({}), HasSubstr("no program given"));
  EXPECT_THAT(Rejection({"--bede-par", "1ppn"}), HasSubstr("no program given"));
  EXPECT_THAT(Rejection({"program", "--bede-par"}), HasSubstr("--bede-par needs a value"));
}

TEST(BedeOptions, KnowHelpAndVersion) {
  EXPECT_TRUE(ParseBedeOptions({"--help"}).help);
  EXPECT_TRUE(ParseBedeOptions({"--version"}).version);
  EXPECT_THAT(ParseBedeOptions({"--help"}).mpirun_args, IsEmpty());
  const std::string help = BedeHelpText();
  for (const std::string word : {"1ppn", "1ppg", "1ppc", "1ppt", "1tpc", "1tpt", "none"}) {
    EXPECT_THAT(help, HasSubstr(word + " (")) << word;
  }
}

}  // namespace
}  // namespace launcher
