// SPDX-License-Identifier: Apache-2.0
//
// A status as text for people.  Pure.

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "trainer/control/control_message.h"
#include "trainer/control/run_status.h"

namespace ddlctl {

// Lines of a name and a value each.
std::string StatusText(const trainer::RunStatus& status);

// "training step 1200/25000 epoch 3/50 365.1 images/s loss 2.4141 eta 0:42:07 checkpoint 1000";
// then a rank that is slower than the others and what was asked for.
std::string StatusLine(const trainer::RunStatus& status);

// "step 1200/25000", and "epoch 3/50" or "" where the training is counted in steps.
std::string StepText(const trainer::RunStatus& status);
std::string EpochText(const trainer::RunStatus& status);

// What was asked for and is not done yet: "pause, checkpoint"; "" for nothing.
std::string RequestedText(const trainer::RunStatus& status);

// Why a training has refused what it was asked; where its version is not this one, which may be why
// it does not know an order, with both.
std::string RejectionText(const trainer::ControlAnswer& answer);

// With `digits` decimals; "?" for NaN and infinity.
std::string NumberText(double value, int digits);

// `text` from another program, without anything that moves a cursor.
std::string Harmless(std::string text);

// The load of the ranks of a training as text for people.  Pure.

inline constexpr int kLoadNameColumns = 20;

// A line of a view: a name, a time, and what is to be said of it.
struct LoadRow {
  std::string name;  // no longer than kLoadNameColumns
  std::string time;
  std::string rest;
};

// The median of the ranks' own times, then a row for each rank, by rank; of more than six the four
// slowest, the slowest first, and one for the rest.  The slowest has a > before its name.  None
// where nothing is known.
std::vector<LoadRow> LoadRows(const trainer::RunStatus& status);

// "slowest rank 3 on n2 +25 %" where a rank is 5 % or more above the median; else "".
std::string SlowestText(const trainer::RunStatus& status);

// What `ddlctl watch` draws on a terminal.  Pure.

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
// NaN.
std::string Sparkline(const std::deque<double>& values, std::size_t width, bool is_utf8);

// Less than screen.rows lines, the first ones, of less than screen.columns letters: one row is left
// free for the cursor, which could not go up again to what has scrolled away.
std::vector<std::string> Draw(const trainer::RunStatus& status, const Seen& seen,
                              const Screen& screen);

}  // namespace ddlctl
