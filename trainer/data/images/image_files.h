// SPDX-License-Identifier: Apache-2.0
//
// Files of images as people name them: themselves, or the directories that they lie in.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {

// What the name of a file says of it.  Pure.

// Behind the last '/'.
std::string_view BaseName(std::string_view path);

// Whether the name ends with `ending`, which is in small letters, in any case: .TAR is .tar.
bool HasEnding(std::string_view name, std::string_view ending);
// Whether the name ends as that of an image, whatever its case: .JPEG, .jpg, .png, and other kinds
// that no one here decodes, so that such an image is complained of and not passed over.
bool HasImageEnding(std::string_view name);
// Without such an ending.
std::string_view WithoutImageEnding(std::string_view name);

// Whether the file, or a directory that the path names from where files are looked for, is one that
// programs leave behind: those of file managers, macOS and Jupyter begin with a dot; a file system
// has lost+found, which only root can read; macOS packs __MACOSX; network storage and Windows have
// thumbnails (@eaDir), deleted files and snapshots.
bool IsHidden(std::string_view path);

inline constexpr std::uint64_t kMaxImageFileBytes = 1U << 28;

// Directories in each other; a link to a directory above would lead round and round.
inline constexpr int kMaxDirectoryDepth = 16;
// The error of a directory below so many.
Error TooManyDirectories(const std::string& path);

// Sorted by name: the order in which a file system lists a directory is its own.  Throws
// Error(EX_DATAERR) with the path.
std::vector<std::filesystem::directory_entry> EntriesOf(const std::filesystem::path& directory);

// What to write instead of a path at which there is nothing, as the end of a sentence: one with
// what a shell makes names of, a URL, several paths in one word; "" for any other.
std::string AdviceOfMissing(std::string_view path);

// `given` in their order: a file as it is, whatever its name; of a directory all that by their
// names are images, in it and in the directories below, sorted, without those that
// are hidden.  Throws Error(EX_DATAERR) that names what is not there, cannot be read or is a
// directory without images.
std::vector<std::filesystem::path> FindImageFiles(std::span<const std::filesystem::path> given);

}  // namespace trainer
