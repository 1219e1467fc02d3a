// SPDX-License-Identifier: Apache-2.0
//
// Single safetensors files: the final weights (--export_dir) and the whole state after one step
// (--dump_state), to be compared with other programs.

#pragma once

#include <filesystem>
#include <string_view>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"

namespace trainer {

// Writes `tensors`, with `metadata` (and as MakeSafetensorsHeader), beside `path`, syncs and
// renames, so that the file is whole or not there; a file of that name is replaced, and what killed
// runs have left of it half written is removed. Throws Error(EX_OSERR) that names the path and says
// to give `instead`: "another --export_dir".
void WriteTensorFile(const std::filesystem::path& path, const std::vector<HostTensor>& tensors,
                     const SafetensorsMetadata& metadata, std::string_view instead);

// What --dump_state holds after a step, NAME being torchvision's:
//   weight.NAME     trained parameters, after the update
//   statistic.NAME  running_mean and running_var, this rank's
//   gradient.NAME   mean over the global batch, without loss scale and without weight decay
//   momentum.NAME   after the update
// `gradient_scale` is that of the update.
std::vector<HostTensor> StateForDump(const Network& network, const FlatGradients& gradients,
                                     double gradient_scale, Stream& stream);

}  // namespace trainer
