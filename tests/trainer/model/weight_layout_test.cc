// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/weight_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/backend/registry.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

std::vector<Fact> LayoutOn(const std::string& name, std::int64_t classes = 10) {
  const auto backend = MakeBackend(name, {.threads = 1});
  const auto stream = backend->MakeStream();
  const Network network(*backend, {"resnet_tiny", 2, 32, 32, classes, 0});
  return WeightLayout(network, *backend, *stream);
}

const Fact& Find(const std::vector<Fact>& facts, const std::string& name) {
  return *std::find_if(facts.begin(), facts.end(),
                       [&](const Fact& fact) { return fact.name == name; });
}

TEST(WeightLayout, IsTheSameEachTimeOnEveryBackEnd) {
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;
    EXPECT_EQ(LayoutOn(name), LayoutOn(name)) << name;
  }
}

TEST(WeightLayout, HasWhereEachTrainedParameterBeginsAndHowItLies) {
  const std::vector<Fact> facts = LayoutOn("reference");
  EXPECT_EQ(facts.front(), (Fact{"conv1.weight", "conv1.weight from element 0 on, row by row"}));
  EXPECT_THAT(facts, testing::Not(Contains(Field(&Fact::name, HasSubstr("running_mean")))));
}

TEST(WeightLayout, OfMoreClassesMovesNothingInFrontOfTheLastLayer) {
  const std::vector<Fact> ten = LayoutOn("reference");
  const std::vector<Fact> more = LayoutOn("reference", 20);
  EXPECT_EQ(Find(ten, "fc.weight").text, Find(more, "fc.weight").text);
  EXPECT_NE(Find(ten, "fc.bias").text, Find(more, "fc.bias").text);
}

// oneDNN's blocked filters are the same numbers in another order: summed with those of `reference`
// they are nonsense.
TEST(WeightLayout, OrdersThatOnlyTheBackEndKnowsAreToldApart) {
  const std::vector<std::string> names = BackendNames();
  if (std::find(names.begin(), names.end(), "cpu") == names.end()) GTEST_SKIP() << "no oneDNN";
  const std::vector<Fact> facts = LayoutOn("cpu");
  const std::string filter = Find(facts, "layer1.0.conv2.weight").text;
  if (filter.find("in the order") == std::string::npos) {
    GTEST_SKIP() << "oneDNN blocks nothing on this machine: " << filter;
  }
  EXPECT_NE(filter, Find(LayoutOn("reference"), "layer1.0.conv2.weight").text);
}

}  // namespace
}  // namespace trainer
