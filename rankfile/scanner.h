// SPDX-License-Identifier: Apache-2.0
//
// Reads text formats token by token, and says what is wrong where.

#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankfile {

// The one exception of the parsers: what is wrong, and where.  A value; safe from any thread.

// Lines and columns count from 1; a column is a byte.
struct Position {
  int line = 1;
  int column = 1;

  bool operator==(const Position&) const = default;
};

class ParseError : public std::runtime_error {
 public:
  // what() is "source:line:column: message", one line.  `source` is a file name, or the name of
  // what held the text, such as SLURM_JOB_NODELIST.
  ParseError(std::string_view source, Position where, std::string_view message);

  const std::string& source() const { return source_; }
  Position where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  std::string source_;
  Position where_;
  std::string message_;
};

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A cursor over text that knows its line and column, and refuses in one way.  Every parser of this
// directory reads through it.  For one thread; the text must outlive the scanner.

// Longest text any parser takes: 65,536 hosts of the longest name fit.
inline constexpr std::size_t kMaxTextBytes = std::size_t{32} << 20;

// Blanks part the words of a line; a carriage return is one.
inline bool IsSpaceOrTab(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

class Scanner {
 public:
  // Throws ParseError when `text` is longer than kMaxTextBytes.
  Scanner(std::string_view text, std::string_view source);

  bool AtEnd() const { return offset_ == text_.size(); }
  // The next character; '\0' at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[offset_]; }
  Position Here() const { return here_; }
  // What is left up to the next blank or line end.
  std::string_view Word() const {
    const std::string_view left = text_.substr(offset_);
    return left.substr(0, left.find_first_of(" \t\r\n\f\v"));
  }

  // REQUIRES: !AtEnd().
  char Next();
  // Steps over `expected` if it is next; says whether it was.
  bool Eat(char expected);
  bool Eat(std::string_view expected);
  // Steps over `expected` or refuses; `example` shows the right form: "rank 0=host1 slot=0:0-9".
  void Expect(char expected, std::string_view example);

  // The longest run of characters that satisfy `is_member`; may be empty.
  template <class Predicate>
  std::string_view TakeWhile(Predicate is_member) {
    const std::size_t start = offset_;
    while (!AtEnd() && is_member(text_[offset_])) Next();
    return text_.substr(start, offset_ - start);
  }

  // A decimal number in [lowest, highest]. `what` names it in refusals: "a rank".
  int ReadNumber(std::string_view what, int lowest, int highest);

  void SkipWhitespace();
  // Refuses anything but blanks and line ends up to the end of the text.
  void ExpectEnd(std::string_view example);

  // Files of one entry per line: blank lines and the comments `#...`, `//...`, `/* ... */`.
  void SkipToEntry();
  // True at the end of a line, before a comment or at the end of the text; skips blanks first.
  bool AtEntryEnd();

  [[noreturn]] void Fail(std::string_view message) const { FailAt(here_, message); }
  [[noreturn]] void FailAt(Position where, std::string_view message) const;
  // Refuses the next character: "expected WHAT, as in EXAMPLE, not ']'".
  [[noreturn]] void FailExpected(std::string_view what, std::string_view example) const;

 private:
  bool StartsWith(std::string_view expected) const {
    return text_.substr(offset_, expected.size()) == expected;
  }
  void SkipBlockComment();
  // How a message names the next character: "'x'", "byte 0x07", "the end of the line".
  std::string DescribeNext() const;

  std::string_view text_;
  std::string source_;
  std::size_t offset_ = 0;
  Position here_;
};

}  // namespace rankfile
