// SPDX-License-Identifier: Apache-2.0
//
// What this build of the project is, as CMake knows it.  Pure: nothing is loaded or run to tell it.

#pragma once

#include <string>

namespace support {

// "0.1.0": of all programs of the build.
std::string ProgramVersion();

// Which optional libraries it was built with, and which were left out, a line each, the last
// without its end; programs print it below their version:
//   built with: oneDNN 2.6.0 (back end cpu), MPI, PMIx 4.2.2, UCX 1.13.1, libpng 1.6.39
//   built without: CUDA, cuDNN, NCCL, NVTX
std::string BuildText();

// Both, as --version prints them.
std::string VersionText();
inline constexpr const char* kVersionHelp =
    "Print the version, and the libraries that this build has";

}  // namespace support
