// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/registry.h"

#include <gmock/gmock.h>

#include <set>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(Registry, AlwaysHasTheReferenceAsTheSlowest) {
  ASSERT_FALSE(BackendNames().empty());
  EXPECT_EQ(BackendNames().back(), "reference");
}

TEST(Registry, MakesEachByItsName) {
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;  // see below
    const auto backend = MakeBackend(name, {});
    EXPECT_EQ(backend->name(), name);
    EXPECT_THAT(backend->description(), HasSubstr(name));
    EXPECT_EQ(backend->description().find('\n'), std::string::npos);
  }
}

// Nodes with other numbers of cores may work together; ranks that compute otherwise may not.
TEST(Registry, ArithmeticIsThatOfAnyNumberOfThreads) {
  std::set<std::string> arithmetics;
  std::size_t works_here = 0;
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;
    const std::string one = MakeBackend(name, {.threads = 1})->arithmetic();
    EXPECT_EQ(MakeBackend(name, {.threads = 2})->arithmetic(), one);
    EXPECT_THAT(one, HasSubstr("fp32"));
    arithmetics.insert(one);
    ++works_here;
  }
  EXPECT_EQ(arithmetics.size(), works_here) << "two back ends say the same";
}

TEST(Registry, AutoIsTheFastestThatWorksHere) {
  std::vector<std::string> names = BackendNames();
  std::erase_if(names, [](const std::string& name) { return !BackendProblem(name).empty(); });
  EXPECT_EQ(MakeBackend("auto", {})->name(), names.front());
}

TEST(Registry, TheChoiceSaysWhyThereIsNoGpu) {
  const BackendChoice choice = ChooseBackend();
  EXPECT_EQ(choice.name, MakeBackend("auto", {})->name());
  EXPECT_EQ(choice.why_no_gpu.empty(), choice.name == "cuda");
  const std::vector<std::string> names = BackendNames();
  if (choice.name == "cuda") return;
  if (names.front() == "cuda") {
    EXPECT_EQ(choice.why_no_gpu, BackendProblem("cuda"));
  } else {
    EXPECT_THAT(choice.why_no_gpu, HasSubstr("built without the back end cuda"));
  }
}

TEST(Registry, SaysWhyABackendCannotRunHere) {
  bool is_any = false;
  for (const std::string& name : BackendNames()) {
    const std::string problem = BackendProblem(name);
    if (problem.empty()) continue;
    is_any = true;
    try {
      MakeBackend(name, {});
      ADD_FAILURE() << name << " was made all the same";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
      EXPECT_THAT(error.what(), HasSubstr(problem));
    }
  }
  if (!is_any) GTEST_SKIP() << "all back ends of this build run here";
}

TEST(Registry, RefusesAnUnknownNameAndListsTheKnown) {
  try {
    MakeBackend("gpu", {});
    FAIL() << "there is no back end called gpu";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    EXPECT_THAT(error.what(), HasSubstr("\"gpu\""));
    EXPECT_THAT(error.what(), HasSubstr("auto"));
    for (const std::string& name : BackendNames()) EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace trainer
