// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/dtype.h"

#include "trainer/core/error.h"

namespace trainer {

std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUint8:
      return 1;
    case DType::kInt64:
      return 8;
  }
  DDL_CHECK(false && "no such element type");
}

std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kFloat16:
      return "F16";
    case DType::kBFloat16:
      return "BF16";
    case DType::kUint8:
      return "U8";
    case DType::kInt32:
      return "I32";
    case DType::kInt64:
      return "I64";
  }
  DDL_CHECK(false && "no such element type");
}

}  // namespace trainer
