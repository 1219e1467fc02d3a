// SPDX-License-Identifier: Apache-2.0

#include "trainer/own_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/backend/registry.h"

namespace trainer {
namespace {

TEST(OwnDevice, NamesTheCpuWhereItIsTheDevice) {
  const auto backend = MakeBackend("reference", {});
  EXPECT_THAT(OwnDevice(*backend).Describe(), testing::StartsWith("CPU"));
}

}  // namespace
}  // namespace trainer
