// SPDX-License-Identifier: Apache-2.0
//
// For mpi_loader_test.cc: a library that is no module.

extern "C" int InLibraryOfNobody() { return 1; }
