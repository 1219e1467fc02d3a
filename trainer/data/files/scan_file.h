// SPDX-License-Identifier: Apache-2.0
//
// What a scan of the record headers has found, as bytes for scan_cache.h to keep.  All numbers are
// little-endian, texts are their length in 4 bytes and themselves:
//   17 bytes  "ddltraind scan 1\n"
//   4 bytes   CRC-32C of everything behind
//   text      which set this is of
//   4 bytes   number of files; of each, in the order of their names:
//     text     name
//     40 bytes FileIdentity, member by member, 8 bytes each
//     4 bytes  RecordScan::checksum
//     4 bytes  number of records; of each
//       4 bytes  its size, with the framing
// The records of a file lie one behind the other and fill it.
//
// Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

// One file of a set, as it was when it was scanned.
struct ScannedFile {
  std::string name;
  FileIdentity identity;
  RecordScan scan;  // bytes_read is not kept: 0 when it is read back
  bool operator==(const ScannedFile&) const = default;
};

// REQUIRES: sorted by name, each name once; KeepsScan of all.
std::string FormatScans(std::string_view set, std::span<const ScannedFile> files);

// Whether a scan can be kept: no record of it is larger than 4 GiB.
bool KeepsScan(const RecordScan& scan);

// Nothing if `bytes` are anything else than FormatScans(set, files) of some files.
std::optional<std::vector<ScannedFile>> ParseScans(std::span<const std::uint8_t> bytes,
                                                   std::string_view set);

}  // namespace trainer
