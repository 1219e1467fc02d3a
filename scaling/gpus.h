// SPDX-License-Identifier: Apache-2.0
//
// How fast one GPU trains ResNet-50 v1.5 at 224 x 224 pixels and 256 images (fp32: 128), and what
// it draws, where that is known.  Pure.

#pragma once

#include <string_view>

namespace scaling {

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

}  // namespace scaling
