// SPDX-License-Identifier: Apache-2.0
//
// Words out of a text for people (support/quoting.h is the way back).  The launcher runs nothing
// from it.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// Splits the value of an option, such as --mpiarg "-x NAME", into words at its blanks.  It does not
// split at blanks within '...' or "..." or after a backslash.  No variable, command or pattern is
// expanded.  Throws LaunchError(EX_USAGE) for a quote that is not closed.
std::vector<std::string> SplitOnWhitespace(const std::string& text);
// The same of several, one behind the other.
std::vector<std::string> SplitAll(const std::vector<std::string>& texts);

}  // namespace launcher
