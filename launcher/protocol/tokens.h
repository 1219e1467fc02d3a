// SPDX-License-Identifier: Apache-2.0
//
// Words, of which a rank job (rank_job.h) is made: writes texts as one word each, and reads the
// words again.  Pure.

#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

// `text` as one word: every byte but letters, digits and _./+,@ becomes %XX, an empty text "-".
std::string EscapeToken(const std::string& text);
// The inverse.  Throws std::out_of_range for a % that no two digits follow.
std::string UnescapeToken(std::string_view word);

// Reads a number, which is -1 or more.  Throws std::out_of_range for anything else.
int DecodeNumber(std::string_view text);

// Takes a text with single blanks between its words apart.  Each function reads the next word, and
// throws std::out_of_range where there is none or it is not what was asked for.
class TokenReader {
 public:
  explicit TokenReader(const std::string& text) : stream_(text) {}

  std::string Next();
  std::string Text() { return UnescapeToken(Next()); }
  int Number() { return DecodeNumber(Next()); }
  // True for "NAME=1".
  bool Flag(const std::string& name) { return Next() == name + "=1"; }
  // A word of `count` fields with ':' between them.
  std::vector<std::string> Fields(std::size_t count);
  void ExpectEnd();

 private:
  std::istringstream stream_;
};

}  // namespace launcher
