// SPDX-License-Identifier: Apache-2.0
//
// Stands in for png.cc in a build without libpng.

#include "trainer/core/error.h"
#include "trainer/data/images/png.h"

namespace trainer {

DecodedPicture DecodePng(std::span<const std::uint8_t> /*data*/) {
  throw Error(EX_DATAERR,
              "the image is a PNG file, which this program cannot decode: it was built without "
              "libpng (libpng-dev)");
}

}  // namespace trainer
