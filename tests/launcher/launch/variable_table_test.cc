// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"
#include "launcher/protocol/rank_variables.h"
#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

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
    EXPECT_THAT(text, testing::HasSubstr("`" + std::string(variable.name) + "`"));
  }
  for (const RankVariable& variable : kOpenMpiVariables) {
    EXPECT_THAT(text, testing::HasSubstr("`" + std::string(variable.name) + "`"));
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

}  // namespace
}  // namespace launcher
