// SPDX-License-Identifier: Apache-2.0
//
// Commands as text for people (support/quoting.h), and words out of such a text.  The launcher runs
// nothing from it.  Pure.

#pragma once

#include <string>
#include <vector>

#include "support/quoting.h"

namespace launcher {

using support::QuoteCommand;

// Splits the value of an option, such as --mpiarg "-x NAME", into words at its blanks.  It does not
// split at blanks within '...' or "..." or after a backslash.  No variable, command or pattern is
// expanded.  Throws LaunchError(EX_USAGE) for a quote that is not closed.
std::vector<std::string> SplitWords(const std::string& text);

}  // namespace launcher
