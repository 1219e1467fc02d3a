// SPDX-License-Identifier: Apache-2.0
//
// What the predictor (scaling/predict.h) says of the speeds in a report.

#pragma once

#include "bench/report/report_model.h"
#include "scaling/machine.h"

namespace bench {

// Fills ScalingPoint::predicted where a scaling of ResNet-50 has a speed of one rank.  What one
// GPU, a whole node and two reach is told, and so comes out again; other points are predicted.
// Pure.
void AddPredictions(ReportModel& model, const scaling::Machine& machine);

}  // namespace bench
