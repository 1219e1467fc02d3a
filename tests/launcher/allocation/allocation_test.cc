// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_allocation.h"
#include "launcher/allocation/host_index.h"
#include "launcher/allocation/hosts_of_job.h"
#include "launcher/allocation/network_order.h"
#include "launcher/allocation/visible_gpus.h"
#include "launcher/base/error.h"
#include "rankfile/host_name.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

std::vector<std::pair<std::string, int>> HostsAndSlots(const Allocation& allocation) {
  std::vector<std::pair<std::string, int>> result;
  for (const AllocatedNode& node : allocation.nodes) {
    result.emplace_back(node.host, node.slots.value_or(-1));
    EXPECT_FALSE(node.gpus);
  }
  return result;
}

TEST(HostAllocation, ReadsHostsSlotsAndBrackets) {
  const Allocation allocation = AllocationFromHostList("h1,h2:4,gpu[01-02]:2,x[1,3]");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kHostList);
  EXPECT_EQ(allocation.origin_text, "-H h1,h2:4,gpu[01-02]:2,x[1,3]");
  EXPECT_THAT(HostsAndSlots(allocation),
              ElementsAre(Pair("h1", -1), Pair("h2", 4), Pair("gpu01", 2), Pair("gpu02", 2),
                          Pair("x1", -1), Pair("x3", -1)));
}

TEST(HostAllocation, CountsARepeatedHostAsSlots) {
  EXPECT_THAT(HostsAndSlots(AllocationFromHostList("a,b,a,a")),
              ElementsAre(Pair("a", 3), Pair("b", -1)));
  EXPECT_THAT(HostsAndSlots(AllocationFromHostList("a:2,a")), ElementsAre(Pair("a", 3)));
}

std::string HostListRejection(const std::string& text) {
  return tests::Rejection<LaunchError>(EX_USAGE, [&] { AllocationFromHostList(text); });
}

TEST(HostAllocation, RejectsBadHostListsWithTheColumn) {
  EXPECT_THAT(HostListRejection(""), HasSubstr("column 1: a host is missing"));
  EXPECT_THAT(HostListRejection("h1,,h2"), HasSubstr("column 4: a host is missing"));
  EXPECT_THAT(HostListRejection("h1,h2:x"), AllOf(HasSubstr("column 7"), HasSubstr("-H gpu01")));
  EXPECT_THAT(HostListRejection("h1:0"), HasSubstr("column 4"));
  EXPECT_THAT(HostListRejection("h1,h[1-"), HasSubstr("column 8"));
  EXPECT_THAT(HostListRejection("h1,-x"), HasSubstr("column 4"));
  EXPECT_THAT(HostListRejection("h:1000000,h:1000000"),
              HasSubstr("column 11: too many slots on h"));
  EXPECT_THAT(HostListRejection("h[1-65536],x"), HasSubstr("column 12: too many hosts"));
}

TEST(HostAllocation, ReadsAHostfile) {
  const Allocation allocation =
      AllocationFromHostfile("# racks\nh1\nh2 slots=4  # new\n\nh1\n", "hosts.txt");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kHostfile);
  EXPECT_EQ(allocation.origin_text, "-hostfile hosts.txt");
  EXPECT_THAT(HostsAndSlots(allocation), ElementsAre(Pair("h1", 2), Pair("h2", 4)));
}

TEST(HostAllocation, RejectsABadHostfileWithLineAndColumn) {
  EXPECT_THAT(tests::Rejection<LaunchError>(
                  EX_DATAERR, [&] { AllocationFromHostfile("h1\nh2 slots=many\n", "hosts.txt"); }),
              HasSubstr("hosts.txt:2:"));
}

TEST(HostAllocation, IsThisMachineWithoutSlots) {
  const Allocation allocation = AllocationOfThisMachine("laptop");
  EXPECT_EQ(allocation.origin, Allocation::Origin::kThisMachine);
  EXPECT_THAT(HostsAndSlots(allocation), ElementsAre(Pair("laptop", -1)));
  EXPECT_FALSE(allocation.ranks);
}

// rankfile::SameHost is the definition: every question to an index of these hosts is answered as a
// search by it answers.
TEST(HostIndex, FindsTheFirstThatIsTheSameHost) {
  const std::vector<std::string> hosts = {"n2.here", "n1.here",  "n1",       "n1.there", "n3",
                                          "n3.here", "n2.here",  "n4",       "",         ".here",
                                          "N5.Here", "10.0.0.1", "10.0.0.2", "10"};
  const HostIndex index(hosts);
  for (const char* requested :
       {"n1",      "n1.here", "n1.there", "n1.elsewhere", "n2", "n2.here", "n2.there",
        "n3",      "n3.here", "n3.there", "n4.here",      "n5", "n5.here", "N1",
        "N4.HERE", "10",      "10.0.0.2", "10.0.0.3",     "",   ".here",   "n"}) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < hosts.size() && !first; ++i) {
      if (rankfile::SameHost(hosts[i], requested)) first = i;
    }
    EXPECT_EQ(index.Find(requested), first) << requested;
    EXPECT_EQ(index.Holds(requested), first.has_value()) << requested;
  }
}

TEST(HostIndex, GrowsAsHostsAreAdded) {
  HostIndex index;
  EXPECT_TRUE(index.IsEmpty());
  EXPECT_FALSE(index.Holds("n1"));
  index.Add("n2");
  index.Add("n1.here");
  EXPECT_FALSE(index.IsEmpty());
  EXPECT_EQ(index.Find("n1"), 1U);
}

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

TEST(HostsOfJob, RejectAHostOutsideTheJob) {
  EXPECT_THAT(
      tests::Rejection<LaunchError>(
          EX_CONFIG, [&] { RestrictToHosts(Job(), AllocationFromHostList("n1,n9.cluster")); }),
      AllOf(HasSubstr("-H n1,n9.cluster names n9.cluster, which is not in "
                      "this job (SLURM_JOB_NODELIST=n[1-3])"),
            HasSubstr("#SBATCH --nodelist=n9")));
}

// Of "n1=pod1.s1 n2=pod2.s2 n3"; n3 is not in a known unit.
Allocation AllocationOf(const std::string& text) {
  Allocation allocation;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    AllocatedNode& node = allocation.nodes.emplace_back();
    const std::size_t equals = word.find('=');
    node.host = word.substr(0, equals);
    std::istringstream path(equals == std::string::npos ? "" : word.substr(equals + 1));
    for (std::string unit; std::getline(path, unit, '.');) node.network_path.push_back(unit);
  }
  return allocation;
}

std::string Ordered(const std::string& first, const std::string& text) {
  Allocation allocation = AllocationOf(text);
  OrderByNetwork(first, &allocation);
  std::string hosts;
  for (const AllocatedNode& node : allocation.nodes) {
    hosts += (hosts.empty() ? "" : " ") + node.host;
  }
  return hosts;
}

TEST(NetworkOrder, PutsNodesOfAUnitSideBySide) {
  const struct {
    const char *nodes, *first, *ordered;
  } cases[] = {
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n1", "n1 n3 n2 n4"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "", "n1 n3 n2 n4"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "elsewhere", "n1 n3 n2 n4"},
      // The node of ddlrun is in front of its unit, and its unit in front of the others.
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n4", "n4 n2 n1 n3"},
      {"n1=s1 n2=s2 n3=s1 n4=s2", "n3", "n3 n1 n2 n4"},
      // On each level.
      {"n1=p1.s1 n2=p2.s2 n3=p1.s3 n4=p2.s4 n5=p1.s1 n6=p2.s2", "n1", "n1 n5 n3 n2 n6 n4"},
      {"n1=p1.s1 n2=p2.s2 n3=p1.s3 n4=p2.s4 n5=p1.s1 n6=p2.s2", "n4", "n4 n2 n6 n1 n5 n3"},
      // Units of one name in other units are others.
      {"n1=p1.s n2=p2.s n3=p1.t n4=p2.s n5=p1.s", "n1", "n1 n5 n3 n2 n4"},
      // Nodes of no unit, or of less levels, stay together and take nobody's place.
      {"n1=s1 n2 n3=s1 n4", "n1", "n1 n3 n2 n4"},
      {"n1=p.s1 n2=p n3=p.s1", "n1", "n1 n3 n2"},
      {"n1=p n2=p.s1 n3=p", "n2", "n2 n1 n3"},
      {"n1 n2 n3", "n2", "n2 n1 n3"},
      {"n1=s1", "n1", "n1"},
      {"", "n1", ""},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(Ordered(test.first, test.nodes), test.ordered) << test.nodes << ' ' << test.first;
  }
}

TEST(NetworkOrder, TakesAllThatIsKnownOfANodeAlong) {
  Allocation allocation = AllocationOf("n1=s1 n2=s2 n3=s1");
  for (int i = 0; i < 3; ++i) allocation.nodes[i].slots = i + 1;
  OrderByNetwork("n1", &allocation);
  EXPECT_EQ(allocation.nodes[1].host, "n3");
  EXPECT_EQ(allocation.nodes[1].slots, 3);
  EXPECT_EQ(NetworkText(allocation.nodes[1]), "s1");
}

TEST(NetworkText, IsOneWord) {
  EXPECT_EQ(NetworkText(AllocationOf("n1=pod1.s3").nodes[0]), "pod1.s3");
  EXPECT_EQ(NetworkText(AllocationOf("n1").nodes[0]), "");
}

const std::vector<std::string> kFour = {"GPU-aaaa", "GPU-bbbb", "GPU-bbcc", "GPU-dddd"};
const std::vector<std::string> kFourUnknown = {"", "", "", ""};

TEST(VisibleGpus, AreNumbersInTheOrderOfTheList) {
  EXPECT_THAT(VisibleGpus("0", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("2,0", kFour), ElementsAre(2, 0));
  EXPECT_THAT(VisibleGpus(" 3 ,\t1 ", kFour), ElementsAre(3, 1));
  EXPECT_THAT(VisibleGpus("1gpu,2x", kFour), ElementsAre(1, 2));
}

TEST(VisibleGpus, AreBeginningsOfUuidsThatFitOne) {
  EXPECT_THAT(VisibleGpus("GPU-bbc,GPU-aaaa", kFour), ElementsAre(2, 0));
  EXPECT_THAT(VisibleGpus("GPU-aaaa,GPU-bb", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("GPU-eeee", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("GPU-aaaa,GPU-bbbb", kFourUnknown), ElementsAre(-1, -1));
  EXPECT_THAT(VisibleGpus("GPU-aaaa", {}), IsEmpty());
}

TEST(VisibleGpus, EndAtTheFirstThatIsNotThere) {
  EXPECT_THAT(VisibleGpus("0,4,1", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("0,2,-1,1", kFour), ElementsAre(0, 2));
  EXPECT_THAT(VisibleGpus("0,,1", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("0,GPU-bbbb", kFour), ElementsAre(0));
  EXPECT_THAT(VisibleGpus("GPU-bbbb,0", kFour), ElementsAre(1));
  for (const char* none : {"-1", "", ",", "NoDevFiles", "none", "99999999999"}) {
    EXPECT_THAT(VisibleGpus(none, kFour), IsEmpty()) << none;
  }
  EXPECT_THAT(VisibleGpus("0", {}), IsEmpty());
}

TEST(VisibleGpus, NamedTwiceAreNone) {
  EXPECT_THAT(VisibleGpus("0,1,0", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("0,00", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("GPU-bbb,GPU-bbbb", kFour), IsEmpty());
  EXPECT_THAT(VisibleGpus("MIG-1,MIG-2,MIG-1", kFour), IsEmpty());
}

TEST(VisibleGpus, AreSlicesOfTheGpuThatIsKnown) {
  EXPECT_THAT(VisibleGpus("MIG-1b4c,MIG-77aa", {"GPU-aaaa"}), ElementsAre(0, 0));
  EXPECT_THAT(VisibleGpus("MIG-1b4c,MIG-77aa", kFour), ElementsAre(-1, -1));
  EXPECT_THAT(VisibleGpus("MIG-GPU-bbcc/1/0,MIG-GPU-bbcc/2/0,MIG-GPU-aaaa/1/0", kFour),
              ElementsAre(2, 2, 0));
  EXPECT_THAT(VisibleGpus("MIG-1b4c,0", kFour), ElementsAre(-1));
  EXPECT_THAT(VisibleGpus("MIG-1b4c", {}), IsEmpty());
  EXPECT_TRUE(HasGpuSlices(" MIG-1b4c"));
  EXPECT_FALSE(HasGpuSlices("0,MIG-1b4c"));
  EXPECT_FALSE(HasGpuSlices(""));
}

}  // namespace
}  // namespace launcher
