// SPDX-License-Identifier: Apache-2.0
//
// Commands and values as text for people: what is printed can be pasted into a shell, or be a line
// of a job script, unless it was shortened.  Nothing is run from such a text.  Pure.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace support {

// The words with blanks between them, each quoted for a POSIX shell where it needs to be.
std::string QuoteCommand(const std::vector<std::string>& words);

// What is wrong with a value of an option that nobody means as it is, since files of such names
// would be made; "" for any other.  It begins with ~ as a home directory does, which a shell
// replaces at the beginning of a word alone (--dir=~/run); it ends with the carriage return of a
// script from Windows; it has quotes of a text processor.
std::string DescribeSlip(std::string_view value);

// What is wrong with an option whose dash is one of a text processor, as the end of a sentence; ""
// for any other word.
std::string DescribeDash(std::string_view word);

// How much of a value a message repeats, in characters.
inline constexpr std::size_t kMaxShownCharacters = 256;  // a path is shorter

// The first `max` characters of UTF-8 text and how many there are, "n1,n2... (130000 characters)";
// a text that has no more than that as it is.  A byte that is no UTF-8 counts as a character.
std::string Shortened(std::string_view text, std::size_t max = kMaxShownCharacters);

// `message` with each of the arguments of a command line that it repeats Shortened, whatever the
// message is about: the argument, what is on either side of its '=', or a part between commas.
std::string WithShortArguments(std::string message, const std::vector<std::string>& arguments);

// QuoteCommand with words of up to 1,000 characters, and of up to 16,384 bytes; what is left out is
// counted: "... (700 more words)".
std::string ShortCommand(const std::vector<std::string>& words);

// `text` for a terminal or a log: what moves a cursor, begins a line or turns its direction is
// shown as \x1b, \u202e.  That are control characters (C0 but for a tab and for the newlines at the
// end, DEL, C1), line separators, marks of direction, and bytes that are no UTF-8.  Newlines within
// are shown, too, unless `keeps_lines`.
std::string WithoutControls(std::string_view text, bool keeps_lines = false);

}  // namespace support
