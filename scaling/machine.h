// SPDX-License-Identifier: Apache-2.0
//
// A machine as people describe it, in a site file or by options: what is not said is unknown. Pure.
//
//   gpu: NAME               "V100-SXM2-32GB"
//   gpus_per_node: N
//   inside: NAME|GB/s       links between the GPUs of a node: a name (links.h) or a rate
//   adapters: N             of a node to the others
//   adapter_gbits: X        Gbit/s of each
//   file_system_gbs: X      GB/s of the shared file system, all nodes together

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/links.h"

namespace scaling {

// How fast one GPU trains ResNet-50 v1.5 at 224 x 224 pixels and 256 images (fp32: 128), and what
// it draws, where that is known.  Pure.
struct Gpu {
  std::string_view name;  // a part of what driver, Slurm and people call it
  double half = 0;        // images/s in fp16; 0: not known, as below
  double tf32 = 0;
  double fp32 = 0;
  double watts = 0;         // limit of the board
  double gigabytes = 0;     // of memory, the least that it is sold with
  std::string_view inside;  // how several of them in a node are joined (links.h)
  std::string_view source;  // of the images/s
};

// Null for one that is not known, and for "".  Upper and lower case are the same.
const Gpu* FindGpu(std::string_view name);

// Images/s by a precision of ddltraind; 0: not known.
double SpeedOf(const Gpu& gpu, std::string_view precision);

struct Machine {
  std::string gpu;  // "": not said
  std::optional<int> gpus_per_node;
  std::optional<std::string> inside;
  std::optional<int> adapters;
  std::optional<double> adapter_gbits;
  std::optional<double> file_system_gbs;
};

// In the order above.
const std::vector<std::string>& MachineKeys();

// Returns "" or what `value` should have been ("a whole number from 1 to 64").  REQUIRES: `key` is
// one of MachineKeys().
std::string SetMachineValue(Machine& machine, const std::string& key, const std::string& value);

// What is said, and else: 4 GPUs, those of its kind that are known to be linked or NVLink
// of Volta, one adapter of 100 Gbit/s.
Links LinksOf(const Machine& machine);

// The same in words: "4 GPUs per node, xbus (32 GB/s) inside, 2 adapters of 100 Gbit/s", with
// "assumed" behind what was not said.
std::string DescribeLinks(const Machine& machine);

// What ddltraind takes of a GPU's memory for ResNet-50 at 224 x 224 pixels, and the batch that
// fits, before there is a GPU.  By its plan of the network, to which a test holds these figures,
// and with 1.5 GB for CUDA, its libraries and the workspace of cuDNN's engines, which depend on the
// card: ddltraind --dry_run on a node knows.  Pure.

// Of one rank on a GPU of its own, in bytes, by a precision of ddltraind.
double EstimateMemory(std::string_view precision, std::int64_t batch);

// A multiple of 8, as tensor cores want it; 0: not one such batch fits.
std::int64_t LargestBatch(std::string_view precision, double memory);

// Bytes of a GPU: "V100-SXM2-32GB" says so, of other names that are known it is the least that the
// GPU comes with.  0: not known.
double MemoryOf(std::string_view gpu);

}  // namespace scaling
