// SPDX-License-Identifier: Apache-2.0
//
// For loader_test.cc: a module of which a program may read no more than the first member.

extern "C" const void* ddltrain_cuda_module() {
  static const char* const module[] = {"0.0.1, of long ago"};
  return module;
}
