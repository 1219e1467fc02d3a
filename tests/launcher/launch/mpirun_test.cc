// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/error.h"
#include "launcher/launch/launcher.h"
#include "launcher/launch/mpirun_lines.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/launch/slurm_for_mpirun.h"
#include "support/quoting.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// Hosts whose names are not as mpirun takes them to be: they differ in their domain alone, or are
// not the host names of the nodes.

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
  EXPECT_THAT(LineOf(JobOnTwoHosts("n1", "n2")), Not(HasSubstr("keep_fqdn")));
  EXPECT_THAT(LineOf(JobOnTwoHosts("n1.a.example", "n2.a.example")), Not(HasSubstr("keep_fqdn")));
  LaunchRequest job = JobOnTwoHosts("worker.a.example", "worker.b.example");
  EXPECT_THAT(LineOf(job), HasSubstr("--mca orte_keep_fqdn_hostnames 1"));
  job.mpi_runtime = MpiRuntime::kPrrte;
  EXPECT_THAT(tests::Rejection<LaunchError>(EX_CONFIG, [&] { MakeMpirunCommands(job); }),
              HasSubstr("takes worker.a.example and worker.b.example for one host"));
}

TEST(MpirunHosts, ThatAreCalledOtherwiseGetADaemonOnThisNodeAsWell) {
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

// Of Open MPI 4.1.4 and 6.0.0rc2, as they were printed.
TEST(LostDaemon, IsNamedByMpirun) {
  EXPECT_EQ(ParseLostDaemon("  Remote daemon: [[54533,0],1] on node n2"), "n2");
  EXPECT_EQ(ParseLostDaemon("  Remote daemon: [prterun-n1-321@0,1] on node gpu-a08"), "gpu-a08");
}

TEST(LostDaemon, IsNotFoundInOtherLines) {
  for (const char* line :
       {"", "  HNP daemon   : [[54533,0],0] on node n1", "Remote daemon: [[54533,0],1] on node n2",
        "  Remote daemon: [[54533,0],1] on node ", "  Remote daemon: [[54533,0],1]",
        "  Remote daemon: [[54533,0],1] on node n2 n3", "  Remote daemon: x on node n2"}) {
    EXPECT_FALSE(ParseLostDaemon(line)) << line;
  }
}

TEST(FailureOfDaemons, IsWhatMpirunSaysOfItsSrun) {
  EXPECT_TRUE(IsFailureOfDaemons("srun returned non-zero exit status (9) from launching"));
  EXPECT_FALSE(IsFailureOfDaemons("srun returned non-zero exit status (9)"));
  EXPECT_FALSE(IsFailureOfDaemons("python returned a status from launching"));
  EXPECT_TRUE(
      IsFailedStartOfDaemon("An ORTE daemon has unexpectedly failed after launch and before"));
  EXPECT_FALSE(IsFailedStartOfDaemon("my An ORTE daemon has unexpectedly failed after launch"));
}

TEST(RemarkOnForwarding, IsThatOnTheSignalOfDdlrunAlone) {
  EXPECT_TRUE(IsRemarkOnForwarding("mpirun: Forwarding signal 23 to job"));
  EXPECT_TRUE(IsRemarkOnForwarding("prterun: Forwarding signal 23 to job"));
  for (const char* line : {"", "mpirun: Forwarding signal 10 to job", "Forwarding signal 23 to job",
                           "I say mpirun: Forwarding signal 23 to job"}) {
    EXPECT_FALSE(IsRemarkOnForwarding(line)) << line;
  }
}

TEST(MpirunNotice, IsTheEndOfARankWhoseShimWasKilledToo) {
  const auto end = ParseMpirunNotice(
      "mpirun noticed that process rank 2 with PID 77 on node n2 exited on signal 9 (Killed).");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->rank, 2);
  EXPECT_EQ(end->host, "n2");
  EXPECT_EQ(end->signal, 9);
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_EQ(end->pid, 0);
  EXPECT_TRUE(ParseMpirunNotice(
      "prterun noticed that process rank 0 with PID 0 on node a.b exited on signal 11 (Segm"));
  for (const char* line : {"", "mpirun noticed that process rank 2 with PID 7",
                           "mpirun noticed that process rank x with PID 7 on node n exited on "
                           "signal 9 (Killed).",
                           "mpirun noticed that process rank 2 with PID 7 on node n exited on "
                           "signal 0 ().",
                           "python noticed that process rank 2 with PID 7 on node n exited on "
                           "signal 9 (Killed).",
                           "I say: mpirun noticed that process rank 2 with PID 7 on node n exited "
                           "on signal 9 (Killed)."}) {
    EXPECT_FALSE(ParseMpirunNotice(line)) << line;
  }
}

TEST(MpichAbort, IsTheRankWithItsExitCode) {
  const std::string abort = " in comm 0): application called MPI_Abort(MPI_COMM_WORLD, ";
  const auto end = ParseMpichAbort("Abort(259) on node 1 (rank 1" + abort + "3) - process 1");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->rank, 1);
  EXPECT_EQ(end->exit_code, 3);
  for (const std::string& line : {std::string("Abort(3) on node 1 (rank 1 in comm 0): Fatal error"),
                                  "Abort(256) on node 1 (rank 1" + abort + "0) - process 1",
                                  "I say Abort(3) on node 1 (rank 1" + abort + "3)"}) {
    EXPECT_FALSE(ParseMpichAbort(line)) << line;
  }
}

struct Vector {
  const char* text;
  const char* name;
  std::optional<MpiRuntime> runtime;
};

// Debian 12's and 13's are what they print there; of Intel's and IBM's, what their users quote.
const std::vector<Vector> kVectors = {
    {"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
     "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
     "Open MPI 5.0.7", MpiRuntime::kPrrte},
    {"prterun (PRRTE) 3.0.8\n\nReport bugs to: https://github.com/openpmix/prrte\n", "PRRTE 3.0.8",
     MpiRuntime::kPrrte},
    {"prte (PRRTE) 3.0.8\n", "PRRTE 3.0.8", MpiRuntime::kPrrte},
    {"orterun (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
     "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpiexec (OpenRTE) 4.1.4\n", "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 1.10.7\n", "Open MPI 1.10.7", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 4.1.5rc2\n", "Open MPI 4.1.5rc2", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 5.0.0rc12\n", "Open MPI 5.0.0rc12", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 6.0.0rc2\n", "Open MPI 6.0.0rc2", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) v5.0.x-202310\n", "Open MPI 5.0.x-202310", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 9.0.1\n", "Open MPI 9.0.1", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 10.0.1\n", "Open MPI 10.0.1", MpiRuntime::kPrrte},
    {"prte (PRRTE) 0.9\n", "PRRTE 0.9", MpiRuntime::kPrrte},
    {"mpirun (IBM Spectrum MPI) 10.3.1.2\n", "IBM Spectrum MPI 10.3.1.2", MpiRuntime::kOrte},
    {"HYDRA build details:\n    Version:                                 4.0.2\n"
     "    Release Date:                            Thu Apr  7 12:34:45 CDT 2022\n",
     "MPICH (Hydra 4.0.2)", std::nullopt},
    {"HYDRA build details:\n", "MPICH (Hydra)", std::nullopt},
    {"Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619 (id: c2e19c2f3e)\n"
     "Copyright 2003-2023, Intel Corporation.\n",
     "Intel MPI 2021.10", std::nullopt},
    {"Intel(R) MPI Library for Linux* OS, Version 2019 Update 7 Build 20200312 (id: 5dc2dd3e9)\n",
     "Intel MPI 2019", std::nullopt},
    // What a site's wrapper prints before it.
    {"loading openmpi/5.0.7\nVersion: 3\nmpirun (Open MPI) 5.0.7\n", "Open MPI 5.0.7",
     MpiRuntime::kPrrte},
    {"", "", std::nullopt},
    {"mpirun (Open MPI) \n", "", std::nullopt},
    {"mpirun (Open MPI) new\n", "", std::nullopt},
    {"    Version:   4.0.2\n", "", std::nullopt},
    {"HPE MPT 2.22  03/31/20 15:59:10\n", "", std::nullopt},
};

TEST(MpirunVersion, KnowsTheMakersLines) {
  for (const Vector& vector : kVectors) {
    const MpirunVersion version = ParseMpirunVersion(vector.text);
    EXPECT_EQ(version.name, vector.name) << vector.text;
    EXPECT_EQ(version.runtime, vector.runtime) << vector.text;
    const std::string name = vector.name;
    EXPECT_EQ(version.other_launcher,
              name.starts_with("MPICH") || name.starts_with("Intel") ? "hydra" : "");
  }
}

TEST(MpirunVersion, SaysWhyAForeignOneIsNotUsed) {
  const auto lacks = [](const char* text) {
    return MpirunLacks("/opt/bin/mpirun", ParseMpirunVersion(text));
  };
  EXPECT_EQ(lacks("mpirun (Open MPI) 4.1.4\n"), "");
  EXPECT_EQ(
      lacks("HYDRA build details:\n    Version:      4.2.1\n"),
      "/opt/bin/mpirun is of MPICH (Hydra 4.2.1), not of Open MPI (--launcher=hydra starts ranks "
      "by it)");
  EXPECT_EQ(lacks("\n  HPE MPT 2.22 \r\nmore\n"),
            "/opt/bin/mpirun does not say that it is of Open MPI: 'mpirun --version' says 'HPE MPT "
            "2.22'");
  EXPECT_EQ(lacks("\n"),
            "/opt/bin/mpirun does not say that it is of Open MPI: 'mpirun --version' says nothing");
  EXPECT_EQ(ParseMpirunVersion(std::string(200, 'x')).first_line, std::string(80, 'x'));
}

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

// So many nodes of racks with 32 each, every second one of which is left out.
std::vector<HostSlots> EverySecondNode(int count, const std::string& prefix) {
  std::vector<HostSlots> hosts;
  for (int i = 0; i < count; ++i) {
    hosts.push_back({prefix + std::to_string(100000 + 2 * i) + "-" + std::to_string(i % 2), 8});
  }
  return hosts;
}

TEST(SlurmForMpirun, IsRejectedWhereLinuxDoesNotPassTheNamesOfTheNodes) {
  struct Row {
    int nodes;
    std::size_t nodes_of_job;
    std::string rejection;  // the beginning
  };
  // A name and its comma have 12 bytes.
  for (const Row& row : {Row{10000, 10000, ""}, Row{10921, 10921, ""},
                         Row{10922, 10922,
                             "mpirun needs SLURM_NODELIST with 131079 bytes, and Linux passes at "
                             "most 131072 in one variable or argument: use --launcher=srun, or "},
                         Row{16384, 16384, "mpirun needs SLURM_NODELIST with 196623 bytes"},
                         // --nodelist for the srun of the daemons is longer than the value alone.
                         Row{10921, 20000, "mpirun needs OMPI_MCA_plm_slurm_args with 131087"}}) {
    const std::string rejection = tests::Rejection<LaunchError>(EX_CONFIG, [&] {
      MakeSlurmForMpirun(EverySecondNode(row.nodes, "gpu"), row.nodes_of_job, {}, MpiRuntime::kOrte,
                         {});
    });
    EXPECT_EQ(rejection.substr(0, row.rejection.size()), row.rejection) << row.nodes;
    EXPECT_EQ(rejection.empty(), row.rejection.empty()) << rejection;
  }
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
              HasSubstr("n2 and n4 are in two: use --launcher=srun"));
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
