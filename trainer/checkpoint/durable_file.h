// SPDX-License-Identifier: Apache-2.0
//
// The few system calls that make files and directories outlive a crash, with one message for all
// their failures.

#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "trainer/checkpoint/writer.h"

namespace trainer {

struct WriteContext {
  const WriteHook& hook;  // called before each system call
  // What the user can give instead of what fails, for its message: "another --export_dir".
  std::string_view instead;
};

// Creates `path` (which must not exist), writes `pieces` one behind the other, syncs and closes it.
// Throws Error(EX_OSERR); then a part of the file may be left.
void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteContext& context);

// Makes the entries of the directory `path` durable.  A file system that does not know how to sync
// (some of FUSE, some of CIFS) is taken as it is, here as in WriteNewFile: what it has written is
// all that can be had there.
void SyncDirectory(const std::filesystem::path& path, const WriteContext& context);

// Creates `path` and what is missing above it; new entries are durable.
void MakeDirectories(const std::filesystem::path& path, const WriteContext& context);
// Creates `path` itself, which must not exist.
void MakeNewDirectory(const std::filesystem::path& path, const WriteContext& context);

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteContext& context);
// The same, but never instead of something: false, and nothing changed, where `to` is there.  On a
// file system without hard links one that appears in that very moment is replaced.
bool RenameIfNew(const std::filesystem::path& from, const std::filesystem::path& to,
                 const WriteContext& context);

}  // namespace trainer
