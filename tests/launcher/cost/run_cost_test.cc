// SPDX-License-Identifier: Apache-2.0

#include "launcher/cost/run_cost.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

using Source = ProgressSource;

constexpr Source kSaved = Source::kCheckpoints;
constexpr std::nullopt_t kNever = std::nullopt;

// A start that fails at 50, of which the ranks ran from 10 and are gone at 53.
StartTimes Failed(std::optional<double> checkpoint, std::optional<double> progress = kNever) {
  return {.launched = 2,
          .running = 10,
          .noticed = 50,
          .gone = 53,
          .progress = progress,
          .checkpoint = checkpoint,
          .has_failed = true};
}

// One that does not fail, and begins and ends after that.
StartTimes Second(std::optional<double> checkpoint = kNever) {
  return {.launched = 55, .running = 60, .gone = 90, .checkpoint = checkpoint};
}

struct Case {
  const char* name;
  RunTimeline timeline;
  RunCost cost;  // but for source, restarts and wall
};

const Case kCases[] = {
    {"nothing was launched", {.end = 3, .source = kSaved}, {.end = 3}},
    {"nothing was launched so far", {.source = kSaved}, {.plan = 100}},
    {"no time passes",
     {.starts = {{.launched = 0, .running = 0, .gone = 0}}, .end = 0, .source = kSaved},
     {}},
    {"it goes well",
     {.starts = {{.launched = 2, .running = 10, .gone = 90}}, .end = 91, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 80, .end = 1}},
    {"it runs, and what came after the checkpoint may be lost yet",
     {.starts = {{.launched = 2, .running = 10, .checkpoint = 70}}, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 90, .unsaved = 30}},
    {"it runs without a checkpoint so far",
     {.starts = {{.launched = 2, .running = 10}}, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 90, .unsaved = 90}},
    {"it was told to stop, and stops with a checkpoint (75)",
     {.starts = {{.launched = 2, .running = 10, .noticed = 50, .gone = 60}},
      .end = 60,
      .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 50}},
    {"it fails after a checkpoint",
     {.starts = {Failed(30)}, .end = 54, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 20, .teardown = 3, .repeated = 20, .end = 1}},
    {"it fails before any checkpoint",
     {.starts = {Failed(kNever)}, .end = 54, .source = kSaved},
     {.plan = 2, .launch = 8, .teardown = 3, .repeated = 40, .end = 1}},
    {"it hangs after a checkpoint",
     {.starts = {Failed(30, 35)}, .end = 54, .source = kSaved},
     {.plan = 2,
      .launch = 8,
      .productive = 20,
      .detection = 15,
      .teardown = 3,
      .repeated = 5,
      .end = 1}},
    {"it hangs before any progress: no rank has touched its file since before all ran",
     {.starts = {Failed(kNever, 5)}, .end = 54, .source = kSaved},
     {.plan = 2, .launch = 8, .detection = 40, .teardown = 3, .end = 1}},
    {"it hangs while it writes the checkpoint",
     {.starts = {Failed(30, 30)}, .end = 54, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 20, .detection = 20, .teardown = 3, .end = 1}},
    {"a checkpoint that is younger than the heartbeat",
     {.starts = {Failed(30, 25)}, .end = 54, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 20, .detection = 20, .teardown = 3, .end = 1}},
    {"it fails as the checkpoint is written",
     {.starts = {Failed(50)}, .end = 53, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 40, .teardown = 3}},
    {"it writes its checkpoint after the failure was noticed",
     {.starts = {Failed(52)}, .end = 53, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 40, .teardown = 3}},
    {"a checkpoint before all ranks ran",
     {.starts = {Failed(8)}, .end = 53, .source = kSaved},
     {.plan = 2, .launch = 8, .teardown = 3, .repeated = 40}},
    {"it fails and is restarted",
     {.starts = {Failed(30), Second()}, .end = 91, .source = kSaved},
     {.plan = 2,
      .launch = 8,
      .productive = 50,
      .teardown = 3,
      .restart = 7,
      .repeated = 20,
      .end = 1}},
    {"the restart is under way",
     {.starts = {Failed(30)}, .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 20, .teardown = 3, .restart = 47, .repeated = 20}},
    {"the start hangs, and is repeated",
     {.starts = {{.launched = 2, .noticed = 40, .gone = 45, .has_failed = true}, Second()},
      .end = 90,
      .source = kSaved},
     {.plan = 2, .launch = 38, .productive = 30, .teardown = 5, .restart = 15}},
    {"the ranks are never seen to run, but end well",
     {.starts = {{.launched = 2, .gone = 90}}, .end = 90, .source = kSaved},
     {.plan = 2, .productive = 88}},
    {"the ranks are never seen to run, but have a checkpoint",
     {.starts = {{.launched = 2, .noticed = 50, .gone = 50, .checkpoint = 20, .has_failed = true}},
      .end = 50,
      .source = kSaved},
     {.plan = 2, .productive = 18, .repeated = 30}},
    {"nobody notices a failure before all are gone",
     {.starts = {{.launched = 2, .running = 10, .gone = 50, .checkpoint = 50, .has_failed = true}},
      .end = 50,
      .source = kSaved},
     {.plan = 2, .launch = 8, .productive = 40}},
    {"a clock that is set back takes nothing from other parts",
     {.starts = {{.launched = 10, .running = 5, .noticed = 4, .gone = 3, .has_failed = true},
                 {.launched = 1, .running = 2, .gone = 30}},
      .end = 20,
      .source = kSaved},
     {.plan = 10, .productive = 10}},
    {"heartbeats alone: what others repeat is not lost",
     {.starts = {Failed(kNever, 35), Second()}, .end = 90, .source = Source::kHeartbeat},
     {.plan = 2, .launch = 8, .productive = 55, .detection = 15, .teardown = 3, .restart = 7}},
    {"nothing tells what was productive",
     {.starts = {Failed(kNever), Second()}, .end = 91, .source = Source::kNone},
     {.plan = 2, .launch = 8, .unknown = 70, .teardown = 3, .restart = 7, .end = 1}},
};

TEST(SplitRun, GivesEachMomentToOnePart) {
  for (const Case& row : kCases) {
    const RunCost cost = SplitRun(row.timeline, 100);
    double sum = 0;
    for (const CostPart& part : CostParts()) {
      EXPECT_DOUBLE_EQ(cost.*part.seconds, row.cost.*part.seconds) << row.name << ": " << part.name;
      sum += cost.*part.seconds;
    }
    EXPECT_DOUBLE_EQ(cost.unsaved, row.cost.unsaved) << row.name;
    EXPECT_DOUBLE_EQ(cost.wall, row.timeline.end.value_or(100)) << row.name;
    EXPECT_DOUBLE_EQ(sum, cost.wall) << row.name;
  }
}

struct EnergyCase {
  const char* name;
  std::vector<StartTimes> starts;
  std::optional<double> energy;
  double lost;
  bool lacks_some;
};

StartTimes With(StartTimes start, std::optional<double> energy, bool lacks_some = false) {
  start.energy = energy;
  start.lacks_energy = lacks_some;
  return start;
}

TEST(SplitRun, LosesOfEachStartsEnergyTheShareOfItsTime) {
  const StartTimes before_ranks = {.launched = 2, .noticed = 50, .gone = 50, .has_failed = true};
  const StartTimes runs = {.launched = 60, .running = 61};
  const EnergyCase rows[] = {
      {"nothing was launched", {}, {}, 0, false},
      {"no node tells", {Failed(30), Second()}, {}, 0, false},
      {"no failure", {With(Second(), 500)}, 500, 0, false},
      // 20 s are saved, 20 s are repeated, 3 s are the teardown.
      {"half of it is repeated", {With(Failed(30), 430)}, 430, 230, false},
      {"a hang", {With(Failed(30, 35), 430)}, 430, 230, false},
      {"no checkpoint at all", {With(Failed(kNever), 430)}, 430, 430, false},
      {"its ranks never ran", {With(before_ranks, 70)}, 70, 70, false},
      {"of two starts each its own", {With(Failed(30), 43), With(Second(), 1000)}, 1043, 23, false},
      {"one is not known", {With(Failed(30), 43), Second()}, 43, 23, true},
      {"the first is not known", {Failed(30), With(Second(), 7)}, 7, 0, true},
      {"a node is not known", {With(Failed(30), 43, true), With(Second(), 7)}, 50, 23, true},
      {"the last still runs", {With(Failed(30), 43), runs}, 43, 23, true},
      {"the only one still runs", {runs}, {}, 0, false},
  };
  for (const EnergyCase& row : rows) {
    const RunCost cost = SplitRun({.starts = row.starts, .source = kSaved}, 100);
    EXPECT_EQ(cost.energy, row.energy) << row.name;
    EXPECT_DOUBLE_EQ(cost.lost_energy, row.lost) << row.name;
    EXPECT_EQ(cost.lacks_energy, row.lacks_some) << row.name;
  }
}

TEST(AddCost, KnowsWhatEnergyItLacks) {
  struct Row {
    const char* name;
    std::vector<std::optional<double>> launches;
    std::optional<double> energy;
    bool lacks_some;
  };
  const Row rows[] = {
      {"none", {{}, {}}, {}, false},        {"one", {5}, 5, false},
      {"two", {5, 6}, 11, false},           {"the first alone", {5, {}}, 5, true},
      {"the last alone", {{}, 5}, 5, true}, {"without the middle", {1, {}, 5}, 6, true}};
  for (const Row& row : rows) {
    RunCost sum;
    for (const auto& energy : row.launches) {
      AddCost({.wall = 1, .energy = energy, .lost_energy = energy.value_or(0) / 2}, &sum);
    }
    EXPECT_EQ(sum.energy, row.energy) << row.name;
    EXPECT_EQ(sum.lost_energy, row.energy.value_or(0) / 2) << row.name;
    EXPECT_EQ(sum.lacks_energy, row.lacks_some) << row.name;
  }
  RunCost sum = {.wall = 1, .energy = 1};
  AddCost({.wall = 1, .energy = 1, .lacks_energy = true}, &sum);
  AddCost({.wall = 1, .energy = 1}, &sum);
  EXPECT_TRUE(sum.lacks_energy);
}

TEST(EnergyText, SaysWhatIsKnown) {
  const RunCost known = {.source = kSaved, .energy = 4464000, .lost_energy = 1116000};
  RunCost partial = known;
  partial.lacks_energy = true;
  RunCost without_progress = known;
  without_progress.source = Source::kNone;
  const std::pair<RunCost, const char*> rows[] = {
      {{}, ""},
      {{.source = kSaved, .energy = 17.9}, ""},
      {{.source = kSaved, .energy = 18}, "0.01 Wh"},
      {{.source = kSaved, .energy = 359999, .lost_energy = 17}, "100.00 Wh"},
      {{.source = kSaved, .energy = 360000, .lost_energy = 17999}, "0.10 kWh"},
      {{.source = kSaved, .energy = 7200, .lost_energy = 3600}, "2.00 Wh, 1.00 of it lost"},
      {known, "1.24 kWh, 0.31 of it lost"},
      {partial, "at least 1.24 kWh, 0.31 of it lost"},
      {without_progress, "1.24 kWh"}};
  for (const auto& [cost, text] : rows) EXPECT_EQ(EnergyText(cost), text);
  EXPECT_THAT(CostText(known), HasSubstr(", end 0.0 s, energy 1.24 kWh, 0.31 of it lost"));
  EXPECT_THAT(CostText({}), Not(HasSubstr("energy")));
}

TEST(SplitRun, CountsRestarts) {
  EXPECT_EQ(SplitRun({}, 1).restarts, 0);
  EXPECT_EQ(SplitRun({.starts = {Failed(kNever), Failed(kNever), Second()}}, 1).restarts, 2);
}

TEST(SplitRun, BeginsWhereTheClockIs) {
  const RunCost cost =
      SplitRun({.begin = 1000, .starts = {{.launched = 1001, .running = 1003}}}, 1010);
  EXPECT_EQ(cost.wall, 10);
  EXPECT_EQ(cost.plan, 1);
  EXPECT_EQ(cost.launch, 2);
}

TEST(AsKilled, LosesWhatWasNotSaved) {
  const RunCost cost = AsKilled({.wall = 100, .productive = 90, .repeated = 5, .unsaved = 30});
  EXPECT_EQ(cost.productive, 60);
  EXPECT_EQ(cost.repeated, 35);
  EXPECT_EQ(cost.unsaved, 0);
}

TEST(AddCost, AddsEveryPart) {
  RunCost one = {.source = Source::kCheckpoints, .restarts = 1, .wall = 55, .unsaved = 3};
  double number = 0;
  for (const CostPart& part : CostParts()) one.*part.seconds = ++number;
  RunCost sum = one;
  AddCost(one, &sum);
  number = 0;
  for (const CostPart& part : CostParts()) EXPECT_EQ(sum.*part.seconds, 2 * ++number) << part.name;
  EXPECT_EQ(sum.wall, 110);
  EXPECT_EQ(sum.unsaved, 6);
  EXPECT_EQ(sum.restarts, 2);
  EXPECT_EQ(sum.source, Source::kCheckpoints);
  AddCost({.source = Source::kHeartbeat}, &sum);
  EXPECT_EQ(sum.source, Source::kHeartbeat);
}

TEST(Goodput, IsTheProductiveShare) {
  EXPECT_EQ((RunCost{.source = Source::kCheckpoints, .wall = 8, .productive = 6}.Goodput()), 0.75);
  EXPECT_EQ((RunCost{.source = Source::kHeartbeat, .wall = 8}.Goodput()), 0);
  EXPECT_FALSE((RunCost{.wall = 8, .productive = 6}.Goodput()));
  EXPECT_FALSE((RunCost{.source = Source::kCheckpoints}.Goodput()));
}

TEST(CostText, SaysWhatIsKnown) {
  RunCost cost = {.source = Source::kCheckpoints,
                  .wall = 8000,
                  .plan = 1,
                  .launch = 2,
                  .productive = 6000,
                  .detection = 130.5,
                  .teardown = 0.04,
                  .restart = 7.25,
                  .end = 0.1};
  EXPECT_EQ(CostText(cost),
            "wall time 2 h 13 min, goodput 75.0 %: start 3.0 s, productive 1 h 40 min, lost "
            "2 min 18 s (detection 2 min 11 s, restart 7.2 s), end 0.1 s");
  cost.source = Source::kHeartbeat;
  EXPECT_THAT(CostText(cost), HasSubstr("; repeated time is not known: give --progress-file"));
  EXPECT_EQ(CostText({.wall = 5, .unknown = 5}),
            "wall time 5.0 s: start 0.0 s, running 5.0 s, lost 0.0 s, end 0.0 s; productive time "
            "is not known: give --progress-file");
}

TEST(CostDuration, HasTwoUnitsAtMost) {
  const std::pair<double, const char*> cases[] = {{0, "0.0 s"},          {59.94, "59.9 s"},
                                                  {60, "1 min 0 s"},     {3599.4, "59 min 59 s"},
                                                  {3599.6, "1 h 0 min"}, {360000, "100 h 0 min"}};
  for (const auto& [seconds, text] : cases) EXPECT_EQ(CostDuration(seconds), text);
}

TEST(ProgressSource, HasNames) {
  for (const Source source : {Source::kNone, Source::kHeartbeat, Source::kCheckpoints}) {
    EXPECT_EQ(ProgressSourceOf(NameOf(source)), source);
  }
  EXPECT_FALSE(ProgressSourceOf("steps"));
}

}  // namespace
}  // namespace launcher
