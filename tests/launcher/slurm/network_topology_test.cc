// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/network_topology.h"

#include "launcher/allocation/network_order.h"
#include "launcher/slurm/slurm_version.h"
#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

// What is learned where scontrol does `commands`.
ScontrolAnswer AnswerWith(const std::string& commands, Environment environment,
                          bool of_partition = true) {
  const TemporaryDirectory directory;
  if (!commands.empty()) directory.WriteScript("scontrol", commands);
  environment["PATH"] = directory.path();
  return NetworkQuestion(environment, of_partition).Wait();
}

TEST(NetworkQuestion, IsAboutTheTopologyOfThePartition) {
  const std::string commands = R"(
case "$1 $2 $3" in
  'show partition gb200') echo 'PartitionName=gb200'; echo '   Topology=racks' ;;
  'show partition main') echo 'PartitionName=main' ;;
  'show partition gone') echo 'no such partition'; exit 1 ;;
  'show topology '*) echo "topology '$3' ${SLURM_TOPO_LEN-whole}" ;;
esac)";
  const auto requested = [&](const Environment& environment) {
    const ScontrolAnswer answer = AnswerWith(commands, environment);
    EXPECT_TRUE(answer.is_ok);
    return answer.text;
  };
  EXPECT_EQ(requested({}), "topology '' whole\n");
  EXPECT_EQ(requested({{"SLURM_JOB_PARTITION", "main"}, {"SLURM_TOPO_LEN", "9"}}),
            "topology '' whole\n");
  EXPECT_EQ(requested({{"SLURM_JOB_PARTITION", "gone"}}), "topology '' whole\n");
  EXPECT_EQ(requested({{"SLURM_JOB_PARTITION", "gb200"}, {"SLURM_TOPO_LEN", "9"}}),
            "topology 'racks' whole\n");
  EXPECT_EQ(AnswerWith(commands, {{"SLURM_JOB_PARTITION", "gb200"}}, false).text,
            "topology '' whole\n");
}

TEST(NetworkQuestion, MayHaveNoAnswer) {
  EXPECT_FALSE(AnswerWith("", {}).is_ok);
  EXPECT_FALSE(AnswerWith("exit 1", {{"SLURM_JOB_PARTITION", "main"}}).is_ok);
}

TEST(FlatTopology, IsWhatTheVariableOfTheNodeSays) {
  EXPECT_TRUE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}}));
  EXPECT_FALSE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node"}}));
  EXPECT_FALSE(HasFlatTopology({{"SLURM_TOPOLOGY_ADDR_PATTERN", "block.node"}}));
  EXPECT_FALSE(HasFlatTopology({}));
}

// What `scontrol show topology` prints: tests/fixtures/slurm-topology has what it printed on real
// clusters, whose README says how they were made.

Allocation AllocationOf(const std::vector<std::string>& hosts) {
  Allocation allocation;
  for (const std::string& host : hosts) allocation.nodes.emplace_back().host = host;
  return allocation;
}

std::string Fixture(const std::string& name) {
  std::ifstream file(tests::SourceDirectory() + "/tests/fixtures/slurm-topology/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

// "switch: s1 s2 s1", with "-" for a node of which nothing is known.
std::string Units(const std::string& text, const std::vector<std::string>& hosts) {
  Allocation allocation = AllocationOf(hosts);
  ReadNetworkTopology(text, &allocation);
  std::string units = allocation.network_unit + ":";
  for (const AllocatedNode& node : allocation.nodes) {
    units += " " + (node.network_path.empty() ? "-" : NetworkText(node));
  }
  return units;
}

using Hosts = std::vector<std::string>;
const Hosts kFour = {"n1", "n2", "n3", "n4"};

TEST(NetworkTopology, OfRealClustersIsRead) {
  const struct {
    const char* file;
    Hosts hosts;
    const char* units;
  } cases[] = {
      {"slurm-22.05-tree.txt", kFour, "switch: s1 s2 s1 s2"},
      {"slurm-22.05-tree.txt", {"n1", "n3"}, "switch: s1 s1"},
      {"slurm-22.05-tree-3-levels.txt",
       {"n1", "n2", "n3", "n4", "n5", "n6"},
       "switch: pod1.s1 pod2.s2 pod1.s3 pod2.s4 pod1.s1 pod2.s4"},
      // What all nodes of a job share is left out.
      {"slurm-22.05-tree-3-levels.txt", {"n1", "n3", "n5"}, "switch: s1 s3 s1"},
      {"slurm-26.05-tree.txt", kFour, "switch: s1 s2 s1 s2"},
      {"slurm-26.05-block.txt", kFour, "block: b1 b2 b1 b2"},
      {"slurm-26.05-ring.txt", kFour, "ring: r1 r1 r1 r1"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(Units(Fixture(test.file), test.hosts), test.units) << test.file;
  }
}

// In the forms of the plugins of Slurm that no cluster here has.
TEST(NetworkTopology, OfOtherPluginsAndVersionsIsRead) {
  const struct {
    const char *text, *units;
  } cases[] = {
      // 23.11 has no BlockSize.
      {"BlockName=b1 BlockIndex=0 Nodes=n[1,4]\nBlockName=b2 BlockIndex=1 Nodes=n[2-3]\n",
       "block: b1 b2 b2 b1"},
      // Three levels, the widest of which holds the whole job.
      {"BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\nBlockName=b2 BlockIndex=1 Nodes=n2 "
       "BlockSize=1\nBlockName=b3 BlockIndex=2 Nodes=n3 BlockSize=1\nBlockName=b4 BlockIndex=3 "
       "Nodes=n4 BlockSize=1\nAggregatedBlock=b[1,3] BlockIndex=4 Nodes=n[1,3] "
       "BlockSize=2\nAggregatedBlock=b[2,4] BlockIndex=5 Nodes=n[2,4] BlockSize=2\n"
       "AggregatedBlock=b[1-4] BlockIndex=6 Nodes=n[1-4] BlockSize=4\n",
       "block: b[1,3].b1 b[2,4].b2 b[1,3].b3 b[2,4].b4"},
      {"RingName=r1 Nodes=n[1,3] RingSize=2\nRingName=r2 Nodes=n[2,4] RingSize=2\n",
       "ring: r1 r2 r1 r2"},
      {"TorusName=t1 Dims=2x1x1 Nodes=n[1,3]\n  TorusName=t1 PlacementDims=2x1x1(2) "
       "Anchors=1\nTorusName=t2 Dims=2x1x1 Nodes=n[2,4]\n",
       "torus: t1 t2 t1 t2"},
      // All nodes on one switch.
      {"SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-9]\n", "switch: s1 s1 s1 s1"},
      // Several switches above, as in a fat tree, and a node that no switch has.
      {"SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1 "
       "Nodes=n3\nSwitchName=t0 Level=1 LinkSpeed=1 Nodes=n[1-3] "
       "Switches=s[0-1]\nSwitchName=t1 Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=s[0-1]\n",
       "switch: t0.t1.s0 t0.t1.s0 t0.t1.s1 -"},
  };
  for (const auto& test : cases) EXPECT_EQ(Units(test.text, kFour), test.units) << test.text;
}

TEST(NetworkTopology, ThatIsFlatOrCannotBeReadSaysNothing) {
  for (const char* text :
       {"", "\n\n", "No topology information available\n",
        "scontrol: error: No topology information available\n",
        "slurm_load_topo error: Unable to contact slurm controller\n", "SwitchName=\n",
        "SwitchName= Nodes=n[1-4]\n", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-\n",
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=\n", "SwitchName=s1 Level=0 Nodes=x[1-4]\n",
        "Nodes=n[1-4] SwitchName=s1\n", "switch s1 n[1-4]", "SwitchName=s\x1b Nodes=n[1-4]\n",
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-99999999]\n"}) {
    EXPECT_EQ(Units(text, kFour), ": - - - -") << text;
  }
  // A line that cannot be read does not keep the others from being read.
  EXPECT_EQ(Units("SwitchName=s1 Nodes=n[\nSwitchName=s2 Nodes=n[2,4]\n", kFour),
            "switch: - s2 - s2");
}

TEST(NetworkTopology, KnowsNodesByTheirWholeNames) {
  EXPECT_EQ(Units("SwitchName=s1 Level=0 Nodes=gpu1.a.example,gpu2.b.example\n"
                  "SwitchName=s2 Level=0 Nodes=gpu1.b.example,gpu2.a.example\n",
                  {"gpu1.a.example", "gpu1.b.example", "gpu2.a.example", "gpu2.b.example", "gpu1"}),
            "switch: s1 s2 s2 s1 -");
}

TEST(NetworkTopology, OfThousandsOfNodesTakesNoTime) {
  constexpr int kNodes = 4096;
  constexpr int kOfASwitch = 16;
  Hosts hosts;
  for (int i = 0; i < kNodes; ++i) hosts.push_back("node" + std::to_string(i));
  // Every 256th node is on the same switch.
  std::string text;
  for (int leaf = 0; leaf < kNodes / kOfASwitch; ++leaf) {
    text += "SwitchName=s" + std::to_string(leaf) + " Level=0 LinkSpeed=1 Nodes=node[";
    for (int i = leaf; i < kNodes; i += kNodes / kOfASwitch) {
      text += (i == leaf ? "" : ",") + std::to_string(i);
    }
    text += "]\n";
  }
  text += "SwitchName=top Level=1 LinkSpeed=1 Nodes=node[0-4095] Switches=s[0-255]\n";
  Allocation allocation = AllocationOf(hosts);
  const auto start = std::chrono::steady_clock::now();
  ReadNetworkTopology(text, &allocation);
  OrderByNetwork("node0", &allocation);
  const auto taken = std::chrono::steady_clock::now() - start;
  for (int i = 0; i < kNodes; ++i) {
    const int leaf = i / kOfASwitch;
    const int number = leaf + i % kOfASwitch * (kNodes / kOfASwitch);
    ASSERT_EQ(allocation.nodes[static_cast<std::size_t>(i)].host, "node" + std::to_string(number));
  }
  EXPECT_LT(taken, std::chrono::seconds(1));
  RecordProperty(
      "microseconds",
      static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(taken).count()));
}

TEST(NetworkTopology, OfAPartitionIsNamed) {
  EXPECT_EQ(TopologyOfPartition("PartitionName=gb200\n   AllowGroups=ALL\n   TRES=cpu=8\n   "
                                "Topology=racks\n   State=UP TotalCPUs=8\n"),
            "racks");
  EXPECT_EQ(TopologyOfPartition("PartitionName=a Topology=(null)\n"), "");
  EXPECT_EQ(TopologyOfPartition("PartitionName=a\n   State=UP\n"), "");
  EXPECT_EQ(TopologyOfPartition("DefaultTopology=x\n"), "");
  EXPECT_EQ(TopologyOfPartition(""), "");
}

TEST(MpiList, IsReadAsEachVersionPrintsIt) {
  // 20.11.4, on standard error.
  EXPECT_THAT(ParseMpiList("srun: MPI types are...\nsrun: pmix\nsrun: pmix_v4\nsrun: none\n"
                           "srun: cray_shasta\nsrun: pmi2\n"),
              ElementsAre("pmix", "pmix_v4", "none", "cray_shasta", "pmi2"));
  // 22.05.8.
  EXPECT_THAT(ParseMpiList("MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                           "specific pmix plugin versions available: pmix_v4\n"),
              ElementsAre("pmix", "none", "cray_shasta", "pmi2", "pmix_v4"));
  // With two versions of PMIx, and 26.05.5, which has none.
  EXPECT_THAT(ParseMpiList("\tnone\nspecific pmix plugin versions available: pmix_v4,pmix_v5\n"),
              ElementsAre("none", "pmix_v4", "pmix_v5"));
  EXPECT_THAT(ParseMpiList("MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n"),
              ElementsAre("none", "pmi2", "cray_shasta"));
}

TEST(MpiList, OfATextOfMessagesIsEmpty) {
  EXPECT_THAT(ParseMpiList("srun: error: plugin_load_from_file: no pmix\n"), IsEmpty());
  EXPECT_THAT(ParseMpiList(""), IsEmpty());
}

TEST(MpiType, IsThePmiItselfOrTheNewestVersionOfPmix) {
  const std::vector<std::string> both = {"pmix_v5", "none", "pmix", "pmi2"};
  EXPECT_EQ(FindMpiType("pmix", both), "pmix");
  EXPECT_EQ(FindMpiType("pmi2", both), "pmi2");
  EXPECT_EQ(FindMpiType("none", both), "none");
  EXPECT_EQ(FindMpiType("pmix", {"none", "pmix_v4", "pmix_v10", "pmix_v5"}), "pmix_v10");
  EXPECT_EQ(FindMpiType("pmix", {"none", "pmi2"}), "");
  EXPECT_EQ(FindMpiType("pmi2", {"none", "pmix_v4"}), "");
  EXPECT_EQ(FindMpiType("none", {}), "");
}

}  // namespace
}  // namespace launcher
