// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"

#include "launcher/launch/master_address.h"
#include "launcher/protocol/rank_variables.h"
#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(ChildEnvironment, ForwardsWhatUsersSet) {
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "NCCL_DEBUG",
                           "UCX_TLS", "OMP_NUM_THREADS", "MY_VARIABLE", "SLURM_JOB_ID", "TMPDIR"}) {
    EXPECT_TRUE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, DoesNotForwardWhatBelongsToThisNodeOrShell) {
  for (const char* name :
       {"HOSTNAME", "PWD", "SHLVL", "_", "SSH_CONNECTION", "XDG_RUNTIME_DIR",
        "CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "SLURM_NODEID", "SLURM_STEP_ID", "SLURMD_NODENAME",
        "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "OMPI_MCA_btl", "RANK", ""}) {
    EXPECT_FALSE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, ForwardsNamesThatNoShellTakes) {
  for (const char* name : {"FOO.BAR", "foo-bar", "BASH_FUNC_x%%", "1X", "A B", "A*", "\xc3\x84"}) {
    EXPECT_TRUE(IsForwarded(name)) << name;
  }
  for (const char* name : {"SSH_A.B", "OMPI_x%%", "SLURM_a.b"}) {
    EXPECT_FALSE(IsForwarded(name)) << name;
  }
}

TEST(ChildEnvironment, KnowsTheIdentityOfAnEnclosingRank) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK",
                           "HOROVOD_LOCAL_RANK", "DDLRUN_RANK_JOB"}) {
    EXPECT_TRUE(IsRankIdentity(name)) << name;
  }
  for (const char* name : {"OMPI_MCA_btl", "PMIX_MCA_gds", "SLURM_JOB_ID", "RANKS"}) {
    EXPECT_FALSE(IsRankIdentity(name)) << name;
  }
}

TEST(ChildEnvironment, OfSrunLacksWhatIsAnOptionAndKeepsTheRest) {
  const Environment all = {{"PATH", "/bin"},
                           {"SLURM_NO_KILL", "1"},
                           {"SLURM_GRES", "gpu:1"},
                           {"SLURM_JOB_ID", "7"},
                           {"SRUN_CPUS_PER_TASK", "2"}};
  EXPECT_EQ(EnvironmentForSrun(all), (Environment{{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}}));
  EXPECT_EQ(EnvironmentForMpirun(all),
            (Environment{{"PATH", "/bin"}, {"SLURM_GRES", "gpu:1"}, {"SLURM_JOB_ID", "7"}}));
}

std::vector<std::string> PageLines() {
  std::ifstream page(tests::SourceDirectory() + "/doc/reference/environment.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  return lines;
}

// The rows of the table under `heading` in doc/reference/environment.md.
std::vector<std::string> DocumentedRows(const std::string& heading) {
  std::vector<std::string> rows;
  bool is_there = false;
  for (const std::string& line : PageLines()) {
    if (line.starts_with("#")) is_there = line == heading;
    if (is_there && line.starts_with("| `")) rows.push_back(line);
  }
  return rows;
}

TEST(VariableTable, IsDocumentedRowByRow) {
  std::vector<std::string> rows;
  for (const VariableGroup& group : VariableTable()) {
    std::string row = "|";
    for (const std::string_view name : group.names) row += " `" + std::string(name) + "`";
    rows.push_back(row + " | " + ExportPolicyText(group.policy) + " | " + group.reason + " |");
  }
  EXPECT_EQ(DocumentedRows("## Variables on their way to the ranks"), rows);
}

TEST(VariableTable, WhatRanksAreGivenIsDocumented) {
  std::string text;
  for (const std::string& row : DocumentedRows("## Environment given to every rank")) text += row;
  for (const RankVariable& variable : kRankVariables) {
    EXPECT_THAT(text, HasSubstr("`" + std::string(variable.name) + "`"));
  }
  for (const RankVariable& variable : kOpenMpiVariables) {
    EXPECT_THAT(text, HasSubstr("`" + std::string(variable.name) + "`"));
  }
}

TEST(VariableTable, HasEachNameOnce) {
  std::set<std::string_view> seen;
  for (const VariableGroup& group : VariableTable()) {
    for (const std::string_view name : group.names) EXPECT_TRUE(seen.insert(name).second) << name;
  }
}

TEST(VariableTable, TheLongestNameCounts) {
  EXPECT_EQ(ExportPolicyOf("PMIX_RANK"), ExportPolicy::kOfAnotherRank);
  EXPECT_EQ(ExportPolicyOf("PMIX_MCA_gds"), ExportPolicy::kOfThisNode);
  EXPECT_EQ(ExportPolicyOf("SLURM_JOB_ID_HET_GROUP_1"), ExportPolicy::kKept);
  EXPECT_EQ(ExportPolicyOf("SLURM_JOB_NODELIST"), ExportPolicy::kOfThisNode);
  EXPECT_EQ(ExportPolicyOf("SLURM_JOB_END_TIME"), ExportPolicy::kKept);
  EXPECT_EQ(ExportPolicyOf("SLURM_CPUS_PER_TASK"), ExportPolicy::kOptionOfSrun);
  EXPECT_EQ(ExportPolicyOf("SLURM_GPUS"), ExportPolicy::kGpusOfSrun);
  EXPECT_EQ(ExportPolicyOf("SLURM_PROCID"), ExportPolicy::kOfAnotherRank);
  EXPECT_EQ(ExportPolicyOf("OMPI_MCA_orte_hnp_uri"), ExportPolicy::kOfAnotherRank);
  EXPECT_EQ(ExportPolicyOf("OMPI_MCA_orte_tmpdir_base"), ExportPolicy::kOfThisNode)
      << "a wish of the user";
  EXPECT_EQ(ExportPolicyOf("TORCHELASTIC_USE_AGENT_STORE"), ExportPolicy::kOfAnotherRank);
  EXPECT_EQ(ExportPolicyOf("MY_VARIABLE"), ExportPolicy::kKept);
  EXPECT_EQ(ExportPolicyOf(""), ExportPolicy::kKept);
}

TEST(MasterAddress, IsAHostOfTheJobByAnyOfItsNames) {
  for (const char* address : {"n1", "N2", "n2.site.example", "n1.site.example"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1", "n2"}), "") << address;
  }
  EXPECT_EQ(MasterAddressProblem("n1", {"n1.site.example"}), "");
}

TEST(MasterAddress, OfAnotherJobIsSaidWithWhatRanksWouldBeTold) {
  for (const char* address : {"node9", "n3", "n11", "n1x.site.example"}) {
    EXPECT_THAT(MasterAddressProblem(address, {"n1", "n2"}),
                AllOf(HasSubstr(std::string("MASTER_ADDR=") + address + " is no host of this job"),
                      HasSubstr("tells them n1")))
        << address;
  }
  EXPECT_THAT(MasterAddressProblem("n1.other.example", {"n1.site.example"}),
              HasSubstr("is no host of this job"));
}

TEST(MasterAddress, OfEachNodeItselfIsNoneForSeveral) {
  for (const char* address :
       {"localhost", "localhost.localdomain", "127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1"}), "") << address;
    EXPECT_THAT(MasterAddressProblem(address, {"n1", "n2"}), HasSubstr("another machine on each"))
        << address;
  }
}

TEST(MasterAddress, InNumbersIsNotLookedUp) {
  for (const char* address : {"10.0.0.7", "192.0.2.1", "fd00::2"}) {
    EXPECT_EQ(MasterAddressProblem(address, {"n1", "n2"}), "") << address;
  }
}

TEST(MasterPort, IsAboveTheEphemeralRangeAndDependsOnTheSeed) {
  for (const unsigned long seed : {0UL, 4535UL, 4536UL, 123456789UL}) {
    EXPECT_GE(ChooseMasterPort(seed), 61000);
    EXPECT_LE(ChooseMasterPort(seed), 65535);
  }
  EXPECT_NE(ChooseMasterPort(1000), ChooseMasterPort(2000));
}

}  // namespace
}  // namespace launcher
