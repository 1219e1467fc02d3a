// SPDX-License-Identifier: Apache-2.0
//
// Writes a checkpoint so that a crash, a kill -9 or a full disk at any point leaves either the
// whole of it or nothing:
//   <model_dir>/checkpoints/step-0000001234/{model.safetensors,optimizer.safetensors,manifest.json}
// and average.safetensors where there are moving averages.
// It is made as a hidden directory beside its final name; each file is new, synced and closed; the
// directory is synced, renamed, and its parent synced.  There is no pointer file: a reader scans.
//
// A process whose peer has failed ends when a checkpoint that it is writing is there
// (core/thread.h).
//
// One rank of a run writes; no other thread may write into the same model_dir at the same time.

#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace trainer {

// Seam for tests: called with the name of each system call that changes the disk, before it is
// made. What it throws is handled like a failure of that call.
using WriteHook = std::function<void(std::string_view call)>;

struct CheckpointTensors {
  std::span<const TensorReader> model;         // torchvision's names
  std::span<const TensorReader> optimizer;     // momentum, by the same names
  std::span<const TensorReader> average = {};  // of the model's, moving ones; empty: no such file
};

// Returns the directory written, durable.  If a checkpoint of the same step and the same content is
// there already, evaluated or not, it is kept, and gets state.top1 if that has a value; one that
// cannot be used is set aside (retention.h); a valid one of other content is an Error(EX_DATAERR),
// for two runs must not share a model_dir. Throws Error(EX_OSERR) that names the path and what to
// do; then nothing new is left, and older checkpoints are untouched.
std::filesystem::path WriteCheckpoint(const std::filesystem::path& model_dir,
                                      const CheckpointState& state,
                                      const CheckpointTensors& tensors, const WriteHook& hook = {});

// For start-up: removes the hidden directories of writers that are dead (retention.h).  Returns how
// many.
int RemoveStaleCheckpoints(const std::filesystem::path& model_dir);

// The few system calls that make files and directories outlive a crash, with one message for all
// their failures.

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
