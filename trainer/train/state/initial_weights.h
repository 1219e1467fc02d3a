// SPDX-License-Identifier: Apache-2.0
//
// Weights that a run begins with (config.init_from), as this and other programs write them.

#pragma once

#include "trainer/train/state/snapshot.h"

namespace trainer {

// Sets all values from config.init_from, any safetensors file with torchvision's names and shapes;
// of a directory from the best checkpoint of that run, with its moving averages where it has them,
// for these were evaluated.  Averages that this run keeps start from the values.  With
// config.new_head the last layer stays as it is, whatever the file has of one.
//
// A prefix that the names have in common ("module.", "model._orig_mod.") is taken off, and values
// of 16 bits are widened: rank 0 says so.  num_batches_tracked, and n_averaged of averaged models,
// are ignored.  With config.new_head tensors outside of the prefix are left out, and named.
//
// Collective.  Throws Error(EX_DATAERR) that names the form of a file that is no safetensors file,
// or the tensor that is missing, unknown or of another shape, or has a value that is of no use;
// Error(EX_USAGE) for a directory without a checkpoint that was evaluated.
void InitializeFromFile(const SnapshotDeps& deps);

}  // namespace trainer
