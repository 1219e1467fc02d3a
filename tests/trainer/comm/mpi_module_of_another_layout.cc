// SPDX-License-Identifier: Apache-2.0
//
// For mpi_loader_test.cc: a module of which a program may read no more than the first member.

extern "C" const void* ddltrain_mpi_module() {
  static const int layout = 4711;
  return &layout;
}
