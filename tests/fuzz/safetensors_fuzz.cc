// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/error.h"

// Every accepted file has tensors that lie inside it, end to end.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const trainer::SafetensorsIndex index =
        trainer::ParseSafetensors(std::as_bytes(std::span(data, size)), "fuzz");
    std::uint64_t end = 0;
    for (const trainer::TensorEntry& entry : index.tensors) {
      const auto bytes = static_cast<std::uint64_t>(entry.shape.elements()) * SizeOf(entry.dtype);
      if (entry.begin != end || entry.end != entry.begin + bytes) std::abort();
      end = entry.end;
    }
    if (index.data_offset + end != size) std::abort();
  } catch (const trainer::Error&) {
  }
  return 0;
}
