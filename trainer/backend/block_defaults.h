// SPDX-License-Identifier: Apache-2.0
//
// What can be composed out of the other ops of any back end: what
// Backend::Make{DualBatchNorm,Stem,Bottleneck,Head} give unless a back end overrides them.  It must
// be gone before its `backend` is.

#pragma once

#include <memory>

#include "trainer/backend/backend.h"

namespace trainer {

std::unique_ptr<DualBatchNorm> MakeDefaultDualBatchNorm(Backend& backend,
                                                        const DualBatchNormSpec& spec);
std::unique_ptr<Stem> MakeDefaultStem(Backend& backend, const StemSpec& spec);
std::unique_ptr<Bottleneck> MakeDefaultBottleneck(Backend& backend, const BottleneckSpec& spec);
std::unique_ptr<Head> MakeDefaultHead(Backend& backend, const HeadSpec& spec);

}  // namespace trainer
