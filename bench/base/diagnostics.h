// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with input, told by name while the rest is still shown.

#pragma once

#include <sysexits.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {

// Throws trainer::Error(EX_USAGE), "--steps=0 must be from 1 to 1000000", unless it is.
inline void RequireRange(const char* option, std::int64_t value, std::int64_t min,
                         std::int64_t max) {
  if (value >= min && value <= max) return;
  throw trainer::Error(EX_USAGE, std::string(option) + "=" + std::to_string(value) +
                                     " must be from " + std::to_string(min) + " to " +
                                     std::to_string(max));
}

// Every text is one line: "FILE:LINE: what is wrong".
class Diagnostics {
 public:
  using Teller = std::function<void(const std::string&)>;
  explicit Diagnostics(Teller tell) : tell_(std::move(tell)) {}

  // What cannot be used.
  void Problem(const std::string& text, int exit_code = EX_DATAERR) {
    if (exit_code_ == EX_OK) exit_code_ = exit_code;
    Tell(text);
  }
  // What is used all the same.
  void Note(const std::string& text) { Tell("note: " + text); }

  // All that was told.
  const std::vector<std::string>& messages() const { return messages_; }

  // Of the first problem; EX_OK without one.
  int exit_code() const { return exit_code_; }

 private:
  void Tell(const std::string& text) {
    messages_.push_back(text);
    tell_(text);
  }

  const Teller tell_;
  std::vector<std::string> messages_;
  int exit_code_ = EX_OK;
};

// What is wrong with the lines of one file: the first few by name, the others by their number, so
// that 10 GB of nonsense are a few lines.  Not thread-safe.

class FileDiagnostics {
 public:
  static constexpr std::int64_t kMaxLines = 5;

  FileDiagnostics(const std::filesystem::path& path, Diagnostics& diagnostics)
      : path_(path.string()), diagnostics_(diagnostics) {}

  void Problem(std::int64_t line, const std::string& text) {
    if (++problems_ > kMaxLines) return;
    diagnostics_.Problem(path_ + ":" + std::to_string(line) + ": " + text);
  }

  // To be called once, behind the last line.
  void End() {
    if (problems_ <= kMaxLines) return;
    diagnostics_.Problem(path_ + ": " + support::Counted(problems_ - kMaxLines, "more line") +
                         " cannot be used");
  }

 private:
  const std::string path_;
  Diagnostics& diagnostics_;
  std::int64_t problems_ = 0;
};

}  // namespace bench
