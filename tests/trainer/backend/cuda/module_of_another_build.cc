// SPDX-License-Identifier: Apache-2.0
//
// For loader_test.cc: a module of which a program may read no more than the first member, and which
// has a C++ library of its own.

extern "C" {

// What it was told (module.h).
void* (*shared_exceptions)() = nullptr;
void ddltrain_share_exceptions(void* (*of_program)()) { shared_exceptions = of_program; }

const void* ddltrain_cuda_module() {
  static const char* const module[] = {"0.0.1, of long ago"};
  return module;
}
}
