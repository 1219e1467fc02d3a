// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), for the identities in Mila's reports; not for secrets.  Pure.

#pragma once

#include <string>
#include <string_view>

namespace bench {

// 64 hexadecimal digits.
std::string Sha256(std::string_view text);

}  // namespace bench
