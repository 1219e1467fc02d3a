// SPDX-License-Identifier: Apache-2.0
//
// For mpi_loader_test.cc: linked with libmpi-of-nobody.so.40, which is nowhere under that name.

extern "C" int InLibraryOfNobody();

extern "C" const void* ddltrain_mpi_module() {
  static const int value = InLibraryOfNobody();
  return &value;
}
