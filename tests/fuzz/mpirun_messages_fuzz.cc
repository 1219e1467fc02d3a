// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launcher/supervise/failure_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  launcher::MpirunMessages messages;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    messages.AddLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (messages.failure()) launcher::FailureReport(*messages.failure());
  return 0;
}
