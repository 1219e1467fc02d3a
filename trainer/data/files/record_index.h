// SPDX-License-Identifier: Apache-2.0
//
// DALI's index files: one line "OFFSET SIZE" per record of a TFRecord file, in order, SIZE with the
// framing, as DALI's tfrecord2idx writes them.  Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/files/tfrecord.h"

namespace trainer {

// 16 million records of one file; ImageNet's files have about 1,250.
inline constexpr std::uint64_t kMaxIndexBytes = 1u << 29;

// The records that `text` lists.  They must fill a file of `data_bytes` bytes without a gap.
// Throws Error(EX_DATAERR) naming `path`, the line, what is wrong and the command that makes a new
// index.
std::vector<RecordPlace> ParseIndex(std::string_view text, const std::string& path,
                                    std::uint64_t data_bytes);

std::string FormatIndex(const std::vector<RecordPlace>& places);

}  // namespace trainer
