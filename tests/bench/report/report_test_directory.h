// SPDX-License-Identifier: Apache-2.0
//
// A directory of a test's own with files of runs in it, and what was said about them.

#pragma once

#include "bench/base/diagnostics.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace bench {

class ReportDirectoryTest : public tests::DirectoryTest {
 protected:
  // Lines of log.json.
  static std::string Logged(const std::string& rest) {
    return R"(DLLL {"timestamp": "100.5", "datetime": "2026-11-23 10:00:00.5", )" + rest + "}\n";
  }
  static std::string LoggedOptions(const std::string& options) {
    return Logged(R"("type": "LOG", "step": "PARAMETER", "data": {)" + options + "}");
  }
  static std::string LoggedRun(const std::string& facts) {
    return Logged(R"("type": "METADATA", "metric": "run", "metadata": {)" + facts + "}");
  }
  static std::string LoggedStep(int step, const std::string& data) {
    return Logged(R"("type": "LOG", "step": [0, )" + std::to_string(step) + R"(], "data": {)" +
                  data + "}");
  }
  static std::string LoggedSpeed(int step, const std::string& speed, const std::string& loss) {
    return LoggedStep(step, R"("imgs_per_sec": )" + speed + R"(, "cross_entropy": )" + loss);
  }

  std::vector<std::string> told_;
  Diagnostics diagnostics_{[this](const std::string& text) { told_.push_back(text); }};
};

}  // namespace bench
