// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/slurm_for_mpirun.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

using Variables = std::map<std::string, std::string>;

Variables OfOrte(const std::vector<HostSlots>& hosts, const Environment& environment) {
  return SlurmVariablesForMpirun(hosts, environment, MpiRuntime::kOrte);
}

TEST(SlurmForMpirun, WritesWhatSlurmWouldForSoManyTasks) {
  EXPECT_EQ(OfOrte({{"n1", 4}}, {}),
            (Variables{{"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "4"}}));
  EXPECT_EQ(OfOrte({{"n1", 4}, {"n2", 4}, {"n3", 2}, {"n5", 4}}, {}),
            (Variables{{"SLURM_NODELIST", "n[1-3,5]"}, {"SLURM_TASKS_PER_NODE", "4(x2),2,4"}}));
}

TEST(SlurmForMpirun, GivesDaemonsTheGpusOfTheirNodes) {
  const std::vector<HostSlots> hosts = {{"n1", 4}, {"n2", 2}};
  EXPECT_EQ(OfOrte(hosts, {{"SLURM_GPUS", "v100:6"}, {"SLURM_GPUS_ON_NODE", "4"}}),
            (Variables{{"OMPI_MCA_plm_slurm_args", "--gpus=2"},
                       {"SLURM_NODELIST", "n[1-2]"},
                       {"SLURM_TASKS_PER_NODE", "4,2"}}));
  EXPECT_EQ(
      OfOrte(hosts,
             {{"SLURM_GPUS_PER_TASK", "2"}, {"SLURM_NTASKS", "3"}, {"SLURM_GPUS_ON_NODE", "4"}}),
      (Variables{{"OMPI_MCA_plm_slurm_args", "--gpus=2"},
                 {"SLURM_NODELIST", "n[1-2]"},
                 {"SLURM_TASKS_PER_NODE", "4,2"}}));
}

TEST(SlurmForMpirun, GivesThemToTheSrunOfPrrteByAnOption) {
  const std::vector<HostSlots> hosts = {{"n1", 4}, {"n2", 2}};
  const Environment environment = {{"SLURM_GPUS", "6"}, {"SLURM_GPUS_ON_NODE", "4"}};
  EXPECT_EQ(SlurmVariablesForMpirun(hosts, environment, MpiRuntime::kPrrte),
            (Variables{{"SLURM_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "4,2"}}));
  EXPECT_EQ(SlurmOptionsForMpirun(environment, MpiRuntime::kPrrte),
            (std::vector<std::string>{"--prtemca", "plm_slurm_args", "--gpus=2"}));
  EXPECT_TRUE(SlurmOptionsForMpirun(environment, MpiRuntime::kOrte).empty());
  const Environment none_elsewhere = {{"SLURM_GPUS", "4"}, {"SLURM_GPUS_ON_NODE", "4"}};
  EXPECT_TRUE(SlurmOptionsForMpirun(none_elsewhere, MpiRuntime::kPrrte).empty());
}

TEST(SlurmForMpirun, AddsToWhatSlurmItselfSays) {
  const Environment environment = {{"SLURM_TRES_PER_TASK", "gres/gpu=1"},
                                   {"SLURM_NTASKS", "6"},
                                   {"SLURM_GPUS_ON_NODE", "4"},
                                   {"OMPI_MCA_plm_slurm_args", "--external-launcher"}};
  const std::vector<HostSlots> hosts = {{"n1", 4}, {"n2", 2}};
  Variables expected = {{"SLURM_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "4,2"}};
  EXPECT_EQ(SlurmVariablesForMpirun(hosts, environment, MpiRuntime::kPrrte), expected);
  expected["OMPI_MCA_plm_slurm_args"] = "--external-launcher --gpus=2";
  EXPECT_EQ(OfOrte(hosts, environment), expected);
}

TEST(SlurmForMpirun, HidesTheGpusOfATaskFromTheSrunOfItsDaemons) {
  Environment environment = {{"SLURM_TRES_PER_TASK", "gres/gpu=1"},
                             {"SLURM_TRES_BIND", "gres/gpu:per_task:1"},
                             {"SLURM_NTASKS", "6"},
                             {"SLURM_GPUS_ON_NODE", "4"}};
  const std::vector<std::string> names = {"SLURM_TRES_PER_TASK", "SLURM_TRES_BIND"};
  EXPECT_EQ(SlurmVariablesAgainstMpirun(environment, MpiRuntime::kPrrte), names);
  EXPECT_EQ(SlurmVariablesAgainstMpirun(environment, MpiRuntime::kOrte), names);
  environment["OMPI_MCA_plm_slurm_args"] = "--exact";  // the user's
  EXPECT_TRUE(SlurmVariablesAgainstMpirun(environment, MpiRuntime::kOrte).empty());
  EXPECT_EQ(SlurmVariablesAgainstMpirun(environment, MpiRuntime::kPrrte), names);
  environment["SLURM_NTASKS"] = "4";  // all here
  EXPECT_TRUE(SlurmVariablesAgainstMpirun(environment, MpiRuntime::kPrrte).empty());
  EXPECT_EQ(SlurmVariablesAgainstMpirun(
                {{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_NTASKS", "3"}, {"SLURM_GPUS_ON_NODE", "2"}},
                MpiRuntime::kOrte),
            std::vector<std::string>{"SLURM_GPUS_PER_TASK"});
}

TEST(SlurmForMpirun, LeavesSrunAloneWhereGpusAreGivenByNodeOrHere) {
  const Variables plain = {{"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "4"}};
  EXPECT_EQ(OfOrte({{"n1", 4}}, {{"SLURM_GPUS_PER_NODE", "4"}, {"SLURM_GPUS_ON_NODE", "4"}}),
            plain);
  EXPECT_EQ(OfOrte({{"n1", 4}}, {{"SLURM_GPUS", "4"}, {"SLURM_GPUS_ON_NODE", "4"}}), plain);
  EXPECT_EQ(OfOrte({{"n1", 4}}, {{"SLURM_GPUS", "8"},
                                 {"SLURM_GPUS_ON_NODE", "4"},
                                 {"OMPI_MCA_plm_slurm_args", "--overlap"}}),
            plain);
}

}  // namespace
}  // namespace launcher
