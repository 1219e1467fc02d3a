// SPDX-License-Identifier: Apache-2.0
//
// The refusal of a system call, as an exception.

#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "launcher/base/error.h"

namespace launcher {

// "cannot make a pipe: Too many open files"; the reason is that of errno.
inline LaunchError OsError(const std::string& action) {
  return LaunchError(EX_OSERR, action + ": " + std::strerror(errno));
}

}  // namespace launcher
