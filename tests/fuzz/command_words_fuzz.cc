// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun prints must be what it starts: splitting undoes quoting for any words.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/base/error.h"
#include "launcher/cli/quoting.h"
#include "support/quoting.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::vector<std::string> words =
        launcher::SplitWords(std::string(reinterpret_cast<const char*>(data), size));
    if (launcher::SplitWords(support::QuoteCommand(words)) != words) std::abort();
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
