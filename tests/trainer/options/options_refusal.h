// SPDX-License-Identifier: Apache-2.0
//
// What ddltraind says of a command line that it does not take.

#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/options/options.h"

namespace trainer {

// "accepted" where it takes it.
inline std::string Refusal(const std::vector<std::string>& arguments) {
  try {
    ParseOptions(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n"))) << "one line";
    return error.what();
  }
  return "accepted";
}

}  // namespace trainer
