// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/program/launch_environment.h"

namespace trainer {
namespace {

EnvironmentLookup LookupIn(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(ReadRank, RefusesWhatContradictsItself) {
  EXPECT_EQ(ReadRank(LookupIn({})).world_size, 1);
  try {
    ReadRank(LookupIn({{"RANK", "2"}, {"WORLD_SIZE", "2"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_NE(std::string(error.what()).find("RANK=2"), std::string::npos) << error.what();
  }
}

TEST(StartedTasks, AreThoseOfMpirunOrOfTheStep) {
  EXPECT_EQ(StartedTasks(LookupIn({})), 0);
  EXPECT_EQ(StartedTasks(LookupIn({{"OMPI_COMM_WORLD_SIZE", "4"}})), 4);
  EXPECT_EQ(StartedTasks(LookupIn({{"SLURM_STEP_NUM_TASKS", "8"}})), 8);
  EXPECT_EQ(StartedTasks(LookupIn({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "8"}})),
            4);
}

TEST(MakeCommOptions, LeavesOutHanUnlessTheUserAsksForComponents) {
  const auto leaves_out = [](std::map<std::string, std::string> variables) {
    return MakeCommOptions({}, LookupIn(std::move(variables)), nullptr).leaves_out_han;
  };
  EXPECT_TRUE(leaves_out({}));
  EXPECT_TRUE(leaves_out({{"OMPI_MCA_coll_tuned_priority", "40"}}));
  EXPECT_FALSE(leaves_out({{"OMPI_MCA_coll_han_priority", "35"}}));
  EXPECT_FALSE(leaves_out({{"OMPI_MCA_coll", "han,tuned,basic,libnbc"}}));
}

TEST(SliceOfGpu, IsTheOneThatCudaShows) {
  const auto of = [](const std::string& visible) {
    return SliceOfGpu(LookupIn({{"CUDA_VISIBLE_DEVICES", visible}}));
  };
  EXPECT_EQ(of("MIG-4a2b,MIG-77c1"), "MIG-4a2b");
  EXPECT_EQ(of("MIG-GPU-8e6f/1/0"), "MIG-GPU-8e6f/1/0");
  for (const char* whole : {"", "0,1", "GPU-8e6f", "0,MIG-4a2b"}) EXPECT_EQ(of(whole), "") << whole;
  EXPECT_EQ(SliceOfGpu(LookupIn({})), "");
}

}  // namespace
}  // namespace trainer
