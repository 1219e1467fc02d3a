// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/facts.h"

#include <nlohmann/json.hpp>

#include "launcher/base/error.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// With a value of its own in each field.
NodeFacts Sample() {
  ProcessFacts process;
  process.pid = 11;
  process.parent = 10;
  process.name = "pyth\xffon";  // the kernel has bytes
  process.state = 'D';
  process.thread = 12;
  process.wait = "do_wait";
  process.call = "read";
  process.object = "/data/ä";
  process.file_system = "nfs4 at /data";
  process.is_still = true;
  process.cpus = 0.25;
  process.tracer = 13;
  process.wait_status = 9;
  process.stack = {"step (a.py:1)", "<module> (a.py:2)"};
  RankFacts rank{
      .rank = 3,
      .world = 4,
      .host = "n2",
      .memory_kills = -1,
      .gpu_error = "GPU 0: Xid 79",
      .processes = {process},
      .communicators = {{"0x1", 3, 4, {{"AllReduce", 17}}}},
      .recorded = {{"0",
                    "default_pg",
                    {{17, "all_reduce", "started", "[[3]]", "Float", "sync (train.py:50)"}}}}};
  return {.host = "node2",
          .run = "n1:29500",
          .directory = "/tmp/ddlrun.abc",
          .status = "ddlrun-status 1\n",
          .notes = {"a", "b"},
          .gpus = {"0, 00000000:3B:00.0, 100 %"},
          .ranks = {rank}};
}

TEST(Facts, AreReadAsTheyWereWritten) {
  const std::string text = EncodeFacts(Sample());
  EXPECT_EQ(text.find_first_of("\n\xff\xc3"), std::string::npos);
  const NodeFacts read = DecodeFacts(text);
  EXPECT_EQ(EncodeFacts(read), text);
  ASSERT_EQ(read.ranks.size(), 1U);
  const ProcessFacts& process = read.ranks[0].processes.at(0);
  EXPECT_EQ(process.name, "pyth\xef\xbf\xbdon");
  EXPECT_EQ(process.object, "/data/ä");
  EXPECT_EQ(process.state, 'D');
  EXPECT_EQ(process.cpus, 0.25);
  EXPECT_EQ(process.stack, Sample().ranks[0].processes[0].stack);
  EXPECT_EQ(read.run, "n1:29500");
  EXPECT_EQ(read.gpus, Sample().gpus);
  EXPECT_EQ(read.status, "ddlrun-status 1\n");
  EXPECT_EQ(read.ranks[0].memory_kills, -1);
  EXPECT_EQ(read.ranks[0].gpu_error, "GPU 0: Xid 79");
  EXPECT_EQ(read.ranks[0].communicators.at(0).launched.at(0).count, 17);
  EXPECT_EQ(read.ranks[0].recorded.at(0).description, "default_pg");
  EXPECT_EQ(read.ranks[0].recorded.at(0).collectives.at(0).place, "sync (train.py:50)");
}

TEST(Facts, OfAnotherFormAreRejected) {
  const auto message = [](const std::string& text) {
    return tests::Rejection<LaunchError>(EX_SOFTWARE, [&] { DecodeFacts(text); });
  };
  for (const char* text : {"", "[]", "{}", "3", "{\"host\":1}"}) {
    EXPECT_THAT(message(text), HasSubstr("are all nodes' installations the same?")) << text;
  }
  const auto changed = [](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(EncodeFacts(Sample()));
    change(json);
    return json.dump();
  };
  using Json = nlohmann::json;
  const std::pair<const char*, std::function<void(Json&)>> cases[] = {
      {"pid", [](Json& json) { json["ranks"][0]["processes"][0]["pid"] = -1; }},
      {"pid", [](Json& json) { json["ranks"][0]["processes"][0]["pid"] = 1e300; }},
      {"pid", [](Json& json) { json["ranks"][0]["processes"][0].erase("pid"); }},
      {"state", [](Json& json) { json["ranks"][0]["processes"][0]["state"] = ""; }},
      {"state", [](Json& json) { json["ranks"][0]["processes"][0]["state"] = "SS"; }},
      {"state", [](Json& json) { json["ranks"][0]["processes"][0]["state"] = "\x1b"; }},
      {"rank", [](Json& json) { json["ranks"][0]["rank"] = 4; }},
      {"rank", [](Json& json) { json["ranks"][0]["world"] = kMaxWorld + 1; }},
      {"cpus", [](Json& json) { json["ranks"][0]["processes"][0]["cpus"] = -0.5; }},
      {"cpus", [](Json& json) { json["ranks"][0]["processes"][0]["cpus"] = "1"; }},
      {"is_still", [](Json& json) { json["ranks"][0]["processes"][0]["is_still"] = 1; }},
      {"stack", [](Json& json) { json["ranks"][0]["processes"][0]["stack"] = Json(25, "f"); }},
      {"name",
       [](Json& json) { json["ranks"][0]["processes"][0]["name"] = std::string(4097, 'a'); }},
      {"memory_kills", [](Json& json) { json["ranks"][0]["memory_kills"] = -2; }},
      {"processes", [](Json& json) { json["ranks"][0]["processes"] = Json::array(); }},
      {"processes",
       [](Json& json) {
         Json& processes = json["ranks"][0]["processes"];
         processes = Json(65, processes[0]);
       }},
      {"an object is missing", [](Json& json) { json["ranks"][0] = 1; }},
      {"ranks", [](Json& json) { json["ranks"] = "none"; }},
  };
  for (const auto& [name, change] : cases) EXPECT_THAT(message(changed(change)), EndsWith(name));
  EXPECT_EQ(message(changed([](Json& json) { json["new"] = 1; })), "");
}

TEST(FactsLines, AreShortAndOfManyNodesAtOnce) {
  NodeFacts other = Sample();
  other.host = "node 3";
  other.status = std::string(5000, 'x');
  std::vector<std::string> lines[2];
  for (int i = 0; i < 2; ++i) {
    std::istringstream stream(FactsLines(i == 0 ? Sample() : other));
    for (std::string line; std::getline(stream, line);) lines[i].push_back(line + "\n");
    for (const std::string& line : lines[i]) EXPECT_LE(line.size(), kMaxFactsLine);
  }
  ASSERT_GT(lines[1].size(), lines[0].size());
  std::string mixed = "srun: a warning\n";
  for (std::size_t i = 0; i < lines[1].size(); ++i) {
    if (i < lines[0].size()) mixed += lines[0][i];
    mixed += lines[1][i];
  }
  std::string problem;
  const auto nodes = ReadFactsLines(mixed, &problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(EncodeFacts(nodes.at("node2")), EncodeFacts(Sample()));
  EXPECT_EQ(EncodeFacts(nodes.at("node_3")), EncodeFacts(other));
}

TEST(FactsLines, ThatAreNotWholeAreLeftOut) {
  NodeFacts sample = Sample();
  sample.status = std::string(1000, 'x');
  const std::string lines = FactsLines(sample);
  const std::size_t second = lines.find('\n') + 1;
  ASSERT_LT(second, lines.size());
  const std::pair<std::string, const char*> cases[] = {
      {lines.substr(0, second), "a part of the facts of node2 is missing"},
      {lines.substr(second), "a part of the facts of node2 is missing"},
      {"ddlrun-facts n1 0 1 {}\n", "are not what this version"},
      {"ddlrun-facts n1 x 1 {}\n", "a part of the facts of n1 is missing"},
      {"ddlrun-facts\n", "a part of the facts of  is missing"},
      {"ddlrun-fact n1 0 1 {}\n", ""},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) {
    std::string problem;
    EXPECT_THAT(ReadFactsLines(text, &problem), IsEmpty());
    EXPECT_THAT(problem, HasSubstr(expected));
    EXPECT_EQ(problem.empty(), *expected == '\0') << text;
  }
}

TEST(FocusOf, IsWhatARankWaitsFor) {
  const auto process = [](int pid, int parent, char state, const char* call,
                          const char* wait = "") {
    ProcessFacts facts;
    facts.pid = pid;
    facts.parent = parent;
    facts.state = state;
    facts.call = call;
    facts.wait = wait;
    return facts;
  };
  const std::pair<std::vector<ProcessFacts>, int> cases[] = {
      {{process(1, 0, 'S', "wait4")}, 1},
      {{process(1, 0, 'S', "wait4"), process(2, 1, 'S', "read")}, 2},
      {{process(1, 0, 'S', "", "do_wait"), process(2, 1, 'S', "")}, 2},
      {{process(1, 0, 'S', "poll"), process(2, 1, 'S', "read")}, 1},
      {{process(1, 0, 'S', "waitid"), process(2, 1, 'Z', ""), process(3, 1, 'S', "read")}, 3},
      {{process(1, 0, 'S', "wait4"), process(2, 1, 'S', "wait4"), process(3, 2, 'R', "")}, 3},
      {{process(1, 2, 'S', "wait4"), process(2, 1, 'S', "wait4")}, 2},  // no circle
  };
  for (const auto& [processes, pid] : cases) {
    EXPECT_EQ(FocusOf({.processes = processes}).pid, pid);
  }
}

}  // namespace
}  // namespace launcher
