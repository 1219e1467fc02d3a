// SPDX-License-Identifier: Apache-2.0
//
// The manual of every program that people type, from its option table.  Pure.

#pragma once

#include <vector>

#include "manual/page.h"

namespace manual {

// One for each program, in the order of doc/reference/launching.md.
std::vector<Page> AllPages();

}  // namespace manual
