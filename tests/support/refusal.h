// SPDX-License-Identifier: Apache-2.0
//
// What a program says of something that it does not take.

#pragma once

#include "tests/support/test.h"

namespace tests {

// The message of the Error that `call` throws; `accepted` where it throws none.
template <class Error, class Call>
std::string Rejection(Call call, const std::string& accepted = "") {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return accepted;
}

// The same of an Error whose exit code is this.
template <class Error, class Call>
std::string Rejection(int exit_code, Call call, const std::string& accepted = "") {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code) << error.what();
    return error.what();
  }
  return accepted;
}

}  // namespace tests
