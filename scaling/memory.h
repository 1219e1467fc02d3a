// SPDX-License-Identifier: Apache-2.0
//
// What ddltraind takes of a GPU's memory for ResNet-50 at 224 x 224 pixels, and the batch that
// fits, before there is a GPU.  By its plan of the network, to which a test holds these figures,
// and with 1.5 GB for CUDA, its libraries and the workspace of cuDNN's engines, which depend on the
// card: ddltraind --dry_run on a node knows.  Pure.

#pragma once

#include <cstdint>
#include <string_view>

namespace scaling {

// Of one rank on a GPU of its own, in bytes, by a precision of ddltraind.
double EstimateMemory(std::string_view precision, std::int64_t batch);

// A multiple of 8, as tensor cores want it; 0: not one such batch fits.
std::int64_t LargestBatch(std::string_view precision, double memory);

// Bytes of a GPU: "V100-SXM2-32GB" says so, of other names that are known it is the least that the
// GPU comes with.  0: not known.
double MemoryOf(std::string_view gpu);

}  // namespace scaling
