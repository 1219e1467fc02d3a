// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an annotation: a complaint that begins with file and line, or bounding boxes within
// the image.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ddldata/annotation.h"
#include "trainer/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const trainer::BoundingBox& box : trainer::ParseAnnotation(text, "a.xml")) {
      const bool is_good = 0 <= box.xmin && box.xmin <= box.xmax && box.xmax <= 1 &&
                           0 <= box.ymin && box.ymin <= box.ymax && box.ymax <= 1;
      if (!is_good) std::abort();
    }
  } catch (const trainer::Error& error) {
    const std::string_view what = error.what();
    const bool is_good = error.exit_code() == EX_DATAERR && what.starts_with("a.xml:") &&
                         what.find('\n') == std::string_view::npos;
    if (!is_good) std::abort();
  }
  return 0;
}
