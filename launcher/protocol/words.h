// SPDX-License-Identifier: Apache-2.0
//
// The words of a rank job (rank_job.h): how a text is written as one word, and read again.  Pure.

#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

// All but letters, digits and _./+,@ as %XX; "-" for an empty text.
std::string EncodeText(const std::string& text);
// The inverse.  Throws std::out_of_range for a % that no two digits follow.
std::string DecodeText(std::string_view word);

// A number from -1 on.  Throws std::out_of_range for anything else.
int DecodeNumber(std::string_view text);

// The words of a text, which have single blanks between them, one after the other.  Every function
// throws std::out_of_range where the text is over or the word is another than asked for.
class Words {
 public:
  explicit Words(const std::string& text) : stream_(text) {}

  std::string Next();
  std::string Text() { return DecodeText(Next()); }
  int Number() { return DecodeNumber(Next()); }
  // "NAME=1" or "NAME=0".
  bool Flag(const std::string& name) { return Next() == name + "=1"; }
  // A word of `count` fields with ':' between them.
  std::vector<std::string> Fields(std::size_t count);
  void ExpectEnd();

 private:
  std::istringstream stream_;
};

}  // namespace launcher
