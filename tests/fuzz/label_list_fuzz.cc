// SPDX-License-Identifier: Apache-2.0
//
// Any text as a list of classes, and as one of labels: a complaint that begins with the line, or a
// list whose classes have names.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ddldata/label_list.h"
#include "trainer/core/error.h"

namespace {

template <typename Action>
void Check(Action action) {
  try {
    action();
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
    if (!std::string_view(error.what()).starts_with("list:")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check([&] {
    for (const trainer::ImageClass& one : trainer::ParseClassList(text, "list")) {
      if (one.name.empty()) std::abort();
    }
  });
  Check([&] { trainer::ImageLabels(text, "list", {}); });
  Check([&] { trainer::ImageLabels(text, "list", {{"a", ""}, {"b", ""}}); });
  return 0;
}
