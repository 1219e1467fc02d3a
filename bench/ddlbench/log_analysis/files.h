// SPDX-License-Identifier: Apache-2.0
//
// Directories and files that ddlbench makes.  Each throws trainer::Error(EX_OSERR) that names the
// path when it cannot.

#pragma once

#include <filesystem>
#include <string>

namespace bench {

// With the directories above it; one that is there is fine.
void MakeDirectory(const std::filesystem::path& directory);

void Rename(const std::filesystem::path& from, const std::filesystem::path& to);

// Whole or not at all (support/file.h), in a directory that is made if need be.
void WriteFile(const std::filesystem::path& path, const std::string& text);

bool Exists(const std::filesystem::path& path);

// The last line of a log that is not empty; "" when there is none or it cannot be read.
std::string LastLineOf(const std::filesystem::path& path);

}  // namespace bench
