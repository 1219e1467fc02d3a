// SPDX-License-Identifier: Apache-2.0
//
// What a person sees of a long work on images: on a terminal a bar that is redrawn in place, in a
// file a line now and then,
//   2026-01-02T03:04:05+01:00 1250/12811 images 9.8 % 820.1 images/s 92.3 MB/s eta 0:00:14
// and notes between them.  Threads: any number.

#pragma once

#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>

#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

class ConvertProgress {
 public:
  // `out` must stay alive.
  ConvertProgress(const ProgressOptions& options, std::ostream& out,
                  WallClock clock = SystemClock());
  ~ConvertProgress() { Break(); }

  // The work begins: its images, and the bytes that are read of them, by which the rest of the time
  // is told.  Until then nothing is shown but what Listed says.
  void Begin(std::int64_t images, std::uint64_t bytes);
  // So many images have been found so far, or other things: what of them was done.
  void Listed(std::int64_t count, const std::string& what = "images found");
  // One more image is done.
  void Add(std::uint64_t bytes);
  // A line "ddldata: note: TEXT".
  void Note(const std::string& text);
  // Ends the redrawn line, so that other output starts on a fresh one.
  void Break();

 private:
  void Show(const std::string& text, TimePoint now, double fraction);
  void EndLine();

  std::mutex mutex_;
  ProgressOptions options_;
  std::ostream& out_;
  WallClock clock_;
  std::int64_t images_ = 0;
  std::uint64_t bytes_ = 0;
  std::int64_t images_done_ = 0;
  std::uint64_t bytes_done_ = 0;
  TimePoint begin_;
  TimePoint last_shown_;
  bool line_open_ = false;
};

}  // namespace trainer
