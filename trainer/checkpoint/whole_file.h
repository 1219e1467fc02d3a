// SPDX-License-Identifier: Apache-2.0
//
// Reads a regular file into memory.  Not mapped: a mapped file that shrinks or sits on a bad disk
// is a SIGBUS, not an error message.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainer {

// Throws Error(EX_OSERR) that names `path`; a missing file, or one that is not regular, is an
// Error(EX_DATAERR).
std::vector<std::byte> ReadWholeFile(const std::string& path);

}  // namespace trainer
