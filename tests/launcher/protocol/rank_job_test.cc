// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_job.h"

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "launcher/base/error.h"
#include "launcher/protocol/local_rank_job.h"
#include "launcher/protocol/plan_encoding.h"
#include "tests/launcher/protocol/fake_plans.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

RankJob Example(const LaunchPlan& plan) {
  RankJob job;
  job.launcher = "mpirun";
  job.event_key = "0123456789abcdef";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.log_directory = "/home/x/logs";
  job.directory = "/home/x/a b";
  job.planned_for = "online=0-3";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  job.grace_ms = 4500;
  job.frames = true;
  job.shown_ranks = "0,2-3";
  job.wraps = {{"0-1", {"a b", ":", "%r-%r", ""}}, {"all", {"nice"}}, {"1,3", {"x%ry"}}};
  job.plan = plan;
  return job;
}

// No two nodes and no two ranks in a row have anything to do with each other.
LaunchPlan PlanWithoutOrder(int nodes, int ranks_per_node) {
  std::vector<int> order;
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) order.push_back(rank * 7 % nodes);
  LaunchPlan plan = PlanOf(order);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].host = "g" + std::to_string(i * 7919 % 10007) + "-ib0";
  }
  return plan;
}

TEST(RankJob, DecodesWhatWasEncoded) {
  const RankJob job = DecodeRankJob(EncodeRankJob(Example(EvenPlan(2, 2))));
  EXPECT_EQ(job.launcher, "mpirun");
  EXPECT_EQ(job.event_key, "0123456789abcdef");
  EXPECT_TRUE(job.bind);
  EXPECT_EQ(job.run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_EQ(job.log_directory, "/home/x/logs");
  EXPECT_EQ(job.directory, "/home/x/a b");
  EXPECT_EQ(job.planned_for, "online=0-3");
  EXPECT_EQ(job.master_address, "n1");
  EXPECT_EQ(job.master_port, 61234);
  EXPECT_EQ(job.restart_count, 3);
  EXPECT_EQ(job.grace_ms, 4500);
  EXPECT_TRUE(job.frames);
  EXPECT_EQ(job.shown_ranks, "0,2-3");
  ASSERT_EQ(job.wraps.size(), 3U);
  EXPECT_EQ(job.wraps[0].ranks, "0-1");
  EXPECT_THAT(job.wraps[0].words, ElementsAre("a b", ":", "%r-%r", ""));
  ASSERT_EQ(job.plan.ranks.size(), 4U);
  EXPECT_EQ(job.plan.ranks[3].node, 1);
  EXPECT_EQ(job.plan.ranks[3].gpu, 1);
  EXPECT_EQ(job.plan.ranks[3].cores.size(), 2U);
  EXPECT_THAT(job.plan.ranks[3].cpus, ElementsAre(2, 3, 42, 43));
  EXPECT_THAT(job.plan.nodes[1].ranks, ElementsAre(2, 3));
}

TEST(RankJob, SaysWhatTheShimLeavesOut) {
  RankJob job = Example(EvenPlan(1, 1));
  EXPECT_TRUE(DecodeRankJob(EncodeRankJob(job)).check);
  job.bind = job.check = false;
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).bind);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).check);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).pause);
  EXPECT_EQ(DecodeRankJob(EncodeRankJob(job)).pmi, "");
  job.pause = true;
  job.pmi = "pmi2";
  EXPECT_TRUE(DecodeRankJob(EncodeRankJob(job)).pause);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).check);
  EXPECT_EQ(DecodeRankJob(EncodeRankJob(job)).pmi, "pmi2");
}

TEST(RankJob, OfFourThousandEqualNodesIsOneShortVariable) {
  const std::string text = EncodeRankJob(Example(EvenPlan(4096, 8)));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_LT(text.size(), 1000U);
  EXPECT_THAT(RankJobVariables(text), ElementsAre(Pair(kRankJobVariable, text)));
}

TEST(RankJob, OfFourThousandNodesWithoutAnyOrderFitsIntoAFewVariables) {
  const LaunchPlan plan = PlanWithoutOrder(4096, 8);
  const std::string text = EncodeRankJob(Example(plan));
  const std::map<std::string, std::string> variables = RankJobVariables(text);
  EXPECT_EQ(variables.size(), 3U);
  for (const auto& [name, value] : variables) {
    EXPECT_LT(name.size() + 1 + value.size() + 1, 131072U);  // MAX_ARG_STRLEN
  }
  const LaunchPlan again = DecodeRankJob(RankJobText(variables)).plan;
  ASSERT_EQ(again.ranks.size(), 32768U);
  EXPECT_EQ(again.ranks[32767].node, plan.ranks[32767].node);
  EXPECT_EQ(again.ranks[32767].local_rank, 7);
  EXPECT_EQ(again.nodes[4095].host, plan.nodes[4095].host);
}

TEST(RankJob, RejectsAPlanThatNoVariablesCanHold) {
  EXPECT_THROW(EncodeRankJob(Example(PlanWithoutOrder(16384, 8))), LaunchError);
}

TEST(RankJob, WithoutOneOfItsVariablesIsNone) {
  std::map<std::string, std::string> variables =
      RankJobVariables(EncodeRankJob(Example(PlanWithoutOrder(4096, 8))));
  variables.erase("DDLRUN_RANK_JOB_2");
  EXPECT_THROW(DecodeRankJob(RankJobText(variables)), LaunchError);
  EXPECT_EQ(RankJobText({{"HOME", "/"}}), "");
}

// Of an upgrade while a job runs, the next start has the shims of the new version.
TEST(RankJob, OfAnotherVersionIsRejectedAndNamed) {
  const std::string good = EncodeRankJob(Example(EvenPlan(1, 1)));
  const std::string own = RankJobVersion();
  const std::string rest = good.substr(own.size());
  ASSERT_EQ(good, own + rest);
  ASSERT_THAT(own, MatchesRegex("ddlrun=[0-9]+[.][0-9]+[.][0-9]+"));
  const std::pair<std::string, std::string> texts[] = {
      {"ddlrun=0.1.0" + rest, "but the job was started by ddlrun 0.1.0: "},
      {own + "0" + rest, "but the job was started by ddlrun " + own.substr(7) + "0: "},
      {own.substr(0, own.size() - 1) + rest, "but the job was started by ddlrun "},
      {rest.substr(1), "but the job was started by an older version: "},
  };
  const auto local = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(good.c_str(), 0, "", local.get()));
  for (const auto& [text, words] : texts) {
    EXPECT_FALSE(ReadLocalRankJob(text.c_str(), 0, "", local.get())) << text;
    try {
      DecodeRankJob(text);
      FAIL() << text;
    } catch (const LaunchError& error) {
      EXPECT_EQ(error.exit_code(), EX_CONFIG);
      EXPECT_THAT(error.what(), StartsWith("this node has ddlrun " + own.substr(7) + ", " + words));
    }
  }
}

TEST(RankJob, RejectsATextItDidNotWrite) {
  const std::string good = EncodeRankJob(Example(EvenPlan(1, 1)));
  std::string escape = good;
  escape.replace(escape.find("%25"), 3, "%2x");
  for (const std::string& text : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                  good.substr(0, good.rfind(':')), good + " 0", escape}) {
    EXPECT_THROW(DecodeRankJob(text), LaunchError) << text;
  }
}

RankJob Example() {
  RankJob job;
  job.launcher = "srun";
  job.pmi = "none";
  job.event_key = "0123456789abcdef";
  job.pause = true;
  job.check = false;
  job.planned_for = "allowed=f online=0-3";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.directory = "/home/x/-a b";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  job.grace_ms = 4500;
  job.plan.cpus_per_rank = 2;
  job.plan.cpus_are_cores = true;
  for (int i = 0; i < 5; ++i) {  // 0 1 | 2 3 4
    if (i == 0 || i == 2) job.plan.nodes.emplace_back().host = "gpu-" + std::to_string(i);
    job.plan.nodes.back().gpus = i;
    RankPlacement rank;
    rank.rank = i;
    rank.node = static_cast<int>(job.plan.nodes.size()) - 1;
    rank.local_rank = i < 2 ? i : i - 2;
    rank.gpu = i;
    rank.numa_os_index = i == 4 ? 8 : -1;
    if (i == 4) rank.cores = {0, 1};
    if (i == 4) rank.cpus = {0, 1, 2, 8};
    job.plan.nodes.back().ranks.push_back(i);
    job.plan.ranks.push_back(rank);
  }
  return job;
}

TEST(LocalRankJob, IsWhatDdlrunWroteForThisRank) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(text.c_str(), 4, "", own.get()));
  EXPECT_STREQ(own->launcher, "srun");
  EXPECT_STREQ(own->pmi, "none");
  EXPECT_STREQ(own->event_key, "0123456789abcdef");
  EXPECT_TRUE(own->pause);
  EXPECT_TRUE(own->bind);
  EXPECT_FALSE(own->check);
  EXPECT_STREQ(own->planned_for, "allowed=f online=0-3");
  EXPECT_STREQ(own->run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_STREQ(own->log_directory, "");
  EXPECT_STREQ(own->directory, "/home/x/-a b");
  EXPECT_STREQ(own->master_address, "n1");
  EXPECT_EQ(own->master_port, 61234);
  EXPECT_EQ(own->restart_count, 3);
  EXPECT_EQ(own->grace_ms, 4500);
  EXPECT_EQ(own->cpus_per_rank, 2);
  EXPECT_EQ(own->world_size, 5);
  EXPECT_EQ(own->node_count, 2);
  EXPECT_EQ(own->rank, 4);
  EXPECT_EQ(own->node, 1);
  EXPECT_EQ(own->local_rank, 2);
  EXPECT_EQ(own->local_world_size, 3);
  EXPECT_STREQ(own->host, "gpu-2");
  EXPECT_EQ(own->gpus, 4);
  EXPECT_EQ(own->numa_os_index, 8);
  EXPECT_EQ(own->cores, 2);
  EXPECT_TRUE(std::string(own->cpus).starts_with("0-2,8 "));
}

TEST(LocalRankJob, OfTheFirstRankIsFoundToo) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(text.c_str(), 0, "", own.get()));
  EXPECT_STREQ(own->host, "gpu-0");
  EXPECT_EQ(own->local_world_size, 2);
  EXPECT_EQ(std::string(own->cpus).substr(0, 2), "- ");
}

TEST(LocalRankJob, HasTheWrapsOfItsRank) {
  const std::pair<int, std::string> cases[] = {
      {0, "a b|:|0-0||nice|train|1|"},
      {1, "a b|:|1-1||nice|x1y|train|1|"},
      {2, "nice|train|1|"},
      {3, "nice|x3y|train|1|"},
      {4, "nice|train|1|"},
  };
  RankJob job = Example();
  job.wraps = {{"0-1", {"a b", ":", "%r-%r", ""}}, {"all", {"nice"}}, {"1,3", {"x%ry"}}};
  const std::string text = EncodeRankJob(job);
  for (const auto& [rank, words] : cases) {
    const auto own = std::make_unique<LocalRankJob>();
    ASSERT_TRUE(ReadLocalRankJob(text.c_str(), rank, "", own.get()));
    std::string train = "train", one = "1";
    char* program[] = {train.data(), one.data(), nullptr};
    std::string all;
    char** const under_wraps = WithWraps(*own, program);
    for (char** word = under_wraps; *word != nullptr; ++word) {
      all += std::string(*word) + "|";
      if (*word != train.data() && *word != one.data()) std::free(*word);
    }
    if (under_wraps != program) std::free(under_wraps);
    EXPECT_EQ(all, words);
  }
}

TEST(LocalRankJob, KnowsWhetherItsRankIsShown) {
  const std::pair<const char*, std::vector<int>> cases[] = {
      {"", {0, 1, 2, 3, 4}}, {"all", {0, 1, 2, 3, 4}}, {"0", {0}},
      {"0,3-4", {0, 3, 4}},  {"1-3", {1, 2, 3}},       {"14", {}}};
  for (const auto& [list, shown] : cases) {
    RankJob job = Example();
    job.shown_ranks = list;
    const std::string text = EncodeRankJob(job);
    std::vector<int> found;
    for (int rank = 0; rank < 5; ++rank) {
      const auto own = std::make_unique<LocalRankJob>();
      ASSERT_TRUE(ReadLocalRankJob(text.c_str(), rank, "", own.get()));
      if (own->is_shown) found.push_back(rank);
    }
    EXPECT_EQ(found, shown) << list;
  }
}

// Every rank of `plan` reads of itself what the plan has; `step`: every so many.
void ExpectOwnJobs(const LaunchPlan& plan, std::size_t step = 1) {
  RankJob job = Example();
  job.plan = plan;
  const std::string text = EncodeRankJob(job);
  const auto own = std::make_unique<LocalRankJob>();
  for (std::size_t r = 0; r < plan.ranks.size(); r += step) {
    ASSERT_TRUE(ReadLocalRankJob(text.c_str(), static_cast<int>(r), "", own.get())) << r;
    const RankPlacement& rank = plan.ranks[r];
    const NodePlacement& node = plan.nodes[static_cast<std::size_t>(rank.node)];
    ASSERT_EQ(own->rank, rank.rank);
    ASSERT_EQ(own->world_size, static_cast<int>(plan.ranks.size()));
    ASSERT_EQ(own->node, rank.node);
    ASSERT_EQ(own->node_count, static_cast<int>(plan.nodes.size()));
    ASSERT_EQ(own->local_rank, rank.local_rank);
    ASSERT_EQ(own->local_world_size, static_cast<int>(node.ranks.size()));
    ASSERT_STREQ(own->host, node.host.c_str());
    ASSERT_EQ(own->gpus, node.gpus);
    ASSERT_EQ(own->gpu, rank.gpu);
    ASSERT_EQ(own->numa_os_index, rank.numa_os_index);
    ASSERT_EQ(own->cores, static_cast<int>(rank.cores.size()));
    ASSERT_EQ(std::atoi(own->cpus), rank.cpus.front());
  }
}

TEST(LocalRankJob, IsFoundByEveryRankOfFourThousandNodes) {
  ExpectOwnJobs(EvenPlan(4096, 8));
  ExpectOwnJobs(EvenPlan(4096, 8, true));
}

LaunchPlan RandomPlan(std::mt19937& random, bool is_shuffled) {
  std::vector<int> order;
  const int nodes = 1 + static_cast<int>(random() % 20);
  for (int node = 0; node < nodes; ++node) {
    order.insert(order.end(), random() % 4 == 0 ? 1 + random() % 8 : 4, node);
  }
  if (is_shuffled) std::shuffle(order.begin(), order.end(), random);
  return PlanOf(order);
}

TEST(LocalRankJob, IsFoundByEveryRankOfUnevenNodesInAnyOrder) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same plans in every run
  for (int round = 0; round < 50; ++round) {
    LaunchPlan plan = RandomPlan(random, round % 2 == 1);
    plan.nodes[random() % plan.nodes.size()].host = std::string(255, 'h');
    ExpectOwnJobs(plan);
  }
}

// As many as make more than one variable.
TEST(LocalRankJob, IsFoundInAListThatGoesOnInOtherVariables) {
  std::vector<int> order;
  for (int rank = 0; rank < 32768; ++rank) order.push_back(rank * 7 % 4096);
  RankJob job = Example();
  job.plan = PlanOf(order);
  const std::string text = EncodeRankJob(job);
  static std::map<std::string, std::string> variables;  // a function alone can be given
  const auto get = [](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  EXPECT_STREQ(JoinRankJob(get), "");
  variables = RankJobVariables(text);
  ASSERT_GT(variables.size(), 2U);
  const std::unique_ptr<const char, void (*)(const char*)> joined(
      JoinRankJob(get), [](const char* joined_text) { free(const_cast<char*>(joined_text)); });
  EXPECT_EQ(joined.get(), text);
  variables.erase("DDLRUN_RANK_JOB_2");
  EXPECT_EQ(JoinRankJob(get), variables.at("DDLRUN_RANK_JOB"));
  ExpectOwnJobs(job.plan, 997);
}

TEST(LocalRankJob, HasOtherGpusWhereSlurmGaveOthersToAnyRankOfTheNode) {
  const std::string text = EncodeRankJob(Example());  // GPUs 0 1 | 2 3 4
  const auto own = std::make_unique<LocalRankJob>();
  const auto has_other = [&](int rank, const char* granted) {
    EXPECT_TRUE(ReadLocalRankJob(text.c_str(), rank, granted, own.get()));
    EXPECT_EQ(own->gpu, rank);
    return own->has_other_gpus;
  };
  for (const char* same : {"", "2,3,4", "2-4", "GPU-3f2a,GPU-77b0,GPU-1", "2"}) {
    // One GPU for three ranks, of which two are planned on others.
    EXPECT_EQ(has_other(4, same), std::string(same) == "2") << same;
  }
  for (const int rank : {2, 3, 4}) {
    EXPECT_TRUE(has_other(rank, "2,3,5"));
    EXPECT_TRUE(has_other(rank, "0-2"));
  }
  EXPECT_FALSE(has_other(0, "0,1"));
  EXPECT_TRUE(has_other(0, "0,3"));
}

TEST(LocalRankJob, CountsEachGpuOfItsNodeOnce) {
  const std::pair<std::vector<int>, int> cases[] = {
      {{0, 1, 2}, 3}, {{0, 1, 0}, 2}, {{5, 5, 5}, 1}, {{-1, -1, -1}, 0}, {{63, 64, -1}, 1}};
  const auto own = std::make_unique<LocalRankJob>();
  for (const auto& [gpus, used] : cases) {
    RankJob job = Example(PlanOf({0, 1, 0, 0}));  // rank 1 is on another node
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      job.plan.ranks[i == 0 ? 0 : i + 1].gpu = gpus[i];
    }
    const std::string text = EncodeRankJob(job);
    for (const int rank : {0, 2, 3}) {
      ASSERT_TRUE(ReadLocalRankJob(text.c_str(), rank, "", own.get()));
      EXPECT_EQ(own->used_gpus, used) << gpus[0] << ' ' << rank;
    }
  }
}

TEST(LocalRankJob, OfAnotherTextOrAnotherWorldIsNone) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  EXPECT_FALSE(ReadLocalRankJob(text.c_str(), 5, "", own.get()));
  EXPECT_FALSE(ReadLocalRankJob(text.c_str(), -1, "", own.get()));
  for (std::size_t size = 0; size < text.rfind(':'); ++size) {
    EXPECT_FALSE(ReadLocalRankJob(text.substr(0, size).c_str(), 4, "", own.get()))
        << text.substr(0, size);
  }
  EXPECT_FALSE(ReadLocalRankJob((text + " 0").c_str(), 4, "", own.get()));
  std::string long_host = text;
  long_host.insert(long_host.find("gpu%2D0"), std::string(300, 'x'));
  EXPECT_FALSE(ReadLocalRankJob(long_host.c_str(), 0, "", own.get()));
}

// What each of these says would lead a rank to another node or beyond the text.
TEST(LocalRankJob, OfATextThatContradictsItselfIsNone) {
  RankJob job = Example();
  job.plan = PlanOf({0, 0, 1});
  const std::string good = EncodeRankJob(job);
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(good.c_str(), 2, "", own.get()));
  const std::vector<std::pair<std::string, std::string>> changes = {
      {" 0 2 3 2 2 2 ", " 0 1 3 2 2 2 "}, {" 0 2 3 2 2 2 ", " 0 2 4 2 2 2 "},
      {" 0 2 3 2 2 2 ", " 0 2 3 2 2 1 "}, {" 0 2 3 2 2 2 ", " 0 2 3 1 2 2 "},
      {" 0 2 3 2 2 2 ", " 0 2 3 2 1 2 "}, {" 1:1 0:0", " 1:2 0:0"},
      {" 1:1:n2:-:- ", " 1:2:n2:-:- "},   {" 1:1:n2:-:- ", " 0:1:n2:-:- "},
      {" 1:1:n2:-:- ", " 1:1:n2:-:x "},   {" 1:1:n2:-:- ", " 1:1:n:x:- "},
      {" 0:1:2 1:1:1", " 0:1:1 1:1:2"},   {" 0:1:2 1:1:1", " 0:1:2 2:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:2:1"},   {" 0:1:2 1:1:1", " 0:1:2 1:1:0"},
      {" 0:1:2 1:1:1", " 0:1:2 -1:1:1"},  {" 0:1:2 1:1:1", " 0:1:2 2147483647:2147483647:1"},
      {" 0:1:2 1:1:1", " 0:1:2"},
  };
  job.plan.cpus_per_rank.reset();
  const std::string text = EncodeRankJob(job);
  for (const auto& [from, to] : changes) {
    std::string wrong = text;
    ASSERT_NE(wrong.find(from), std::string::npos) << from;
    wrong.replace(wrong.find(from), from.size(), to);
    EXPECT_FALSE(ReadLocalRankJob(wrong.c_str(), 2, "", own.get())) << wrong;
  }
}

LaunchPlan Decode(const std::string& text) {
  TokenReader words(text);
  return DecodePlan(words);
}

void ExpectSame(const LaunchPlan& plan, const LaunchPlan& expected) {
  EXPECT_EQ(plan.cpus_per_rank, expected.cpus_per_rank);
  ASSERT_EQ(plan.nodes.size(), expected.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    EXPECT_EQ(plan.nodes[i].host, expected.nodes[i].host);
    EXPECT_EQ(plan.nodes[i].gpus, expected.nodes[i].gpus);
    EXPECT_EQ(plan.nodes[i].ranks, expected.nodes[i].ranks);
  }
  ASSERT_EQ(plan.ranks.size(), expected.ranks.size());
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    EXPECT_EQ(plan.ranks[r].rank, expected.ranks[r].rank);
    EXPECT_EQ(plan.ranks[r].node, expected.ranks[r].node);
    EXPECT_EQ(plan.ranks[r].local_rank, expected.ranks[r].local_rank);
    EXPECT_EQ(plan.ranks[r].gpu, expected.ranks[r].gpu);
    EXPECT_EQ(plan.ranks[r].numa_os_index, expected.ranks[r].numa_os_index);
    EXPECT_EQ(plan.ranks[r].cores.size(), expected.ranks[r].cores.size());
    EXPECT_EQ(plan.ranks[r].cpus, expected.ranks[r].cpus);
  }
}

// The text that is expected, and the plan again out of it.
void ExpectWords(const LaunchPlan& plan, const std::string& text) {
  EXPECT_EQ(EncodePlan(plan), text);
  ExpectSame(Decode(text), plan);
}

TEST(PlanWords, SayOnceWhatEqualNodesHaveInCommon) {
  ExpectWords(EvenPlan(3, 2), "0 3 6 1 1 1 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 3:0:n:1:- 0:3:2");
}

TEST(PlanWords, OfRanksInTurnHaveARunForEachRound) {
  ExpectWords(EvenPlan(3, 2, true),
              "0 3 6 1 1 2 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 3:0:n:1:- 0:3:1 0:3:1");
}

TEST(PlanWords, OfUnevenNodesHaveAKindForEachSort) {
  ExpectWords(PlanOf({0, 0, 1, 2, 2}),
              "0 3 5 2 3 3 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 1:1 0:0:2:0-1,40-41 "
              "1:0:n1:-:- 1:1:n2:-:- 1:0:n3:-:- 0:1:2 1:1:1 2:1:2");
}

TEST(PlanWords, OfAnyOrderAreAListOfRuns) {
  ExpectWords(PlanOf({1, 0, 0, 1}),
              "0 2 4 1 1 3 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 2:0:n:1:- 1:1:1 0:1:2 1:1:1");
}

TEST(PlanWords, OfAPlanWithoutCoresOrGpus) {
  LaunchPlan plan = PlanOf({0});
  plan.cpus_per_rank = 5;
  plan.nodes[0].host = "gpu-7 \xc3\xa4:";
  plan.nodes[0].gpus = 0;
  plan.ranks[0].gpu = plan.ranks[0].numa_os_index = -1;
  plan.ranks[0].cores.clear();
  plan.ranks[0].cpus.clear();
  ExpectWords(plan, "5 1 1 1 1 1 0:1 -1:-1:0:- 1:0:gpu%2D7%20%C3%A4%3A:-:- 0:1:1");
}

TEST(PlanWords, FindTheNumberThatHostsDifferIn) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> vectors = {
      {{"n8", "n9", "n10"}, " 3:0:n:8:- "},
      {{"gpu098", "gpu099", "gpu100"}, " 3:0:gpu:098:- "},
      {{"n1-ib0", "n2-ib0"}, " 2:0:n:1:%2Dib0 "},
      {{"r0n1", "r0n2", "r1n1"}, " 2:0:r0n:1:- 1:0:r1n1:-:- "},
      {{"10.0.0.9", "10.0.0.10"}, " 2:0:10.0.0.:9:- "},
      {{"n1.a2.uk", "n2.a2.uk"}, " 2:0:n:1:.a2.uk "},
      {{"n09", "n010"}, " 1:0:n09:-:- 1:0:n010:-:- "},
      {{"n2", "n1"}, " 1:0:n2:-:- 1:0:n1:-:- "},
      {{"n1", "n1b"}, " 1:0:n1:-:- 1:0:n1b:-:- "},
      {{"1", "2"}, " 2:0:-:1:- "},
      {{"n1234567890", "n1234567891"}, " 1:0:n1234567890:-:- 1:0:n1234567891:-:- "},
      {{"a", "b"}, " 1:0:a:-:- 1:0:b:-:- "},
  };
  for (const auto& [hosts, words] : vectors) {
    LaunchPlan plan = EvenPlan(static_cast<int>(hosts.size()), 1);
    for (std::size_t i = 0; i < hosts.size(); ++i) plan.nodes[i].host = hosts[i];
    const std::string text = EncodePlan(plan);
    EXPECT_NE(text.find(words), std::string::npos) << text << ", not" << words;
    ExpectSame(Decode(text), plan);
  }
}

// Some nodes lack a GPU, some hosts break the pattern, ranks are shuffled: as a user's rankfile may
// have it.
TEST(PlanWords, DecodeToThePlanWhateverItsOrder) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same plans in every run
  for (int round = 0; round < 200; ++round) {
    LaunchPlan plan = RandomPlan(random, round % 2 == 1);
    for (NodePlacement& node : plan.nodes) {
      if (random() % 8 == 0) node.host = "login" + std::to_string(random() % 1000);
    }
    ExpectSame(Decode(EncodePlan(plan)), plan);
  }
}

TEST(PlanWords, OfFourThousandEqualNodesAreShort) {
  EXPECT_LT(EncodePlan(EvenPlan(4096, 8)).size(), 500U);
  EXPECT_LT(EncodePlan(EvenPlan(4096, 8, true)).size(), 500U);
}

TEST(PlanWords, ThatContradictEachOtherAreRejected) {
  const std::string good = EncodePlan(PlanOf({0, 0, 1}));
  ASSERT_EQ(good,
            "0 2 3 2 2 2 2:2 0:0:2:0-1,40-41 1:0:2:2-3,42-43 1:1 0:0:2:0-1,40-41 "
            "1:0:n1:-:- 1:1:n2:-:- 0:1:2 1:1:1");
  EXPECT_NO_THROW(Decode(good));
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"0 2 3 ", "0 1 3 "},  // nodes
      {"0 2 3 ", "0 3 3 "},
      {"0 2 3 ", "0 2 2 "},  // ranks
      {"0 2 3 ", "0 2 4 "},
      {" 3 2 2 2 ", " 3 1 2 2 "},  // kinds
      {" 3 2 2 2 ", " 3 2 1 2 "},  // runs of hosts
      {" 3 2 2 2 ", " 3 2 2 1 "},  // runs of ranks
      {" 3 2 2 2 ", " 3 2 2 3 "},
      {" 2:2 0:", " 2:1 0:"},            // ranks of a kind
      {":2:0-1,40-41", ":5:0-1,40-41"},  // cores
      {":2:0-1,40-41", ":-1:0-1,40-41"},
      {"0-1,", "0-2000000000,"},
      {"0-1,", "1-0,"},
      {"1:0:n1:-:-", "2:0:n1:-:-"},  // two nodes without a number
      {"1:0:n1:-:-", "1:0:n1:-:x"},
      {"1:0:n1:-:-", "2:0:n:x1:-"},
      {"1:0:n1:-:-", "0:0:n1:-:-"},
      {"1:0:n1:-:-", "1:2:n1:-:-"},  // a kind that is not there
      {"1:0:n1:-:-", "1:0:n1:1234567890:-"},
      {"1:0:n1:-:-", "1:0:n%2:-:-"},
      {" 0:1:2 1:1:1", " 0:1:1 1:1:2"},  // as many as the kinds do not have
      {" 0:1:2 1:1:1", " 0:1:2 2:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:2:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:1:0"},
      {" 0:1:2 1:1:1", " 0:1:2 1:1:1 1:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2"},
  };
  for (const auto& [from, to] : changes) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    EXPECT_THROW(Decode(text), std::out_of_range) << text;
  }
  EXPECT_THROW(
      Decode("0 2000000000 2000000000 1 1 1 1:1 0:0:0:- 2000000000:0:n:1:- 0:2000000000:1"),
      std::out_of_range);
}

}  // namespace
}  // namespace launcher
