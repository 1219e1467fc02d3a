// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cpu/loops.h"

namespace trainer::detail {

// The features are those that CMakeLists.txt compiles with.
const Loops& BestLoops() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return kAvx512Loops;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2Loops;
#endif
  return kGenericLoops;
}

}  // namespace trainer::detail
