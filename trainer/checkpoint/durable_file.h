// SPDX-License-Identifier: Apache-2.0
//
// The few system calls that make files and directories outlive a crash, with one message for all
// their failures.  Every function calls `hook` before each system call.

#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "trainer/checkpoint/writer.h"

namespace trainer {

// Creates `path` (which must not exist), writes `pieces` one behind the other, syncs and closes it.
// Throws Error(EX_OSERR); then a part of the file may be left.
void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteHook& hook);

// Makes the entries of the directory `path` durable.
void SyncDirectory(const std::filesystem::path& path, const WriteHook& hook);

// Creates `path` and what is missing above it; new entries are durable.
void MakeDirectories(const std::filesystem::path& path, const WriteHook& hook);
// Creates `path` itself, which must not exist.
void MakeNewDirectory(const std::filesystem::path& path, const WriteHook& hook);

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteHook& hook);

}  // namespace trainer
