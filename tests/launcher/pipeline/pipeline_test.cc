// SPDX-License-Identifier: Apache-2.0

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "launcher/launch/launcher.h"
#include "launcher/pipeline/commands.h"
#include "launcher/pipeline/node_order.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/placement/planner.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/slurm/slurm_version.h"
#include "support/quoting.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

constexpr char kTwoBlocks[] = "BlockName=b1 Nodes=n[1,3]\nBlockName=b2 Nodes=n[2,4]\n";
constexpr char kTwoSwitches[] = "SwitchName=s1 Nodes=n[1,3]\nSwitchName=s2 Nodes=n[2,4]\n";

class NodeOrder : public tests::DirectoryTest {
 protected:
  void SetUp() override {
    Answer(kTwoSwitches);
    environment_ = {{"PATH", directory_.string()},
                    {"SLURMD_NODENAME", "n1"},
                    {"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node"}};
    settings_.rank_order = "auto";
    allocation_.origin = Allocation::Origin::kSlurm;
    allocation_.job_id = "7";
    for (const char* host : {"n1", "n2", "n3", "n4"}) {
      AllocatedNode& node = allocation_.nodes.emplace_back();
      node.host = host;
      node.gpus = 2;
    }
  }

  // scontrol prints `text`.
  void Answer(const std::string& text) const {
    const std::string answer = Write("answer", text);
    temporary_.WriteScript("scontrol",
                           "while read -r line; do echo \"$line\"; done < '" + answer + "'");
  }

  // The hosts in the order of ranks; sets asked_ and warnings_.
  std::vector<std::string> Hosts() {
    Allocation allocation = allocation_;
    const auto question = QueryNetwork(settings_, allocation, environment_);
    requested_ = question != nullptr;
    OrderNodes(settings_, environment_, question.get(), &allocation);
    LaunchPlan plan = MakePlan(allocation, {}, {});
    plan.warnings.clear();
    WarnOfOrder(settings_, environment_, question.get(), &plan);
    warnings_ = plan.warnings;
    std::vector<std::string> hosts;
    for (const NodePlacement& node : plan.nodes) hosts.push_back(node.host);
    return hosts;
  }

  Environment environment_;
  Settings settings_;
  Allocation allocation_;
  bool requested_ = false;
  std::vector<std::string> warnings_;
};

TEST_F(NodeOrder, IsThatOfTheTopologyWhereSlurmHasOne) {
  for (const char* order : {"auto", "topology", "cyclic"}) {
    settings_.rank_order = order;
    EXPECT_THAT(Hosts(), ElementsAre("n1", "n3", "n2", "n4")) << order;
    EXPECT_TRUE(requested_);
    EXPECT_THAT(warnings_, IsEmpty());
  }
  environment_["SLURMD_NODENAME"] = "n2";
  EXPECT_THAT(Hosts(), ElementsAre("n2", "n4", "n1", "n3"));
  // In the shell of salloc on a login node.
  environment_.erase("SLURMD_NODENAME");
  environment_.erase("SLURM_TOPOLOGY_ADDR_PATTERN");
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n3", "n2", "n4"));
}

TEST_F(NodeOrder, IsSlurmsWithoutAQuestionWhereNothingCanComeOfIt) {
  const auto expect_unasked = [this](const std::string& why) {
    Hosts();
    EXPECT_FALSE(requested_) << why;
  };
  settings_.rank_order = "node";
  expect_unasked("node");
  settings_.rank_order = "auto";
  environment_["SLURM_TOPOLOGY_ADDR_PATTERN"] = "node";
  expect_unasked("flat");
  settings_.rank_order = "cyclic";
  expect_unasked("cyclic");
  settings_.rank_order = "topology";  // a partition may have one
  Hosts();
  EXPECT_TRUE(requested_);
  allocation_.job_id.clear();
  expect_unasked("outside of Slurm");
  allocation_.job_id = "7";
  allocation_.nodes.back().component = 1;
  expect_unasked("heterogeneous");
  allocation_.nodes.resize(1);
  expect_unasked("one node");
}

TEST_F(NodeOrder, OfTheUserStays) {
  allocation_.origin = Allocation::Origin::kHostList;
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_FALSE(requested_);
  environment_["SLURM_JOB_SEGMENT_SIZE"] = "2";
  Answer(kTwoBlocks);
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_TRUE(requested_);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0],
              HasSubstr("[WARN DDL-21-9] SLURM_JOB_SEGMENT_SIZE=2, but the segment of ranks 0 to 3 "
                        "is on several blocks: b1 (n1) and b2 (n2)"));
  settings_.rank_order = "cyclic";  // takes every segment apart, as it is meant to
  Hosts();
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(NodeOrder, KeepsSegmentsWhole) {
  environment_["SLURM_JOB_SEGMENT_SIZE"] = "2";
  Answer(kTwoBlocks);
  environment_["SLURM_TOPOLOGY_ADDR_PATTERN"] = "node";  // of the cluster, not of the partition
  EXPECT_TRUE((Hosts(), requested_));
  EXPECT_THAT(warnings_, IsEmpty());
  settings_.rank_order = "node";
  Hosts();
  EXPECT_EQ(warnings_.size(), 1U);
  environment_["SLURM_JOB_SEGMENT_SIZE"] = "two";
  Hosts();
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(NodeOrder, IsSlurmsWhereNothingIsKnown) {
  Answer("");
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_THAT(warnings_, IsEmpty());
  environment_["SLURMD_NODENAME"] = "n3";
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n2", "n3", "n4"));
  settings_.rank_order = "topology";
  Hosts();
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("[WARN DDL-21-10] --rank-order=topology: Slurm knows no"));
  fs::remove(directory_ / "scontrol");
  Hosts();
  EXPECT_EQ(warnings_.size(), 1U);
}

// Four nodes with two GPUs and two tasks each.
Environment FourNodes() {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOB_NODELIST", "n[1-4]"},
          {"SLURM_JOB_NUM_NODES", "4"},
          {"SLURM_GPUS_PER_NODE", "2"},
          {"SLURM_NTASKS", "8"},
          {"SLURM_TASKS_PER_NODE", "2(x4)"},
          {"SLURM_JOB_CPUS_PER_NODE", "64(x4)"}};
}

PlannedJob PlanWithout(const std::vector<std::string>& lost_nodes,
                       const std::vector<std::string>& arguments, const SiteConfig& site = {},
                       const Environment& environment = FourNodes()) {
  std::vector<std::string> all = {
      "--max-restarts=3",
      "--topology=" + tests::SourceDirectory() + "/tests/fixtures/hwloc/ac922_16c_4v100.xml"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Options options = ParseOptions(all);
  const Settings settings = MergeSettings(options, site, environment);
  return PlanJob(options, settings, environment, lost_nodes);
}

std::vector<std::string> HostsOf(const LaunchPlan& plan) {
  std::vector<std::string> hosts;
  for (const NodePlacement& node : plan.nodes) hosts.push_back(node.host);
  return hosts;
}

TEST(PlanJob, RejectsToBeOneOfSeveralInAJob) {
  Environment environment = FourNodes();
  environment["OMPI_COMM_WORLD_SIZE"] = "2";
  EXPECT_THAT(
      tests::Rejection<LaunchError>(EX_CONFIG, [&] { PlanWithout({}, {}, {}, environment); }),
      HasSubstr("ddlrun is one of 2 processes of mpirun"));
  environment["OMPI_COMM_WORLD_SIZE"] = "1";
  EXPECT_EQ(PlanWithout({}, {}, {}, environment).plan.ranks.size(), 8);
}

TEST(PlanJob, RunsOnTheNodesThatAreLeft) {
  const PlannedJob first = PlanWithout({}, {"--min-nodes=2"});
  EXPECT_EQ(first.plan.ranks.size(), 8);
  EXPECT_EQ(first.dispensable_nodes, 2);
  EXPECT_EQ(first.min_nodes, 2);
  EXPECT_THAT(first.plan.warnings, Not(Contains(HasSubstr("are left"))));

  const PlannedJob second = PlanWithout({"n2"}, {"--min-nodes=2"});
  EXPECT_THAT(HostsOf(second.plan), ElementsAre("n1", "n3", "n4"));
  EXPECT_EQ(second.plan.ranks.size(), 6);
  EXPECT_EQ(second.dispensable_nodes, 2);
  EXPECT_TRUE(second.has_lost_nodes);
  EXPECT_THAT(
      second.plan.warnings,
      Contains("[WARN DDL-21-11] 3 of the 4 nodes of this job are left, without n2: 6 ranks"));

  const PlannedJob third = PlanWithout({"n2", "n4"}, {"--min-nodes=2"});
  EXPECT_THAT(HostsOf(third.plan), ElementsAre("n1", "n3"));
  EXPECT_THAT(
      third.plan.warnings,
      Contains("[WARN DDL-21-11] 2 of the 4 nodes of this job are left, without n2, n4: 4 ranks"));
}

TEST(PlanJob, TakesSpareNodesBeforeItRunsOnFewer) {
  const std::vector<std::string> arguments = {"--spare-nodes=1", "--min-nodes=2"};
  EXPECT_EQ(PlanWithout({}, arguments).plan.ranks.size(), 6);
  EXPECT_EQ(PlanWithout({}, arguments).dispensable_nodes, 2);
  const PlannedJob second = PlanWithout({"n2"}, arguments);
  EXPECT_THAT(HostsOf(second.plan), ElementsAre("n1", "n3", "n4"));
  EXPECT_THAT(second.plan.warnings, Not(Contains(HasSubstr("are left"))));
  const PlannedJob third = PlanWithout({"n2", "n1"}, arguments);
  EXPECT_THAT(HostsOf(third.plan), ElementsAre("n3", "n4"));
  EXPECT_THAT(third.plan.warnings, Contains(HasSubstr("2 of the 4 nodes")));
}

TEST(PlanJob, OnlySpareNodesAreDispensableWithoutALeastNumber) {
  EXPECT_EQ(PlanWithout({}, {}).dispensable_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}).dispensable_nodes, 1);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}).min_nodes, 0);
  // All nodes are needed.
  EXPECT_EQ(PlanWithout({}, {"--min-nodes=4"}).dispensable_nodes, 0);
}

TEST(PlanJob, TheSitesNumberCountsWhereTheJobHasSoManyNodes) {
  const auto site = [](const std::string& nodes) {
    return ParseSiteConfig("min_nodes: " + nodes + "\n", "site.yaml");
  };
  EXPECT_EQ(PlanWithout({}, {}, site("3")).dispensable_nodes, 1);
  EXPECT_EQ(PlanWithout({}, {}, site("4")).min_nodes, 4);
  EXPECT_EQ(PlanWithout({}, {}, site("5")).min_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {}, site("5")).dispensable_nodes, 0);
  EXPECT_EQ(PlanWithout({}, {"--spare-nodes=1"}, site("4")).dispensable_nodes, 1);
}

// sbatch -N1 --gres=gpu:2, where the user hides the GPUs.
const Environment kHidden = {{"SLURM_JOB_ID", "7"},
                             {"SLURM_JOB_NODELIST", "n1"},
                             {"SLURMD_NODENAME", "n1"},
                             {"SLURM_GPUS_ON_NODE", "2"},
                             {"CUDA_VISIBLE_DEVICES", ""}};

TEST(ReadAllocation, HiddenGpusContradictNoRunWithoutGpus) {
  Options options;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 1;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 0;
  EXPECT_EQ(ReadAllocation(options, kHidden, false).nodes[0].gpus, 2);
  EXPECT_EQ(ReadJob(options, kHidden)->job_id, "7");
  EXPECT_FALSE(ReadJob(options, {}));
}

// What -H says, "" where it is taken.
std::string RejectionOfHosts(const std::string& hosts, const Environment& environment = {}) {
  Options options;
  options.hosts = hosts;
  return tests::Rejection<LaunchError>([&] { ReadAllocation(options, environment, false); });
}

TEST(ReadAllocation, TwoNamesOfThisMachineAreRejected) {
  const std::string own = HostName();
  for (const std::string& hosts :
       {"localhost:1," + own + ":1", "127.0.0.1:1," + own + ":1", own + ",127.0.1.1",
        "n9,localhost.localdomain,n8," + own, std::string("localhost,127.0.0.1")}) {
    EXPECT_THAT(RejectionOfHosts(hosts),
                testing::ContainsRegex("-H .*: .* and .* are both this machine; write one of them"))
        << hosts;
  }
  for (const char* hosts :
       {"gpu1,gpu1.site.example", "gpu1.site.example:2,n[1-3],gpu1:2", "gpu1,GPU1"}) {
    EXPECT_THAT(
        RejectionOfHosts(hosts),
        testing::ContainsRegex("-H .*: .* and .* are one host spelled in two ways; write one"))
        << hosts;
  }
  EXPECT_THAT(RejectionOfHosts("q1,localhost", {{"SLURMD_NODENAME", "q1"}}),
              HasSubstr("q1 and localhost are both this machine"));
  for (const std::string& hosts : std::vector<std::string>{
           "localhost:1,localhost:1", "localhost,n9", "n8,n9", "w.a.example,w.b.example"}) {
    EXPECT_EQ(RejectionOfHosts(hosts), "") << hosts;
  }
}

TEST(ThisMachine, HasNamesAndAddressesOfItsOwn) {
  for (const std::string& host :
       std::vector<std::string>{"localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1",
                                "127.0.1.1", "127.9.9.9"}) {
    EXPECT_TRUE(IsThisMachine(host, {})) << host;
  }
  EXPECT_TRUE(IsThisMachine(HostName(), {}));
  EXPECT_TRUE(IsThisMachine("q1", {{"SLURMD_NODENAME", "q1"}}));
  for (const std::string& host :
       std::vector<std::string>{"203.0.113.77", "128.0.0.1", "12.7.0.1", "localhosts", "q1"}) {
    EXPECT_FALSE(IsThisMachine(host, {})) << host;
  }
}

// Of any interface that is not the loopback: an address of ours, where there is one.
TEST(ThisMachine, HasTheAddressesOfItsInterfaces) {
  ifaddrs* first = nullptr;
  ASSERT_EQ(getifaddrs(&first), 0);
  int seen = 0;
  for (const ifaddrs* own = first; own != nullptr; own = own->ifa_next) {
    if (own->ifa_addr == nullptr || own->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(own->ifa_addr)->sin_addr, text,
              sizeof(text));
    EXPECT_TRUE(IsThisMachine(text, {})) << text;
    ++seen;
  }
  freeifaddrs(first);
  EXPECT_GE(seen, 1);
}

// From the environments of real jobs under each version of Slurm to the command that starts the
// ranks: every step is the real one, and the golden commands are those that ran in tests/cluster.

// What `srun --version` and `srun --mpi=list` print.
struct Slurm {
  const char* version;
  const char* mpi_list;
};

constexpr Slurm k2011 = {"slurm-wlm 20.11.4\n",
                         "srun: MPI types are...\nsrun: pmix\nsrun: pmix_v4\nsrun: none\n"
                         "srun: cray_shasta\nsrun: pmi2\n"};
constexpr Slurm k2205 = {"slurm-wlm 22.05.8\n",
                         "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                         "specific pmix plugin versions available: pmix_v4\n"};
constexpr Slurm k2411 = {"slurm-wlm 24.11.5\n",
                         "MPI plugin types are...\n\tnone\n\tpmix\n\tcray_shasta\n\tpmi2\n"
                         "specific pmix plugin versions available: pmix_v5\n"};
constexpr Slurm k2605 = {"slurm-wlm 26.05.5\n",
                         "MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n"};

constexpr char kTail[] =
    " --overcommit --kill-on-bad-exit=1 --export=ALL --input=0 /shim -- program";

struct Golden {
  const char* environment;  // a file of tests/fixtures/slurm-env; 22.05's where 20.11 sets the same
  Slurm slurm;
  const char* pmi;
  const char* command;  // between srun and kTail
};

const std::vector<Golden>& Goldens() {
  static const std::vector<Golden> table = {
      {"N2-gres-gpu-4.txt", k2011, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"N2-gpus-6-uneven.txt", k2011, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2011, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"n3-gpus-per-task-1.txt", k2011, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"N2-gres-gpu-4.txt", k2205, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"N2-gpus-6-uneven.txt", k2205, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2205, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"n3-gpus-per-task-1.txt", k2205, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"slurm-24.11-N2-exclusive-gres-gpu-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N3-gres-gpu-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N3-gres-gpu-4-ntasks-per-node-4.txt", k2411, "auto",
       "--mpi=pmix --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-24.11-N2-gpus-6-uneven.txt", k2411, "auto",
       "--mpi=pmix --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"slurm-24.11-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2411, "auto",
       "--mpi=pmix --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"slurm-24.11-n3-gpus-per-task-1.txt", k2411, "auto",
       "--mpi=pmix --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
      {"slurm-26.05-N2-exclusive-gres-gpu-4.txt", k2605, "none",
       "--mpi=none --ntasks=8 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N3-gres-gpu-4.txt", k2605, "none",
       "--mpi=none --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N3-gres-gpu-4-ntasks-per-node-4.txt", k2605, "none",
       "--mpi=none --ntasks=12 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=4"},
      {"slurm-26.05-N2-gpus-6-uneven.txt", k2605, "none",
       "--mpi=none --ntasks=6 --distribution=arbitrary --nodelist=/run/TASKFILE --gpus=6"},
      {"slurm-26.05-N1-gpus-per-node-2-ntasks-2-cpus-per-task-2.txt", k2605, "none",
       "--mpi=none --ntasks=2 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=2"},
      {"slurm-26.05-n3-gpus-per-task-1.txt", k2605, "none",
       "--mpi=none --ntasks=3 --distribution=arbitrary --nodelist=/run/TASKFILE "
       "--gpus-per-node=3"},
  };
  return table;
}

std::string CommandOf(const Golden& golden) {
  const Environment environment = ReadBatchEnvironment(golden.environment);
  const Allocation allocation = ReadSlurmAllocation(environment).value();
  const NodeTopology none;
  LaunchRequest job{.plan = MakePlan(allocation, {none}, {})};
  LauncherTools means{.in_slurm = true, .mpi_types = ParseMpiList(golden.slurm.mpi_list)};
  const LauncherChoice choice = ChooseLauncher(job.plan, true, golden.pmi, means);
  job.mpi_type = choice.mpi_type;
  job.environment = environment;
  for (const AllocatedNode& node : allocation.nodes) job.hosts_of_job.push_back(node.host);
  job.srun = "srun";
  job.mpirun = "mpirun";
  job.in_slurm = true;
  job.run_directory = "/run";
  job.shim = "/shim";
  job.program = {"program"};
  const ChildCommand command = FindLauncher(choice.name).make_commands(job).front();
  for (const std::string& variable : command.environment) {
    EXPECT_THAT(variable, Not(StartsWith("SLURM_TRES_PER_TASK")));
  }
  return support::QuoteCommand(command.argv);
}

TEST(SlurmCommands, AreTheGoldenOnesOfEveryVersion) {
  for (const Golden& golden : Goldens()) {
    SCOPED_TRACE(std::string(golden.environment) + ", " + golden.slurm.version);
    EXPECT_EQ(CommandOf(golden), "srun " + std::string(golden.command) + kTail);
  }
}

TEST(SlurmCommands, GoToMpirunWhereSrunHasNoPmix) {
  EXPECT_THAT(CommandOf({"slurm-26.05-N3-gres-gpu-4.txt", k2605, "auto", ""}),
              AllOf(HasSubstr("'SLURM_NODELIST=n[1-3]' "
                              "'SLURM_TASKS_PER_NODE=4(x3)' mpirun"),
                    HasSubstr("-n 12")));
}

TEST(SlurmCommands, ThePauseIsOfTheVersionsThatNeedIt) {
  for (const Slurm& slurm : {k2011, k2205}) {
    EXPECT_TRUE(PmixServersNeedPause(ParseSlurmVersion(slurm.version))) << slurm.version;
  }
  for (const Slurm& slurm : {k2411, k2605}) {
    EXPECT_FALSE(PmixServersNeedPause(ParseSlurmVersion(slurm.version))) << slurm.version;
  }
}

TEST(CommandsText, IsWholeForTheLogAlone) {
  std::vector<ChildCommand> commands(2);
  commands.front().argv = {"mpirun", std::string(5000, 'x')};
  EXPECT_EQ(CommandsText(commands), "+ mpirun '" + std::string(1000, 'x') +
                                        "... (5000 characters)'\n  (and so for the other 1)\n");
  EXPECT_THAT(CommandsText(commands, CommandLength::kWhole),
              testing::HasSubstr(std::string(5000, 'x') + "\n"));
}

}  // namespace
}  // namespace launcher
