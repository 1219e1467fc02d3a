// SPDX-License-Identifier: Apache-2.0
//
// Which files and directories of writers will never be finished.

#pragma once

#include <filesystem>
#include <string>

#include "trainer/checkpoint/names.h"

namespace trainer {

// Whether `owner` is dead, as far as can be known: its process on this host is gone, or nothing in
// `path`, which it was writing, has changed for an hour (on another host; or another process has
// its number now).
bool IsStale(const std::filesystem::path& path, const TemporaryOwner& owner);

// The name under which this process makes the file `path`: <path>.partial-<host>-<pid>.
std::filesystem::path PartialName(const std::filesystem::path& path);

// Removes what dead processes have left under PartialName(path), and returns how many.
int RemoveStalePartials(const std::filesystem::path& path);

}  // namespace trainer
