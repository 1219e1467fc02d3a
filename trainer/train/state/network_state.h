// SPDX-License-Identifier: Apache-2.0
//
// A network's numbers as named host tensors, for checkpoint files, and back.

#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/network.h"

namespace trainer {

// The running statistics of batch norm, which every rank has of its own.  Evaluation and saved
// models use their mean over the ranks; training goes on with each rank's own, so that saving or
// evaluating changes nothing.
//
// A row is the statistics of one rank, in the order of Network::parameters(), without padding.

// `part`: kValue, or kAverage for their moving averages.
std::vector<float> ExportStatistics(const Network& network, Stream& stream,
                                    Network::Part part = Network::Part::kValue);
void ImportStatistics(Network& network, std::span<const float> row, Stream& stream,
                      Network::Part part = Network::Part::kValue);

// The rows of all ranks, rank 0's first.  Collective: all ranks call it.
std::vector<float> GatherRows(std::span<const float> own, Communicator& communicator);

// Element by element, summed in double in the order of the ranks.
std::vector<float> MeanOfRows(std::span<const float> rows, int ranks);

// The mean over all ranks of `own`.  Collective.
std::vector<float> MeanOverRanks(std::span<const float> own, Communicator& communicator);

struct HostTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  // row-major
};

// `part` of every parameter, in torchvision's order; momentum has no statistics.  Names
// are `prefix` and torchvision's.
std::vector<HostTensor> ExportPart(const Network& network, Network::Part part,
                                   const std::string& prefix, Stream& stream);

// Throws NotFinite that names the first tensor with a value that is NaN or infinite:
// weights from which nobody could go on are not worth a file.  REQUIRES: all are fp32.
void RejectNotFinite(std::span<const TensorReader> tensors);

// Views; `tensors` outlives them.
std::vector<TensorReader> SourcesOf(const std::vector<HostTensor>& tensors);

// What a file must hold to be `part` of `network`; torchvision's num_batches_tracked may be there.
// Here and below, parameters whose names begin with `left_out` are passed over, where it is given.
std::vector<ExpectedTensor> ExpectedTensors(const Network& network, Network::Part part,
                                            std::string_view left_out = {});

// REQUIRES: CheckTensors(file, ExpectedTensors(network, part, left_out)) did not throw.
void ImportPart(Network& network, Network::Part part, const SafetensorsFile& file, Stream& stream,
                std::string_view left_out = {});

// Collective: gives every rank what rank 0 has.
void BroadcastPart(Network& network, Network::Part part, Communicator& communicator,
                   Stream& stream);

// Throws Error(EX_DATAERR) that names the file and the first tensor with a value that is NaN or
// infinite, or with a variance below 0: a ReLU hides such a value, and figures come out.
// REQUIRES: as ImportPart, of the values.
void RejectUnusable(const SafetensorsFile& file, const Network& network,
                    std::string_view left_out = {});

// The values of a tensor of type fp32, or of 16 bits, each of which fp32 has exactly.
std::vector<float> ReadValues(const SafetensorsFile& file, const TensorEntry& entry);

// Evaluations and exports of a training that keeps moving averages of its weights (--ema) are of
// the averages; the training goes on with the weights.
//
// Calls `use` with the averages instead of weights and statistics, which are then as before, bit
// for bit, also where `use` throws; meanwhile host memory holds them.  Without averages it just
// calls.
void SwapInEma(Network& network, Stream& stream, const std::function<void()>& use);

// Single safetensors files: the final weights (--export_dir) and the whole state after one step
// (--dump_state), to be compared with other programs.

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
