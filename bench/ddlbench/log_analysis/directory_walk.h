// SPDX-License-Identifier: Apache-2.0
//
// The files of a directory and of those below it, of which some may not be readable.

#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "bench/base/diagnostics.h"

namespace bench {

// Those for which `is_wanted` holds, by name; links to directories are not followed.  Each
// directory that cannot be read is a problem of its own, with EX_NOINPUT, and the others are read
// all the same.
std::vector<std::filesystem::path> FilesBelow(
    const std::filesystem::path& directory,
    const std::function<bool(const std::filesystem::path&)>& is_wanted, Diagnostics& diagnostics);

}  // namespace bench
