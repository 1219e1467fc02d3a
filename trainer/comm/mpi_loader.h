// SPDX-License-Identifier: Apache-2.0
//
// How a program gets at the module that is linked with MPI: it is loaded when ranks are to meet by
// MPI, so that all else works where there is no MPI.

#pragma once

#include <string>

#include "trainer/comm/mpi_module.h"

namespace trainer {

// Of the program that runs: ../lib/ddlrun/ddltrain_mpi.so beside its directory.
std::string PathOfMpiModule();

// The module in the file `path`.  Never unloaded: MPI's threads may be in it.  Throws Error,
// EX_UNAVAILABLE: it is not there, MPI is not, or it is no module of this program.
const MpiModule& LoadMpiModule(const std::string& path);

}  // namespace trainer
