// SPDX-License-Identifier: Apache-2.0
//
// Where --help and the manual pages send those who want to know more.

#pragma once

namespace support {

// A line without its end.  The page is an index by subject, so that this line need not change with
// the pages behind it.
inline constexpr const char* kReferenceLine = "In detail, by subject: doc/reference.md";

}  // namespace support
