// SPDX-License-Identifier: Apache-2.0

#include "launcher/cost/launch_record.h"

#include <nlohmann/json.hpp>

#include "tests/support/test.h"

namespace launcher {
namespace {

using Source = ProgressSource;

constexpr double kStart = 1795985742.25;  // 2026-11-29 20:55:42 UTC

LaunchRecord FakeLaunch() {
  return {.job = "12_3",
          .cluster = "be\"de",
          .host = "n1",
          .pid = 4711,
          .requeues = 2,
          .start = kStart,
          .exit_code = 75,
          .cost = {.source = Source::kCheckpoints,
                   .restarts = 1,
                   .wall = 100,
                   .plan = 1,
                   .launch = 2,
                   .productive = 80,
                   .detection = 3,
                   .teardown = 4,
                   .restart = 5,
                   .repeated = 4.5004,
                   .end = 0.5,
                   .unsaved = 7,
                   .energy = 4464000.5,
                   .lost_energy = 12.25,
                   .lacks_energy = true}};
}

std::string Problem(const std::string& text) {
  std::string problem;
  EXPECT_FALSE(ParseLaunch(text, &problem)) << text;
  return problem;
}

TEST(LaunchRecord, IsReadAsItWasWritten) {
  const LaunchRecord launch = FakeLaunch();
  const std::string text = FormatLaunch(launch);
  std::string problem;
  const auto read = ParseLaunch(text, &problem);
  ASSERT_TRUE(read) << problem;
  EXPECT_EQ(FormatLaunch(*read), text);
  EXPECT_EQ(read->job, "12_3");
  EXPECT_EQ(read->cluster, launch.cluster);
  EXPECT_EQ(read->host, "n1");
  EXPECT_EQ(read->pid, 4711);
  EXPECT_EQ(read->requeues, 2);
  EXPECT_EQ(read->start, kStart);
  EXPECT_EQ(read->exit_code, 75);
  EXPECT_EQ(read->cost.source, Source::kCheckpoints);
  EXPECT_EQ(read->cost.restarts, 1);
  EXPECT_EQ(read->cost.wall, 100);
  EXPECT_EQ(read->cost.unsaved, 7);
  EXPECT_EQ(read->cost.energy, 4464000.5);
  EXPECT_EQ(read->cost.lost_energy, 12.25);
  EXPECT_TRUE(read->cost.lacks_energy);
  for (const CostPart& part : CostParts()) {
    EXPECT_NEAR(read->cost.*part.seconds, launch.cost.*part.seconds, 0.0005) << part.name;
  }
}

TEST(LaunchRecord, WhatIsNotKnownIsNull) {
  LaunchRecord launch = FakeLaunch();
  launch.exit_code.reset();
  launch.cost.source = Source::kNone;
  auto json = nlohmann::json::parse(FormatLaunch(launch));
  for (const char* key : {"exit_code", "goodput", "productive_seconds", "repeated_seconds",
                          "detection_seconds", "lost_gpu_energy_joules"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_EQ(json.at("gpu_energy_joules"), 4464000.5);
  EXPECT_EQ(json.at("teardown_seconds"), 4);
  std::string problem;
  EXPECT_FALSE(ParseLaunch(json.dump(), &problem)->exit_code);
  launch.cost.source = Source::kHeartbeat;
  launch.cost.energy.reset();
  json = nlohmann::json::parse(FormatLaunch(launch));
  EXPECT_TRUE(json.at("repeated_seconds").is_null());
  EXPECT_EQ(json.at("productive_seconds"), 80);
  EXPECT_EQ(json.at("goodput"), 0.8);
  for (const char* key : {"gpu_energy_joules", "lost_gpu_energy_joules"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_FALSE(ParseLaunch(json.dump(), &problem)->cost.energy);
}

TEST(LaunchRecord, NothingElseIsOne) {
  const std::string text = FormatLaunch(FakeLaunch());
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    EXPECT_EQ(Problem(text.substr(0, i)), "it is not of ddlrun");
  }
  EXPECT_EQ(Problem("[]"), "it is not of ddlrun");
  EXPECT_EQ(Problem(R"({"ddlrun_run": 0})"), "it is not of ddlrun");
  EXPECT_THAT(Problem(R"({"ddlrun_run": 2})"), HasSubstr("of format 2, and this program reads"));
  const auto json = nlohmann::json::parse(text);
  const char* const wrong[] = {"-1", "1e16", "\"x\"", "[]", "true"};
  for (const auto& [key, value] : json.items()) {
    if (key == "ddlrun_run" || key == "goodput") continue;
    auto missing = json;
    missing.erase(key);
    const bool may_lack = key == "exit_code" || key.find("energy") != std::string::npos;
    if (!may_lack) {
      EXPECT_EQ(Problem(missing.dump()), "it is damaged: '" + key + "' is missing or wrong");
    }
    for (const char* other : wrong) {
      auto changed = json;
      changed[key] = nlohmann::json::parse(other);
      const bool is_text = value.is_string() && key != "progress" && std::string(other) == "\"x\"";
      if (is_text || (value.is_boolean() && std::string(other) == "true")) continue;
      EXPECT_THAT(Problem(changed.dump()), HasSubstr(key)) << other;
    }
  }
}

TEST(LaunchRecord, HasNamesThatSortByTime) {
  EXPECT_EQ(RunFileName(FakeLaunch()), "run-20261129T205542Z-4711.json");
  EXPECT_EQ(MetricsFileName(FakeLaunch()), "ddlrun-20261129T205542Z-4711.prom");
}

TEST(Metrics, AreThoseOfPrometheus) {
  const std::string text = FormatMetrics(FakeLaunch());
  const std::string labels = R"({job="12_3",cluster="be\"de",launch="20261129T205542Z-4711")";
  for (const std::string& line :
       {"ddlrun_running" + labels + "} 0", "ddlrun_exit_code" + labels + "} 75",
        "ddlrun_requeues" + labels + "} 2", "ddlrun_restarts" + labels + "} 1",
        "ddlrun_wall_seconds" + labels + "} 100.0", "ddlrun_goodput_ratio" + labels + "} 0.8",
        "ddlrun_spent_seconds" + labels + ",part=\"productive\"} 80.0",
        "ddlrun_spent_seconds" + labels + ",part=\"end\"} 0.5",
        "ddlrun_lost_seconds" + labels + ",cause=\"teardown\"} 4.0",
        "ddlrun_lost_seconds" + labels + ",cause=\"repeated\"} 4.5",
        "ddlrun_gpu_energy_joules" + labels + "} 4464000.5",
        "ddlrun_lost_gpu_energy_joules" + labels + "} 12.25",
        std::string("# TYPE ddlrun_lost_seconds gauge\n# UNIT ddlrun_lost_seconds seconds")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  EXPECT_THAT(text, Not(HasSubstr("\"requeued\"")));  // it is no time of this process
  LaunchRecord running = FakeLaunch();
  running.exit_code.reset();
  running.cost.source = Source::kNone;
  EXPECT_THAT(FormatMetrics(running), HasSubstr("ddlrun_gpu_energy_joules"));
  EXPECT_THAT(FormatMetrics(running), Not(HasSubstr("lost_gpu_energy")));
  running.cost.energy.reset();
  const std::string other = FormatMetrics(running);
  EXPECT_THAT(other, HasSubstr("ddlrun_running" + labels + "} 1"));
  for (const char* name :
       {"ddlrun_exit_code", "goodput", "productive", "repeated", "detection", "energy"}) {
    EXPECT_THAT(other, Not(HasSubstr(name)));
  }
}

// A launch of job 7 that begins at `start` and has lasted 100 s, 30 of them not saved.
LaunchRecord Of(double start, int requeues, std::optional<int> exit_code, const char* job = "7") {
  LaunchRecord launch;
  launch.job = job;
  launch.requeues = requeues;
  launch.start = start;
  launch.exit_code = exit_code;
  launch.cost = {.source = Source::kCheckpoints, .wall = 100, .productive = 100, .unsaved = 30};
  return launch;
}

struct Row {
  const char* name;
  std::vector<LaunchRecord> launches;
  std::vector<double> requeued;  // of each, by its start
  std::vector<bool> was_killed;
  double wall;
  double repeated;
};

TEST(History, AddsLaunchesUp) {
  const double now = 1110;
  const Row rows[] = {
      {"none", {}, {}, {}, 0, 0},
      {"one that runs", {Of(1000, 0, {})}, {0}, {false}, 100, 0},
      {"one that was written just often enough", {Of(890, 0, {})}, {0}, {false}, 100, 0},
      {"one that was not written for long", {Of(889, 0, {})}, {0}, {true}, 100, 30},
      {"a requeue, in another order of files",
       {Of(250, 1, 0), Of(100, 0, 75)},
       {0, 50},
       {false, false},
       250,
       0},
      {"a requeue at once", {Of(100, 0, 75), Of(200, 1, 0)}, {0, 0}, {false, false}, 200, 0},
      {"another node's clock is behind",
       {Of(100, 0, 75), Of(190, 1, 0)},
       {0, 0},
       {false, false},
       200,
       0},
      {"requeued after it was killed, a moment ago",
       {Of(900, 0, {}), Of(1005, 1, {})},
       {0, 5},
       {true, false},
       205,
       30},
      {"requeued twice",
       {Of(100, 0, 75), Of(210, 1, 75), Of(330, 4, 0)},
       {0, 10, 20},
       {false, false, false},
       330,
       0},
      {"two in one script", {Of(100, 0, 0), Of(250, 0, 0)}, {0, 0}, {false, false}, 200, 0},
      {"two at once in one script",
       {Of(1000, 0, {}), Of(1005, 0, {})},
       {0, 0},
       {false, false},
       200,
       0},
      {"two jobs", {Of(100, 0, 75), Of(250, 1, 0, "8")}, {0, 0}, {false, false}, 200, 0},
      {"another job between two launches",
       {Of(100, 0, 75), Of(220, 0, 0, "8"), Of(350, 1, 0)},
       {0, 0, 150},
       {false, false, false},
       450,
       0},
      {"no job of Slurm", {Of(100, 0, 75, ""), Of(250, 1, 0, "")}, {0, 0}, {false, false}, 200, 0},
  };
  for (const Row& row : rows) {
    const LaunchHistory history = HistoryOf(row.launches, now);
    ASSERT_EQ(history.launches.size(), row.requeued.size()) << row.name;
    for (std::size_t i = 0; i < row.requeued.size(); ++i) {
      EXPECT_EQ(history.launches[i].record.cost.requeued, row.requeued[i]) << row.name << i;
      EXPECT_EQ(history.launches[i].was_killed, row.was_killed[i]) << row.name << i;
    }
    double sum = 0;
    for (const CostPart& part : CostParts()) sum += history.sum.*part.seconds;
    EXPECT_EQ(sum, history.sum.wall) << row.name;
    EXPECT_EQ(history.sum.wall, row.wall) << row.name;
    EXPECT_EQ(history.sum.repeated, row.repeated) << row.name;
  }
}

}  // namespace
}  // namespace launcher
