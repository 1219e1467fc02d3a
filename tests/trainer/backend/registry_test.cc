// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/registry.h"

#include <gmock/gmock.h>

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
    const auto backend = MakeBackend(name, {});
    EXPECT_EQ(backend->name(), name);
    EXPECT_THAT(backend->description(), HasSubstr(name));
    EXPECT_EQ(backend->description().find('\n'), std::string::npos);
  }
}

TEST(Registry, AutoIsTheFastest) {
  EXPECT_EQ(MakeBackend("auto", {})->name(), BackendNames().front());
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
