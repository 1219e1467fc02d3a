// SPDX-License-Identifier: Apache-2.0
//
// What ddltraind says of a command line that it does not take.

#pragma once

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"
#include "trainer/options/options.h"

namespace trainer {

// "accepted" where it takes it.
inline std::string Rejection(const std::vector<std::string>& arguments) {
  const std::string rejection = tests::Rejection<Error>(
      EX_USAGE, [&] { ParseOptions(arguments); }, "accepted");
  EXPECT_THAT(rejection, Not(HasSubstr("\n"))) << "one line";
  return rejection;
}

inline std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

// That `refusal` has the parts of `said` in their order, with "..." between.
inline void ExpectParts(const std::string& rejection, const std::string& said) {
  std::size_t at = 0;
  for (std::size_t begin = 0, end = 0; begin <= said.size(); begin = end + 3) {
    end = std::min(said.find("...", begin), said.size());
    at = rejection.find(said.substr(begin, end - begin), at);
    EXPECT_NE(at, std::string::npos) << rejection << "\ndoes not say " << said;
  }
}

// `line` is refused, where --batch_size=1 is given, too.  Of values a|b in it each is tried, and
// <it> in `said` is that value.
inline void ExpectRejected(const std::string& line, const std::string& said) {
  const std::size_t bar = line.find('|');
  if (bar == std::string::npos)
    return ExpectParts(Rejection(WordsOf("--batch_size=1 " + line)), said);
  const std::size_t begin = line.rfind('=', bar) + 1;
  const std::size_t end = std::min(line.find(' ', bar), line.size());
  std::istringstream values(line.substr(begin, end - begin));
  for (std::string value; std::getline(values, value, '|');) {
    const std::size_t it = said.find("<it>");
    ExpectRejected(line.substr(0, begin) + value + line.substr(end),
                   it == std::string::npos ? said : std::string(said).replace(it, 4, value));
  }
}

}  // namespace trainer
