// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cpu/loops.h"

namespace trainer::detail {
namespace {

// The features are those that CMakeLists.txt compiles with.
#ifdef __x86_64__
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

const Loops& BestLoops() {
#ifdef __x86_64__
  if (HasAvx512()) return kAvx512Loops;
  if (HasAvx2()) return kAvx2Loops;
#endif
  return kGenericLoops;
}

const char* InstructionSetOfBestLoops() {
  [[maybe_unused]] const Loops* best = &BestLoops();
#ifdef __x86_64__
  if (best == &kAvx512Loops) return "AVX-512";
  if (best == &kAvx2Loops) return "AVX2";
#endif
  return "generic code";
}

}  // namespace trainer::detail
