// SPDX-License-Identifier: Apache-2.0
//
// Lists a directory of /proc, /sys or /dev.

#pragma once

#include <filesystem>
#include <vector>

namespace launcher {

// The paths of the entries of `directory`, sorted; none where it cannot be read.
std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& directory);

}  // namespace launcher
