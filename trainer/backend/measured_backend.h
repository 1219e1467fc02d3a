// SPDX-License-Identifier: Apache-2.0
//
// A back end around another one, whose ops it gives, each call of them timed by a recorder.  The
// default blocks are made out of these ops; a stem of the back end's own is one op, and a
// bottleneck of its own tells of its steps.  Steps are not recorded as graphs: the calls are to be
// seen.
//
// Copies from and to the host are not ops: on a GPU they run beside them.

#pragma once

#include <memory>

#include "trainer/backend/backend.h"
#include "trainer/backend/op_recorder.h"

namespace trainer {

// Both outlive it, and all that it makes.
std::unique_ptr<Backend> MakeMeasuredBackend(Backend& backend, OpRecorder& recorder);

}  // namespace trainer
