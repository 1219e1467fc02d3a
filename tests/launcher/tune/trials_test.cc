// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Knob Networks() {
  return {"network", {{"eth0", {{}, {{"NET", "eth0"}}}}, {"eth1", {{}, {{"NET", "eth1"}}}}}};
}

// Plants figures: of each network the times of its runs, one after the other.
class Planted {
 public:
  explicit Planted(std::map<std::string, std::vector<double>> times) : times_(std::move(times)) {}

  std::optional<double> operator()(const Change& change) {
    const auto found = change.variables.find("NET");
    const std::string name = found == change.variables.end() ? "" : found->second;
    order_ += name.empty() ? "-" : name.substr(3);
    const std::vector<double>& times = times_[name];
    const std::size_t run = runs_[name]++;
    if (run >= times.size()) return std::nullopt;
    return times[run];
  }

  const std::string& order() const { return order_; }

 private:
  std::map<std::string, std::vector<double>> times_;
  std::map<std::string, std::size_t> runs_;
  std::string order_;
};

KnobResult Try(Planted& planted) {
  return TryKnob(Networks(), {}, [&planted](const Change& change) { return planted(change); });
}

TEST(TryKnob, TakesTheBestOfThoseThatAreBetter) {
  Planted planted({{"", {100, 101, 99, 100, 100}},
                   {"eth0", {80, 81, 79, 80, 80}},
                   {"eth1", {70, 71, 69, 70, 70}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.tried[result.best].label, "eth1");
  EXPECT_EQ(result.tried[result.best].change.variables.at("NET"), "eth1");
  EXPECT_EQ(ResultLines(result)[0], "network: eth1 is better");
  EXPECT_THAT(ResultLines(result)[3], HasSubstr("eth1: 70.0 us (scatter 0.00 us)"));
}

TEST(TryKnob, KeepsWhatIsThereWithinTheScatter) {
  Planted planted({{"", {100, 90, 110, 105, 95}},
                   {"eth0", {95, 85, 105, 100, 90}},
                   {"eth1", {98, 99, 98, 99, 98}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.best, 0U);
  EXPECT_THAT(ResultLines(result)[0], HasSubstr("kept as it is"));
}

TEST(TryKnob, MeasuresInTurnsThatBeginElsewhere) {
  const std::vector<double> same(5, 10);
  Planted planted({{"", same}, {"eth0", same}, {"eth1", same}});
  Try(planted);
  EXPECT_EQ(planted.order(), "-0101-1-0-0101-");
}

TEST(TryKnob, GivesUpWhatIsHopelessAfterOneRound) {
  const std::vector<double> same(5, 10);
  Planted planted({{"", same}, {"eth0", {31}}, {"eth1", same}});
  const KnobResult result = Try(planted);
  EXPECT_TRUE(result.tried[1].hopeless);
  EXPECT_EQ(result.tried[1].microseconds.size(), 1U);
  EXPECT_FALSE(result.tried[1].failed);
  EXPECT_EQ(result.best, 0U);
  EXPECT_THAT(ResultLines(result)[2], HasSubstr("not tried again"));
}

TEST(TryKnob, TakesWhatRunsWhereWhatIsThereDoesNot) {
  Planted planted({{"eth0", {12, 12, 12, 12, 12}}, {"eth1", {11, 11, 11, 11, 11}}});
  const KnobResult result = Try(planted);
  EXPECT_TRUE(result.tried[0].failed);
  EXPECT_EQ(result.tried[result.best].label, "eth1");
  EXPECT_EQ(ResultLines(result)[1], "  as it is: failed");
}

TEST(TryKnob, DoesNotTakeWhatFailsInALaterRound) {
  Planted planted({{"", {100, 100, 100, 100, 100}}, {"eth0", {10, 10}}, {"eth1", {}}});
  const KnobResult result = Try(planted);
  EXPECT_EQ(result.best, 0U);
  EXPECT_TRUE(result.tried[1].failed);
}

TEST(TryKnob, TriesOnTopOfWhatWasChosenBefore) {
  const Change base = {{{"bind", "none"}}, {}};
  bool is_on_top = true;
  const KnobResult result = TryKnob(Networks(), base, [&is_on_top](const Change& change) {
    is_on_top = is_on_top && change.keys.at("bind") == "none";
    return 1.0;
  });
  EXPECT_TRUE(is_on_top);
}

}  // namespace
}  // namespace launcher
