// SPDX-License-Identifier: Apache-2.0
//
// A page of doc/reference/options: a heading for each option, which can be linked to.  Pure.

#pragma once

#include <string>

#include "manual/page.h"

namespace manual {

std::string FormatMarkdown(const Page& page);

}  // namespace manual
