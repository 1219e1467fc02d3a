// SPDX-License-Identifier: Apache-2.0
//
// Reads the small texts of /proc, /sys and /etc.  Nothing here throws: what cannot be read is "".

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace launcher {

// Without its end.
std::string FirstLine(const std::filesystem::path& path);

// Without blanks, tabs and double quotes around it.
std::string Trimmed(const std::string& text);

// The value of the first line "key SEPARATOR value", trimmed.
std::string ValueOf(const std::filesystem::path& path, const std::string& key, char separator);

// The paths of the entries of `directory`, sorted; none where it cannot be read.
std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& directory);

}  // namespace launcher
