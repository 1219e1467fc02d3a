// SPDX-License-Identifier: Apache-2.0
//
// A page as a manual page: roff with the macros of man(7).  Pure.

#pragma once

#include <string>

#include "manual/pages.h"

namespace manual {

// `date` is YYYY-MM-DD, `release` "ddlrun 0.1.0".
std::string FormatRoff(const Page& page, const std::string& date, const std::string& release);

// A page of doc/reference/options: a heading for each option, which can be linked to.  Pure.

std::string FormatMarkdown(const Page& page);

}  // namespace manual
