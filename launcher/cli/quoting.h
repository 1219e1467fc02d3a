// SPDX-License-Identifier: Apache-2.0
//
// Commands as text for people: what is printed can be pasted into a shell, or be a line of a job
// script.  The launcher runs nothing from such a text.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// The words with blanks between them, each quoted for a POSIX shell where it needs to be.
std::string QuoteCommand(const std::vector<std::string>& words);

// Splits the value of an option, such as --mpiarg "-x NAME", into words at its blanks.  It does not
// split at blanks within '...' or "..." or after a backslash.  No variable, command or pattern is
// expanded.  Throws LaunchError(EX_USAGE) for a quote that is not closed.
std::vector<std::string> SplitWords(const std::string& text);

}  // namespace launcher
