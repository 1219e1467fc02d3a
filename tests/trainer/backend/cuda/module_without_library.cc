// SPDX-License-Identifier: Apache-2.0
//
// For loader_test.cc.

extern "C" int InMissingLibrary();

extern "C" const void* ddltrain_cuda_module() {
  static const int value = InMissingLibrary();
  return &value;
}
