// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/node_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/plan/planner.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

constexpr char kTwoBlocks[] = "BlockName=b1 Nodes=n[1,3]\nBlockName=b2 Nodes=n[2,4]\n";
constexpr char kTwoSwitches[] = "SwitchName=s1 Nodes=n[1,3]\nSwitchName=s2 Nodes=n[2,4]\n";

class NodeOrder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "order." + std::to_string(getpid());
    fs::create_directory(folder_);
    Answer(kTwoSwitches);
    environment_ = {{"PATH", folder_.string()},
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
  void TearDown() override { fs::remove_all(folder_); }

  // scontrol prints `text`.
  void Answer(const std::string& text) const {
    std::ofstream(folder_ / "answer") << text;
    std::ofstream(folder_ / "scontrol")
        << "#!/bin/sh\nwhile read -r line; do echo \"$line\"; done < '" << folder_.string()
        << "/answer'\n";
    fs::permissions(folder_ / "scontrol", fs::perms::owner_all);
  }

  // The hosts in the order of ranks; sets asked_ and warnings_.
  std::vector<std::string> Hosts() {
    Allocation allocation = allocation_;
    const auto question = AskForNetwork(settings_, allocation, environment_);
    asked_ = question != nullptr;
    OrderNodes(settings_, environment_, question.get(), &allocation);
    Plan plan = MakePlan(allocation, {}, {});
    plan.warnings.clear();
    WarnOfOrder(settings_, environment_, question.get(), &plan);
    warnings_ = plan.warnings;
    std::vector<std::string> hosts;
    for (const NodePlan& node : plan.nodes) hosts.push_back(node.host);
    return hosts;
  }

  fs::path folder_;
  Environment environment_;
  Settings settings_;
  Allocation allocation_;
  bool asked_ = false;
  std::vector<std::string> warnings_;
};

TEST_F(NodeOrder, IsThatOfTheTopologyWhereSlurmHasOne) {
  for (const char* order : {"auto", "topology", "cyclic"}) {
    settings_.rank_order = order;
    EXPECT_THAT(Hosts(), ElementsAre("n1", "n3", "n2", "n4")) << order;
    EXPECT_TRUE(asked_);
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
    EXPECT_FALSE(asked_) << why;
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
  EXPECT_TRUE(asked_);
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
  EXPECT_FALSE(asked_);
  environment_["SLURM_JOB_SEGMENT_SIZE"] = "2";
  Answer(kTwoBlocks);
  EXPECT_THAT(Hosts(), ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_TRUE(asked_);
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
  EXPECT_TRUE((Hosts(), asked_));
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
  fs::remove(folder_ / "scontrol");
  Hosts();
  EXPECT_EQ(warnings_.size(), 1U);
}

}  // namespace
}  // namespace launcher
