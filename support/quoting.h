// SPDX-License-Identifier: Apache-2.0
//
// Commands as text for people: what is printed can be pasted into a shell, or be a line of a job
// script.  Nothing is run from such a text.  Pure.

#pragma once

#include <string>
#include <vector>

namespace support {

// The words with blanks between them, each quoted for a POSIX shell where it needs to be.
std::string QuoteCommand(const std::vector<std::string>& words);

}  // namespace support
