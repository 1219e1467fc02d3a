// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a tf.train.Example: a complaint, or an image that is read back the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/example.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainer::ImageExample example;
  try {
    example = trainer::ParseExample({data, size});
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
    return 0;
  }
  const std::string bytes = trainer::SerializeExample(example);
  const auto again =
      trainer::ParseExample({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (again.encoded != example.encoded || again.label != example.label ||
      again.boxes != example.boxes) {
    std::abort();
  }
  return 0;
}
