// SPDX-License-Identifier: Apache-2.0

#include "rankfile/scanner.h"

#include <array>
#include <charconv>
#include <system_error>

namespace rankfile {

ParseError::ParseError(std::string_view source, Position where, std::string_view message)
    : std::runtime_error(std::string(source) + ":" + std::to_string(where.line) + ":" +
                         std::to_string(where.column) + ": " + std::string(message)),
      source_(source),
      where_(where),
      message_(message) {}

Scanner::Scanner(std::string_view text, std::string_view source) : text_(text), source_(source) {
  if (text.size() > kMaxTextBytes) {
    Fail("the text has " + std::to_string(text.size()) + " bytes, more than the limit of " +
         std::to_string(kMaxTextBytes));
  }
}

char Scanner::Next() {
  const char c = text_[offset_++];
  if (c == '\n') {
    ++here_.line;
    here_.column = 1;
  } else {
    ++here_.column;
  }
  return c;
}

bool Scanner::Eat(char expected) {
  if (AtEnd() || Peek() != expected) return false;
  Next();
  return true;
}

bool Scanner::Eat(std::string_view expected) {
  if (!StartsWith(expected)) return false;
  for (std::size_t i = 0; i < expected.size(); ++i) Next();
  return true;
}

void Scanner::Expect(char expected, std::string_view example) {
  if (!Eat(expected)) FailExpected("'" + std::string(1, expected) + "'", example);
}

int Scanner::ReadNumber(std::string_view what, int lowest, int highest) {
  const Position start = here_;
  const std::string_view digits = TakeWhile(IsDigit);
  const std::string bounds = std::to_string(lowest) + " to " + std::to_string(highest);
  if (digits.empty()) {
    Fail("expected " + std::string(what) + " (" + bounds + "), not " + DescribeNext());
  }
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || value < lowest || value > highest) {
    FailAt(start, std::string(what) + " must be " + bounds + ", not " +
                      std::string(digits.substr(0, 20)) + (digits.size() > 20 ? "..." : ""));
  }
  return value;
}

void Scanner::SkipWhitespace() { TakeWhile(IsSpaceOrTab); }

void Scanner::ExpectEnd(std::string_view example) {
  TakeWhile([](char c) { return IsSpaceOrTab(c) || c == '\n'; });
  if (!AtEnd()) FailExpected("the end of the text", example);
}

void Scanner::SkipToEntry() {
  for (;;) {
    TakeWhile([](char c) { return IsSpaceOrTab(c) || c == '\n'; });
    if (Peek() == '#' || StartsWith("//")) {
      TakeWhile([](char c) { return c != '\n'; });
    } else if (StartsWith("/*")) {
      SkipBlockComment();
    } else {
      return;
    }
  }
}

bool Scanner::AtEntryEnd() {
  SkipWhitespace();
  return AtEnd() || Peek() == '\n' || Peek() == '#' || StartsWith("//") || StartsWith("/*");
}

void Scanner::SkipBlockComment() {
  const Position start = here_;
  Eat("/*");
  while (!Eat("*/")) {
    if (AtEnd()) FailAt(start, "the comment /* is never closed; write /* ... */");
    Next();
  }
}

void Scanner::FailAt(Position where, std::string_view message) const {
  throw ParseError(source_, where, message);
}

void Scanner::FailExpected(std::string_view what, std::string_view example) const {
  Fail("expected " + std::string(what) + ", as in " + std::string(example) + ", not " +
       DescribeNext());
}

std::string Scanner::DescribeNext() const {
  if (AtEnd()) return "the end of the text";
  const char c = Peek();
  if (c == '\n') return "the end of the line";
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  const auto byte = static_cast<unsigned char>(c);
  constexpr std::array<char, 17> kHex = {"0123456789abcdef"};
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

}  // namespace rankfile
