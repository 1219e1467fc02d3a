// SPDX-License-Identifier: Apache-2.0
//
// Texts out of files and paths, made harmless for those who look at them.  Pure.

#pragma once

#include <string>
#include <string_view>

namespace bench {

// Bytes that are no UTF-8 become U+FFFD, control characters blanks: nothing that moves a cursor.
std::string Printable(std::string_view text);

// Letters, not bytes; of UTF-8.
std::size_t CountChars(std::string_view text);

// Of more than `most` letters the middle is replaced by one "…".  REQUIRES: UTF-8; most >= 3.
std::string Shortened(std::string_view text, std::size_t max);

// Four significant digits, without an exponent: 0.01234, 12.34, 123456.
std::string FourDigits(double value);

}  // namespace bench
