// SPDX-License-Identifier: Apache-2.0
//
// A line of DLLogger's is read without a crash, or refused; what is shown of it is text that moves
// no cursor and ends no element.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/readers/logger_line.h"
#include "bench/run_log/log_lines.h"
#include "trainer/core/error.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

bool IsControlByte(char byte) { return static_cast<unsigned char>(byte) < 0x20; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto line = bench::ParseLoggerLine(text);
    if (line) {
      for (const bench::LoggerField& field : line->fields) Require(bench::IsUtf8(field.name));
    }
  } catch (const trainer::Error&) {
  }
  const std::string printable = bench::Printable(text);
  Require(bench::IsUtf8(printable));
  Require(std::none_of(printable.begin(), printable.end(), IsControlByte));
  constexpr std::size_t kMost = 12;
  const std::string shortened = bench::Shortened(printable, kMost);
  Require(bench::IsUtf8(shortened) && bench::LettersIn(shortened) <= kMost);
  Require(bench::Escaped(text).find_first_of("<>\"'") == std::string::npos);
  return 0;
}
