// SPDX-License-Identifier: Apache-2.0
//
// reading_rate DATA_DIR WORKERS PASSES [INDEX_DIR [CACHE_DIR]]: how fast records are read and
// checked, without decoding them: bytes of the records of a set over the time in which WORKERS
// threads have got PASSES epochs of them, in a training's order, in 1e6 bytes/s, and the seconds
// until it could begin (with no PASSES, these alone).  INDEX_DIR "" and a CACHE_DIR: what a scan
// finds is kept there.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/parallel_for.h"
#include "trainer/data/files/read_ahead.h"
#include "trainer/data/shard_sampler.h"

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Measure(const std::string& dir, int workers, int passes, const std::string& index_dir,
             const std::string& cache_dir) {
  const Clock::time_point begin = Clock::now();
  const trainer::DataSet data(dir, index_dir, trainer::Split::kTrain, workers, {},
                              {.dir = cache_dir});
  const trainer::ShardSampler sampler(data.records(), 1, true);
  const std::int64_t end = data.records() * passes;
  trainer::ReadAhead records(
      trainer::ReadAheadFor(workers, end),
      {.size = [&](std::int64_t item) { return data.SizeOf(sampler.RecordOf(item)); },
       .read = [&](std::int64_t item,
                   std::span<std::uint8_t> bytes) { data.Fetch(sampler.RecordOf(item), bytes); }});
  const double start_seconds = SecondsSince(begin);
  const Clock::time_point start = Clock::now();
  std::atomic<std::size_t> bytes = 0;
  trainer::ParallelFor(workers, end, [&](std::int64_t item) {
    const trainer::ReadAhead::Taken taken = records.Take(item);
    bytes += data.Check(sampler.RecordOf(item), taken.bytes()).size();
  });
  const double speed = static_cast<double>(bytes) / SecondsSince(start) / 1e6;
  std::cout << speed << " MB/s, " << records.threads() << " reading threads; began after "
            << start_seconds << " s, " << data.scan_cost().headers << " headers read\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool is_whole = arguments.size() >= 3 && arguments.size() <= 5;
  const int workers = is_whole ? support::WholeNumber<int>(arguments[1]).value_or(0) : 0;
  const int passes = is_whole ? support::WholeNumber<int>(arguments[2]).value_or(-1) : -1;
  if (workers < 1 || passes < 0) {
    std::cerr << "usage: reading_rate DATA_DIR WORKERS PASSES [INDEX_DIR [CACHE_DIR]]\n";
    return EX_USAGE;
  }
  try {
    Measure(arguments[0], workers, passes, arguments.size() > 3 ? arguments[3] : "",
            arguments.size() > 4 ? arguments[4] : "");
    return EX_OK;
  } catch (const trainer::Error& error) {
    std::cerr << "reading_rate: " << error.what() << '\n';
    return error.exit_code();
  }
}
