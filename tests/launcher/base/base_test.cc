// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>

#include "launcher/base/environment.h"
#include "launcher/base/messages.h"
#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Environment, SnapshotHoldsValuesWithEqualsSignsAndNewlines) {
  setenv("DDLRUN_TEST_VALUE", "a=b\nc", 1);
  EXPECT_EQ(SnapshotEnvironment().at("DDLRUN_TEST_VALUE"), "a=b\nc");
  unsetenv("DDLRUN_TEST_VALUE");
}

TEST(Environment, StringsAreForExecve) {
  EXPECT_THAT(ToStrings({{"B", "2"}, {"A", ""}}), ElementsAre("A=", "B=2"));
}

TEST(Environment, CanDoWithoutDefaultsOfSlurmTools) {
  EXPECT_THAT(ToStrings(WithoutDefaultsOfSlurmTools({{"SCANCEL_STATE", "PENDING"},
                                                     {"SLURM_CONF", "a"},
                                                     {"SQUEUE_FORMAT", "%i"},
                                                     {"SQUEUED", "b"}})),
              ElementsAre("SLURM_CONF=a", "SQUEUED=b"));
}

TEST(Environment, AnEmptyVariableCountsAsNotSet) {
  const Environment environment = {{"EMPTY", ""}, {"FULL", "x"}};
  EXPECT_EQ(ValueOr(environment, "FULL", "y"), "x");
  EXPECT_EQ(ValueOr(environment, "EMPTY", "y"), "y");
  EXPECT_EQ(ValueOr(environment, "MISSING", "y"), "y");
}

TEST(InheritedVariables, LeaveTheComponentsOfTheJobItself) {
  const Environment of_batch = {{"SLURM_JOB_ID", "12"},
                                {"SLURM_HET_SIZE", "2"},
                                {"SLURM_JOB_ID_HET_GROUP_0", "12"},
                                {"SLURM_JOB_ID_HET_GROUP_1", "13"}};
  EXPECT_EQ(WithoutInheritedComponents(of_batch), of_batch);
  Environment of_a_step = of_batch;
  of_a_step["SLURM_JOB_ID"] = "13";
  EXPECT_EQ(WithoutInheritedComponents(of_a_step), of_a_step);
}

TEST(InheritedVariables, AreThoseOfTheComponentsOfAnotherJob) {
  EXPECT_EQ(
      WithoutInheritedComponents({{"SLURM_JOB_ID", "14"},
                                  {"SLURM_JOB_NODELIST", "n1"},
                                  {"SLURM_HET_SIZE", "2"},
                                  {"SLURM_JOB_ID_HET_GROUP_0", "12"},
                                  {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"},
                                  {"MY_HET_GROUP_1", "x"}}),
      (Environment{{"SLURM_JOB_ID", "14"}, {"SLURM_JOB_NODELIST", "n1"}, {"MY_HET_GROUP_1", "x"}}));
  EXPECT_EQ(WithoutInheritedComponents({}), Environment());
}

const Environment kOfARank = {
    {"DDLRUN_LAUNCHER", "local"},
    {"RANK", "1"},
    {"MASTER_ADDR", "n1"},
    {"DDLRUN_MASTER_ADDR", "n1"},
    {"MASTER_PORT", "61234"},
    {"DDLRUN_MASTER_PORT", "61234"},
    {"OMP_NUM_THREADS", "8"},
    {"DDLRUN_OMP_NUM_THREADS", "8"},
    {"DDL_HOST_PORT", "2200"},
    {"DDL_HOST_LIST", "n1:0,1"},
    {"DDL_OPTIONS", "-mode p:2x1x1x1 "},
    {"DDLRUN_HEARTBEAT", "beats/1"},
    {"NCCL_RAS_ADDR", "localhost:28029"},
    {"TORCH_FR_DUMP_TEMP_FILE", "/logs/ddlrun-recorder."},
    {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/dev/shm/ddlrun.Xy12ab/ddlrun-recorder.1/"},
    {"JAX_COORDINATOR_ADDRESS", "n1:61234"},
    {"PET_NNODES", "2"},
    {"PET_NODE_RANK", "1"},
    {"PET_MASTER_ADDR", "n1"},
    {"PET_MASTER_PORT", "61234"},
    {"MINE", "x"}};

TEST(InheritedVariables, OfAnEnclosingLaunchAreNobodysWish) {
  EXPECT_EQ(WithoutEnclosingLaunch(kOfARank),
            (Environment{{"DDLRUN_LAUNCHER", "local"}, {"RANK", "1"}, {"MINE", "x"}}));
}

TEST(InheritedVariables, StayWhereARankHasSetThemAnew) {
  for (const char* const name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"}) {
    Environment environment = kOfARank;
    environment[name] = "/home/me/trace_";
    EXPECT_EQ(WithoutEnclosingLaunch(environment)[name], "/home/me/trace_");
  }
  for (const auto& [name, value] :
       Environment{{"MASTER_ADDR", "n2"}, {"MASTER_PORT", "29500"}, {"OMP_NUM_THREADS", "1"}}) {
    Environment environment = kOfARank;
    environment[name] = value;
    environment = WithoutEnclosingLaunch(environment);
    EXPECT_EQ(environment[name], value);
    EXPECT_FALSE(environment.contains("DDLRUN_" + name));
  }
}

TEST(InheritedVariables, OfTorchrunAndJaxStayWhereARankHasSetThemAnew) {
  for (const auto& [name, value] : Environment{{"JAX_COORDINATOR_ADDRESS", "n2:61234"},
                                               {"PET_MASTER_ADDR", "n2"},
                                               {"PET_MASTER_PORT", "29500"}}) {
    Environment environment = kOfARank;
    environment[name] = value;
    environment = WithoutEnclosingLaunch(environment);
    EXPECT_EQ(environment[name], value);
    EXPECT_EQ(environment.contains("PET_NODE_RANK"), name.starts_with("PET_"));
  }
}

TEST(InheritedVariables, StayOutsideOfALaunch) {
  const Environment wishes = {{"MASTER_ADDR", "n2"},
                              {"MASTER_PORT", "29500"},
                              {"OMP_NUM_THREADS", "4"},
                              {"DDL_OPTIONS", "-mode r:2x1x1x1 "},
                              {"DDL_HOST_LIST", "n2:0"},
                              {"DDLRUN_HEARTBEAT", "beats"},
                              {"NCCL_RAS_ADDR", "localhost:28029"},
                              {"JAX_COORDINATOR_ADDRESS", "n2:29500"},
                              {"PET_NNODES", "2"},
                              {"PET_MASTER_ADDR", "n2"},
                              {"PET_MASTER_PORT", "29500"}};
  EXPECT_EQ(WithoutEnclosingLaunch(wishes), wishes);
}

TEST(InheritedVariables, OfTorchrunSayNotWhereRanksMeet) {
  EXPECT_EQ(WithoutEnclosingLaunch({{"TORCHELASTIC_RUN_ID", "none"},
                                    {"MASTER_ADDR", "localhost"},
                                    {"MASTER_PORT", "29500"},
                                    {"OMP_NUM_THREADS", "1"}}),
            (Environment{{"TORCHELASTIC_RUN_ID", "none"}, {"OMP_NUM_THREADS", "1"}}));
}

// The rows of the table of codes in doc/reference/exit-codes.md.
std::vector<std::string> DocumentedRows() {
  std::ifstream page(tests::SourceDirectory() + "/doc/reference/exit-codes.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `DDL-")) rows.push_back(line);
  }
  return rows;
}

TEST(Messages, AreDocumentedOneByOne) {
  std::vector<std::string> rows;
  for (const MessageClass& row : MessageTable()) {
    rows.push_back("| `" + CodeOf(row) + "` | " + row.level + " | " + row.meaning + " |");
  }
  EXPECT_EQ(DocumentedRows(), rows);
}

TEST(Messages, HaveOneCodeEachInOrder) {
  const auto before = [](const MessageClass& a, const MessageClass& b) {
    return std::pair(a.family, a.number) < std::pair(b.family, b.number);
  };
  const auto& table = MessageTable();
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].message), i) << "every message has one row";
    EXPECT_TRUE(i == 0 || before(table[i - 1], table[i])) << CodeOf(table[i]);
  }
}

TEST(Messages, LookAsThoseOfIbm) {
  EXPECT_EQ(Coded(Message::kNoConnectionTests, "Not performing connection tests."),
            "[WARN DDL-2-17] Not performing connection tests.");
}

TEST(Messages, GiveARejectionTheNumberOfItsExitCode) {
  for (const int code : {EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_OSERR, EX_CONFIG}) {
    EXPECT_EQ(CodedError(LaunchError(code, "text")),
              "[ERROR DDL-20-" + std::to_string(code) + "] text");
  }
}

TEST(Messages, CallOurOwnMistakesAsIbmDid) {
  EXPECT_EQ(CodedError(LaunchError(EX_SOFTWARE, "text")), "[ERROR DDL-2-0] Unexpected Error: text");
  EXPECT_EQ(CodedUnexpected("text"), "[ERROR DDL-2-0] Unexpected Error: text");
}

TEST(WithoutSecret, HidesValuesThatMayBeOne) {
  const std::pair<const char*, const char*> rows[] = {
      {"HF_TOKEN=abc", "HF_TOKEN=..."},
      {"WANDB_API_KEY=a=b", "WANDB_API_KEY=..."},
      {"key=1", "key=..."},
      {"DB_PASSWORD=x", "DB_PASSWORD=..."},
      {"AWS_SECRET_ACCESS_KEY=x", "AWS_SECRET_ACCESS_KEY=..."},
      {"HTTPS_PROXY=http://user:pw@proxy:3128", "HTTPS_PROXY=..."},
      {"HTTPS_PROXY=http://proxy:3128", "HTTPS_PROXY=http://proxy:3128"},
      {"HTTPS_PROXY=http://proxy:3128/a@b:c", "HTTPS_PROXY=..."},  // rather too much
      {"REPOSITORY=ssh://git@host/x", "REPOSITORY=ssh://git@host/x"},
      {"NCCL_IB_HCA=mlx5_0", "NCCL_IB_HCA=mlx5_0"},
      {"KEYBOARD=us", "KEYBOARD=us"},
      {"PWD=/home", "PWD=/home"},
      {"OLDPWD=/home", "OLDPWD=/home"},
      {"DB_PWD=x", "DB_PWD=..."},
      {"AWS_ACCESS_KEY_ID=x", "AWS_ACCESS_KEY_ID=..."},
      {"KEY_OF_MINE=x", "KEY_OF_MINE=..."},
      {"SENTRY_DSN=x", "SENTRY_DSN=..."},
      {"BASIC_AUTH=x", "BASIC_AUTH=..."},
      {"dsn=x", "dsn=..."},
      {"AUTHOR=x", "AUTHOR=x"},
      {"SENTRY_URL=https://abc@sentry.io/1", "SENTRY_URL=..."},
      {"URL=https://host/a@b", "URL=https://host/a@b"},
      {"DB=Server=x;Password=y", "DB=..."},
      {"OPTIONS=a=b,c=d", "OPTIONS=a=b,c=d"},
      {"--api-key=abc", "--api-key=abc"},  // an option of the program
      {"HF_TOKEN", "HF_TOKEN"},
      {"=x", "=x"}};
  for (const auto& [word, shown] : rows) EXPECT_EQ(WithoutSecret(word), shown);
}

}  // namespace
}  // namespace launcher
