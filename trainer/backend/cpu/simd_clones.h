// SPDX-License-Identifier: Apache-2.0
//
// Put before a loop's function, DDL_SIMD_CLONES has it compiled for several instruction sets, of
// which the best is taken when the program starts; the rest of the program stays generic.  Such a
// function must not hold OpenMP regions: their bodies would stay generic.  Only GCC on x86 does
// this; sanitizers break the choice at start-up.

#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DDL_SIMD_CLONES \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define DDL_SIMD_CLONES
#endif
