// SPDX-License-Identifier: Apache-2.0
//
// Files of images as people name them: themselves, or the directories that they lie in.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {

inline constexpr std::uint64_t kMaxImageFileBytes = 1U << 28;

// Directories in each other; a link to a directory above would lead round and round.
inline constexpr int kMaxDirectoryDepth = 16;
// The error of a directory below so many.
Error TooManyDirectories(const std::string& path);

// Sorted by name: the order in which a file system lists a directory is its own.  Throws
// Error(EX_DATAERR) with the path.
std::vector<std::filesystem::directory_entry> EntriesOf(const std::filesystem::path& directory);

// `given` in their order: a file as it is, whatever its name; of a directory all that by their
// names are images (image_names.h), in it and in the directories below, sorted, without those that
// are hidden.  Throws Error(EX_DATAERR) that names what is not there, cannot be read or is a
// directory without images.
std::vector<std::filesystem::path> FindImageFiles(std::span<const std::filesystem::path> given);

}  // namespace trainer
