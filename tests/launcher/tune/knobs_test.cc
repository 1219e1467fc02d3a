// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> LabelsOf(const std::vector<Knob>& knobs, const std::string& title) {
  std::vector<std::string> labels;
  for (const Knob& knob : knobs) {
    if (knob.title != title) continue;
    for (const Choice& choice : knob.choices) labels.push_back(choice.label);
  }
  return labels;
}

std::vector<std::string> TitlesOf(const std::vector<Knob>& knobs) {
  std::vector<std::string> titles;
  for (const Knob& knob : knobs) titles.push_back(knob.title);
  return titles;
}

Settings SettingsOf(const std::string& site) {
  return MergeSettings(ParseOptions({}), ParseSiteConfig(site, "site.yaml"), {});
}

std::vector<NodeFacts> WithNetworks() {
  MadeUpJob job(2);
  for (NodeFacts& facts : job.facts) {
    facts.ports.clear();
    facts.details = {{"network eth0", "up, 1000 Mbit/s"},
                     {"network docker0", "up, virtual"},
                     {"network ib0", "up, 100000 Mbit/s"}};
  }
  job.facts[0].details.push_back({"network eth7", "up, virtual"});
  job.facts[1].details.push_back({"network eth8", "down, virtual"});
  return job.facts;
}

TEST(Rails, AreThoseOfAllNodes) {
  const Rails networks = RailsOf(WithNetworks());
  EXPECT_THAT(networks.networks, ElementsAre("eth0", "ib0"));
  EXPECT_THAT(networks.ports, IsEmpty());
  MadeUpJob job(3);
  EXPECT_THAT(RailsOf(job.facts).ports, ElementsAre("mlx5_0:1", "mlx5_3:1"));
  job.facts[1].ports[0].state = "DOWN";
  EXPECT_THAT(RailsOf(job.facts).ports, ElementsAre("mlx5_3:1"));
}

TEST(Rails, OfInfinibandGoBeforeNetworks) {
  const std::vector<Choice> choices = RailChoices({{"mlx5_0:1", "mlx5_3:1"}, {"eth0"}}, true);
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[2].label, "mlx5_0:1,mlx5_3:1");
  EXPECT_EQ(choices[2].change.variables.at("NCCL_IB_HCA"), "=mlx5_0:1,mlx5_3:1");
  EXPECT_EQ(RailChoices({{"mlx5_0:1"}, {}}, false)[0].change.variables.at("UCX_NET_DEVICES"),
            "mlx5_0:1");
}

TEST(Knobs, OfMpiOverTcp) {
  const std::vector<Knob> knobs =
      MakeKnobs({{}, {"eth0", "ib0"}}, {false, true, 2}, SettingsOf("bind: auto"));
  EXPECT_THAT(TitlesOf(knobs), ElementsAre("network", "MPI's way", "cores", "order of ranks"));
  EXPECT_THAT(LabelsOf(knobs, "network"), ElementsAre("eth0", "ib0"));
  EXPECT_THAT(LabelsOf(knobs, "MPI's way"), ElementsAre("OMPI_MCA_pml=ucx", "OMPI_MCA_pml=ob1"));
  EXPECT_EQ(knobs[1].choices[0].change.variables.at("OMPI_MCA_pml_ucx_tls"), "any");
  EXPECT_EQ(knobs[1].choices[1].change.variables.size(), 1U);
  const std::vector<Knob> by_ports =
      MakeKnobs({{"mlx5_0:1"}, {}}, {false, true, 2}, SettingsOf(""));
  EXPECT_EQ(by_ports[0].choices[0].change.variables.size(), 1U);
  // What the job has now is no choice.
  EXPECT_THAT(LabelsOf(knobs, "cores"), ElementsAre("bind: none"));
  EXPECT_THAT(LabelsOf(knobs, "order of ranks"), ElementsAre("rank_order: cyclic"));
}

TEST(Knobs, OfNcclAreItsOwn) {
  const std::vector<Knob> knobs =
      MakeKnobs({{"mlx5_0:1"}, {"eth0"}}, {true, true, 1}, SettingsOf("bind: none"));
  EXPECT_THAT(TitlesOf(knobs), ElementsAre("GPUDirect", "algorithm", "channels", "cores"));
  EXPECT_THAT(LabelsOf(knobs, "cores"), ElementsAre("bind: auto"));
  EXPECT_THAT(TitlesOf(MakeKnobs({{}, {"eth0"}}, {true, true, 1}, SettingsOf(""))),
              ElementsAre("algorithm", "channels", "cores"));
}

TEST(Knobs, LeaveOutWhatTheSiteHas) {
  const Settings settings = SettingsOf(
      "environment: {UCX_NET_DEVICES: eth0, OMPI_MCA_btl_tcp_if_include: eth0, OMPI_MCA_pml: ob1}");
  const std::vector<Knob> knobs = MakeKnobs({{}, {"eth0", "ib0"}}, {false, true, 1}, settings);
  EXPECT_THAT(LabelsOf(knobs, "network"), ElementsAre("ib0"));
  EXPECT_THAT(LabelsOf(knobs, "MPI's way"), ElementsAre("OMPI_MCA_pml=ucx"));
}

TEST(Change, GoesToDdlrunAsOptions) {
  const Change change =
      Together({{{"bind", "none"}}, {{"A", "1"}}}, {{{"rank_order", "cyclic"}}, {{"A", "2"}}});
  EXPECT_THAT(OptionsFor(change), ElementsAre("--bind=none", "--rank-order=cyclic", "-x", "A=2"));
}

}  // namespace
}  // namespace launcher
