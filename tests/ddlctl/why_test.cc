// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/why.h"

#include <sysexits.h>

#include <nlohmann/json.hpp>

#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using launcher::HangCause;
using launcher::HangingJob;
using launcher::JobStatus;
using launcher::NodeFacts;
using trainer::Error;
using State = JobStatus::RankState;

// Rank 0 on n1, which also has the status of a job of `ranks`.
NodeFacts FirstNode(const std::vector<JobStatus::Rank>& ranks) {
  launcher::ProcessFacts process;
  process.pid = 7;
  process.state = 'S';
  process.call = "recvfrom";
  JobStatus status;
  status.host = "n1";
  status.ranks = ranks;
  NodeFacts node;
  node.host = "n1";
  node.directory = "/tmp/ddlrun.x";
  node.status = FormatJobStatus(status);
  node.ranks = {{.rank = 0, .world = 3, .host = "n1", .memory_kills = -1, .processes = {process}}};
  return node;
}

TEST(HangingJobOf, KnowsFromTheStatusWhoHasEndedAndWhoIsSilent) {
  const std::vector<JobStatus::Rank> ranks = {
      {"n1", State::kRunning, 0, {}}, {"n2", State::kRunning, 0, {}}, {"n3", State::kEnded, 3, {}}};
  HangingJob job = HangingJobOf({FirstNode(ranks)}, 3);
  EXPECT_THAT(job.hosts, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(job.ended, ElementsAre(Pair(2, 3)));
  EXPECT_THAT(job.silent_nodes, ElementsAre("n2", "n3"));
  // Nobody has asked the others.
  EXPECT_THAT(HangingJobOf({FirstNode(ranks)}, 1).silent_nodes, IsEmpty());
  NodeFacts second;
  second.host = "n2";
  job = HangingJobOf({FirstNode(ranks), second}, 3);
  EXPECT_THAT(job.silent_nodes, ElementsAre("n3"));
  EXPECT_EQ(
      launcher::Diagnose(job).line,
      "perhaps rank 2 (n3): has ended with exit code 3; 1 other rank waits (recvfrom); 1 other "
      "rank does something else (-v)");
}

TEST(HangingJobOf, LeavesOutAStatusOfOtherRanks) {
  const HangingJob job = HangingJobOf({FirstNode({{"n1", State::kEnded, 1, {}}})}, 2);
  EXPECT_THAT(job.hosts, IsEmpty());
  EXPECT_THAT(job.ended, IsEmpty());
  NodeFacts node = FirstNode({});
  node.status = "nothing";
  EXPECT_THAT(HangingJobOf({node}, 1).hosts, IsEmpty());
}

TEST(FactsCommand, AsksForNothingThatRanksHold) {
  EXPECT_THAT(FactsCommand("/bin/srun", "12", 3, "/opt/ddlctl", "/tmp/ddlrun.x"),
              ElementsAre("/bin/srun", "--overlap", "--jobid=12", "--nodes=3", "--ntasks=3",
                          "--ntasks-per-node=1", "--mem=0", "--gres=none", "--mpi=none", "--quiet",
                          "--input=none", "/opt/ddlctl", "why", "--facts", "--srun=never",
                          "/tmp/ddlrun.x"));
}

TEST(WhyJson, HasTheLineAndAllFacts) {
  const HangingJob job = HangingJobOf({FirstNode({})}, 1);
  launcher::Diagnosis diagnosis;
  diagnosis.cause = HangCause::kStopped;
  diagnosis.ranks = {3, 4};
  diagnosis.host = "n2";
  diagnosis.pid = 9;
  diagnosis.is_sure = true;
  diagnosis.line = "rank 3 ...";
  auto json = nlohmann::json::parse(WhyJson(job, diagnosis));
  EXPECT_EQ(json["line"], "rank 3 ...");
  EXPECT_EQ(json["cause"], "stopped");
  EXPECT_EQ(json["is_sure"], true);
  EXPECT_EQ(json["ranks"], (std::vector<int>{3, 4}));
  EXPECT_EQ(json["host"], "n2");
  EXPECT_EQ(json["pid"], 9);
  EXPECT_EQ(json["nodes"][0]["ranks"][0]["processes"][0]["call"], "recvfrom");
  json = nlohmann::json::parse(WhyJson(job, {}));
  EXPECT_TRUE(json["host"].is_null());
  EXPECT_TRUE(json["pid"].is_null());
}

TEST(ShowWhy, SaysWhereThereIsNothing) {
  const TemporaryDirectory directory;
  const auto message = [](const std::string& name) {
    return tests::Rejection<Error>(EX_UNAVAILABLE, [&] {
      ShowWhy({.name = name, .host = "here", .environment = {}, .print = [](const auto&) {}});
    });
  };
  EXPECT_THAT(message(directory.path().string()), HasSubstr(" is no run directory of a ddlrun"));
  EXPECT_THAT(message(directory / "none"), HasSubstr(" is no run directory of a ddlrun"));
  // No srun, and nobody in such a job.
  EXPECT_EQ(message("999999999"), "no rank of 999999999 that runs was found");
}

}  // namespace
}  // namespace ddlctl
