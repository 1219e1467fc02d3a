// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with input, told by name while the rest is still shown.

#pragma once

#include <sysexits.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

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

}  // namespace bench
