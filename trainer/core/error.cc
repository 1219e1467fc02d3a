// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/error.h"

#include <system_error>

namespace trainer {

Error OsError(const std::string& action, int error_number) {
  return {EX_OSERR, action + ": " + std::generic_category().message(error_number)};
}

namespace detail {

void CheckFailed(const char* file, int line, const char* condition) {
  throw Error(EX_SOFTWARE, std::string(file) + ":" + std::to_string(line) +
                               ": a mistake in this program: " + condition + " does not hold");
}

}  // namespace detail
}  // namespace trainer
