// SPDX-License-Identifier: Apache-2.0
//
// A page as a completion for bash 4.2 and later, with the package bash-completion or without it.
// Pure.

#pragma once

#include <string>

#include "manual/pages.h"

namespace manual {

std::string FormatBashCompletion(const Page& page);

}  // namespace manual
