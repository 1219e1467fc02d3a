// SPDX-License-Identifier: Apache-2.0
//
// What this build of the project is, as CMake knows it.  Pure: nothing is loaded or run to tell it.

#pragma once

#include <string>

namespace support {

// "0.1.0": of all programs of the build.
std::string ProgramVersion();

// The GPUs that the back end cuda has code for, "compute capability 8.0, 9.0, later ones by PTX of
// 9.0"; "" in a build without it.
std::string GpusOfBuild();

// What is installed by itself: a launcher knows nothing of the trainer that is installed beside it.
enum class Part { kLauncher, kTrainer };

// Which optional libraries the programs of `part` were built with, and which were left out, a line
// each, the last without its end; programs print it below their version:
//   built with: oneDNN 2.6.0 (back end cpu), MPI, libpng 1.6.39
//   built without: CUDA, cuDNN, NCCL, NVTX
std::string BuildText(Part part);

// Both, as --version prints them.
std::string VersionText(Part part);

// Where reports go, as the file CONTACT has it: bugs, and faults that others could use.
std::string BugAddress();
std::string SecurityAddress();

// The last lines of every --help: where the reference is, and where bugs are reported.
std::string HelpFooter();

inline constexpr const char* kVersionHelp =
    "Print the version, and the libraries that this build has";

}  // namespace support
