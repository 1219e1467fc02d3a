// SPDX-License-Identifier: Apache-2.0
//
// What `ddlctl watch` draws on a terminal.  Pure.

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "trainer/control/run_status.h"

namespace ddlctl {

struct Screen {
  int columns = 80;
  int rows = 0;         // 0: as many as are needed
  bool is_utf8 = true;  // else bars and curves are ASCII
};

// What was seen so far.
class Seen {
 public:
  static constexpr std::size_t kMax = 512;  // the oldest are forgotten

  // Of a status, unless there was no step since the one before.
  void Add(const trainer::RunStatus& status);

  const std::deque<double>& speeds() const { return speeds_; }
  const std::deque<double>& losses() const { return losses_; }

 private:
  std::int64_t step_ = -1;
  std::deque<double> speeds_;
  std::deque<double> losses_;
};

// The last `width` values as one letter each, from the smallest to the largest of them; a blank for
// what is no number.
std::string Sparkline(const std::deque<double>& values, std::size_t width, bool is_utf8);

// Less than screen.rows lines, the first ones, of less than screen.columns letters: one row is left
// free for the cursor, which could not go up again to what has scrolled away.
std::vector<std::string> Draw(const trainer::RunStatus& status, const Seen& seen,
                              const Screen& screen);

}  // namespace ddlctl
