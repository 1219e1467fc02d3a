// SPDX-License-Identifier: Apache-2.0
//
// Lists a folder of /proc, /sys or /dev.

#pragma once

#include <filesystem>
#include <vector>

namespace launcher {

// The paths of the entries of `folder`, sorted; none where it cannot be read.
std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& folder);

}  // namespace launcher
