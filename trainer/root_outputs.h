// SPDX-License-Identifier: Apache-2.0
//
// What rank 0 writes besides the log for people: NVLOG and DLLogger lines on standard output,
// DLLogger's JSON in a file, progress on standard error.  The other ranks have none of it.

#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "trainer/telemetry/line_output.h"
#include "trainer/train/report.h"

namespace trainer {

class RootOutputs {
 public:
  // A later launch of a run adds to what the earlier ones have written to `json_path`. `device_id`:
  // the GPU's, or "".  Lines that are lost, on a full disk, are told to `log`: a training does not
  // end for them. Throws Error(EX_OSERR) naming `json_path` if it cannot be written.
  RootOutputs(const std::filesystem::path& json_path, const std::string& device_id,
              const ProgressOptions& progress, const Logger& log);
  ~RootOutputs();
  RootOutputs(const RootOutputs&) = delete;
  RootOutputs& operator=(const RootOutputs&) = delete;

  // Points into this object.
  Outputs outputs();

  // Tells the log how many lines were lost, if any were.  Returns whether all lines of standard
  // output were written.
  bool End();

 private:
  Logger log_;
  std::filesystem::path json_path_;
  int json_file_;
  LineOutput text_buffer_;
  LineOutput json_buffer_;
  std::ostream text_{&text_buffer_};
  std::ostream json_{&json_buffer_};
  NvLog nvlog_{text_};
  DlLogger dllogger_{&text_, &json_};
  Progress progress_;
  std::optional<GpuMeter> gpu_;
};

}  // namespace trainer
