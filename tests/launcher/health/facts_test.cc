// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "launcher/base/error.h"
#include "launcher/health/facts_lines.h"
#include "launcher/health/node_facts.h"
#include "tests/launcher/health/made_up_facts.h"

namespace launcher {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

NodeFacts RichNode(int node) {
  NodeFacts facts = HealthyNode(node);
  facts.gpus[1].processes = {{1, 2}, {3, -1}};
  facts.gpus[2].remap_pending = facts.gpus[3].remap_failed = true;
  facts.gpu_problem = "NVML: no";
  facts.shm_error = "Permission denied";
  facts.master = {"n1", "Name or service not known"};
  facts.exchange.failed = {{2, "lost", 0}};
  facts.exchange.unavailable = "nothing";
  facts.exchange.problem = "all";
  return facts;
}

TEST(NodeFacts, AreTheSameAfterEncodingAndDecoding) {
  const std::string text = EncodeNodeFacts(RichNode(3));
  EXPECT_EQ(EncodeNodeFacts(DecodeNodeFacts(text)), text);
  EXPECT_EQ(DecodeNodeFacts(text).gpus[1].processes[0].bytes, 2);
  EXPECT_EQ(DecodeNodeFacts(text).exchange.failed[0].problem, "lost");
  EXPECT_EQ(DecodeNodeFacts(text).master.address, "n1");
  EXPECT_EQ(DecodeNodeFacts(text).master.problem, "Name or service not known");
}

TEST(NodeFacts, HaveDetailsOnlyWhereTheyWereAskedFor) {
  NodeFacts facts = RichNode(3);
  EXPECT_EQ(EncodeNodeFacts(facts).find("details"), std::string::npos);
  EXPECT_TRUE(DecodeNodeFacts(EncodeNodeFacts(facts)).details.empty());
  facts.details = {{"SMT", "on"}, {"network ib0", "up"}};
  const NodeFacts read = DecodeNodeFacts(EncodeNodeFacts(facts));
  ASSERT_EQ(read.details.size(), 2U);
  EXPECT_EQ(read.details[1].name, "network ib0");
  EXPECT_EQ(read.details[1].text, "up");
}

TEST(NodeFacts, AreAsciiWhateverAKernelOrDriverSays) {
  NodeFacts facts = HealthyNode(0);
  facts.cpu_model = "caf\xe9 \xc3\xa9\n";
  for (const char character : EncodeNodeFacts(facts)) {
    EXPECT_TRUE(character >= ' ' && character < 127);
  }
}

TEST(NodeFacts, OfAnotherVersionAreRefused) {
  for (const char* text : {"", "{", "[]", "{\"node\":1}", "{\"node\":\"x\"}"}) {
    EXPECT_THROW(DecodeNodeFacts(text), LaunchError) << text;
  }
}

TEST(FactsLines, AreShortEnoughForSrunToKeepWhole) {
  for (const std::string& line : Lines(FormatFacts(RichNode(99999), 2, FactsKind::kAll))) {
    EXPECT_LT(line.size() + 1, 1024U);
  }
}

TEST(FactsReader, PutsLinesOfManyNodesInAnyOrderTogether) {
  FactsReader reader(3);
  std::vector<std::string> lines = Lines(FormatFacts(RichNode(2), 0, FactsKind::kAll));
  ASSERT_GT(lines.size(), 1U);
  for (const std::string& line : Lines(FormatFacts(RichNode(0), 0, FactsKind::kAll)))
    lines.push_back(line);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) EXPECT_TRUE(reader.Add(*line));
  const std::vector<NodeFacts> facts = reader.Facts();
  EXPECT_EQ(EncodeNodeFacts(facts[0]), EncodeNodeFacts(RichNode(0)));
  EXPECT_EQ(facts[1].host, "");
  EXPECT_EQ(EncodeNodeFacts(facts[2]), EncodeNodeFacts(RichNode(2)));
}

TEST(FactsReader, TakesTheLastReportThatIsWhole) {
  FactsReader reader(1);
  NodeFacts facts = RichNode(0);
  for (int report = 0; report < 3; ++report) {
    facts.cpus = report;
    const std::vector<std::string> lines = Lines(FormatFacts(facts, report, FactsKind::kAll));
    ASSERT_GT(lines.size(), 1U);
    for (const std::string& line : lines) {
      if (report < 2 || line != lines.back()) reader.Add(line);
    }
  }
  EXPECT_EQ(reader.Facts()[0].cpus, 1);
}

// What a node is by itself is told once.
TEST(FactsReader, AddsLaterReportsToTheFirst) {
  FactsReader reader(2);
  NodeFacts facts = RichNode(0);
  facts.exchange = ExchangeFacts();
  facts.directory.write_error = "no answer";
  facts.master = {};
  for (const std::string& line : Lines(FormatFacts(facts, 0, FactsKind::kAll))) reader.Add(line);
  EXPECT_EQ(EncodeNodeFacts(reader.Facts()[0]), EncodeNodeFacts(facts));

  const std::string later = FormatFacts(RichNode(0), 1, FactsKind::kLater);
  EXPECT_LT(2 * later.size(), FormatFacts(RichNode(0), 1, FactsKind::kAll).size());
  for (const std::string& line : Lines(later)) EXPECT_TRUE(reader.Add(line));
  EXPECT_EQ(EncodeNodeFacts(reader.Facts()[0]), EncodeNodeFacts(RichNode(0)));
}

// Without the first report nobody knows what the node is; mpirun's copy at the end tells it.
TEST(FactsReader, TakesLaterFactsAloneForNoAnswer) {
  FactsReader reader(1);
  for (const std::string& line : Lines(FormatFacts(RichNode(0), 1, FactsKind::kLater))) {
    EXPECT_TRUE(reader.Add(line));
  }
  EXPECT_EQ(reader.Facts()[0].host, "");
  for (const std::string& line : Lines(FormatFacts(RichNode(0), 3, FactsKind::kAll))) {
    reader.Add(line);
  }
  EXPECT_EQ(EncodeNodeFacts(reader.Facts()[0]), EncodeNodeFacts(RichNode(0)));
}

TEST(NodeFacts, OfAnotherVersionAreRefusedLaterToo) {
  for (const char* text :
       {"", "{", "[]", "{\"directory\":{}}", "{\"directory\":1,\"exchange\":{}}"}) {
    NodeFacts facts = RichNode(0);
    EXPECT_THROW(DecodeLaterFacts(text, &facts), LaunchError) << text;
    EXPECT_EQ(EncodeNodeFacts(facts), EncodeNodeFacts(RichNode(0)));
  }
}

TEST(NodeFacts, OfAVersionThatLooksNoNameUpAreRefused) {
  std::string text = EncodeLaterFacts(RichNode(0));
  NodeFacts facts = RichNode(1);
  text.replace(text.find("\"master\""), 8, "\"mister\"");
  EXPECT_THROW(DecodeLaterFacts(text, &facts), LaunchError);
  EXPECT_EQ(EncodeNodeFacts(facts), EncodeNodeFacts(RichNode(1)));
}

TEST(FactsReader, PassesOverTheTagsOfMpirun) {
  FactsReader reader(1);
  for (const std::string& line : Lines(FormatFacts(HealthyNode(0), 0, FactsKind::kAll))) {
    EXPECT_TRUE(reader.Add("[1,0]<stdout>:" + line));
  }
  EXPECT_EQ(reader.Facts()[0].host, "n1");
}

TEST(FactsReader, FindsALineBehindHalfAnotherAndDropsTheHalves) {
  FactsReader reader(2);
  const std::vector<std::string> own = Lines(FormatFacts(HealthyNode(0), 0, FactsKind::kAll));
  const std::vector<std::string> other = Lines(FormatFacts(HealthyNode(1), 0, FactsKind::kAll));
  ASSERT_GT(own.size(), 1U);
  EXPECT_TRUE(reader.Add(own[0].substr(0, 300) + other[0]));
  EXPECT_FALSE(reader.Add(own[0].substr(300)));
  EXPECT_FALSE(reader.Add(own[0].substr(0, 300)));
  for (std::size_t part = 1; part < own.size(); ++part) reader.Add(own[part]);
  for (std::size_t part = 1; part < other.size(); ++part) reader.Add(other[part]);
  EXPECT_EQ(reader.Facts()[0].host, "");
  EXPECT_EQ(reader.Facts()[1].host, "n2");
}

TEST(FactsReader, LeavesOtherLinesAlone) {
  FactsReader reader(2);
  for (const char* line : {"", "hello", "ddlrun-node-check: what",
                           "ddlrun-node-check: 2 0 1/1 2 {}", "ddlrun-node-check: -1 0 1/1 2 {}",
                           "ddlrun-node-check: 0 0 2/1 2 {}", "ddlrun-node-check: 0 0 0/1 2 {}",
                           "ddlrun-node-check: 0 9 1/1 2 {}", "ddlrun-node-check: 0 0 1/9999 2 {}",
                           "ddlrun-node-check: 0 0 1/1 3 {}", "ddlrun-node-check: 0 0 1/1 2"}) {
    EXPECT_FALSE(reader.Add(line)) << line;
  }
  EXPECT_EQ(reader.Facts()[0].host, "");
}

}  // namespace
}  // namespace launcher
