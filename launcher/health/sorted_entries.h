// SPDX-License-Identifier: Apache-2.0
//
// The names in a folder of /proc, /sys or /dev.

#pragma once

#include <filesystem>
#include <vector>

namespace launcher {

// The paths of what is in `folder`, in order; none where it cannot be read.
std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& folder);

}  // namespace launcher
