// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint notes of how it was made, so that a run which goes on can say what has changed.

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trainer/options/options.h"

namespace trainer {

// By name, as a person would write it: the options that change what is learned, the back end, and
// the training data (`images` of them; files by number and a checksum of their names and sizes).
// Not what a checkpoint has fields of its own for, nor what a run is refused for. Throws
// Error(EX_DATAERR) if the data directory cannot be read.
std::map<std::string, std::string> RecordedSettings(const Options& options,
                                                    const std::string& backend,
                                                    std::int64_t images);

}  // namespace trainer
