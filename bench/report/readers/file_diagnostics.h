// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with the lines of one file: the first few by name, the others by their number, so
// that 10 GB of nonsense are a few lines.  Not thread-safe.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/base/diagnostics.h"
#include "support/number.h"

namespace bench {

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
