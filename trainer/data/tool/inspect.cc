// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tool/inspect.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/data/data_set.h"
#include "trainer/data/example.h"
#include "trainer/data/file.h"
#include "trainer/data/jpeg.h"
#include "trainer/data/parallel_for.h"
#include "trainer/data/record_index.h"
#include "trainer/data/sample_loader.h"
#include "trainer/data/tfrecord.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Of both splits, one of which may be absent.
std::vector<std::string> FindAllDataFiles(const std::string& dir) {
  std::vector<std::string> paths = FindDataFilesIfAny(dir, Split::kTrain);
  for (std::string& path : FindDataFilesIfAny(dir, Split::kValidation)) {
    paths.push_back(std::move(path));
  }
  if (paths.empty()) {
    throw Error(EX_DATAERR, "the data directory " + dir + " has no file train-* or validation-*");
  }
  return paths;
}

// What one thread found in a run of records.
struct Findings {
  std::vector<std::string> problems;
  std::uint64_t pixels = 0;
};

void VerifyRecord(const RecordFile& file, const RecordPlace& place, const VerifyOptions& options,
                  JpegDecoder& decoder, Findings& findings) {
  std::vector<std::uint8_t> buffer;
  const auto data = file.Read(place, buffer);
  try {
    const ImageExample example = ParseExample(data);
    ClassOfLabel(example.label, options.classes, options.label_offset);
    const ImageSize size = decoder.ReadHeader(
        {reinterpret_cast<const std::uint8_t*>(example.encoded.data()), example.encoded.size()});
    ImagePiece piece;
    decoder.Decode(1, {0, 0, size.width, size.height}, piece);
    findings.pixels +=
        static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
  } catch (const Error& error) {
    throw Error(error.exit_code(), DescribeRecord(file.path(), place.offset, error.what()));
  }
}

Findings VerifyRecords(const RecordFile& file, std::span<const RecordPlace> places,
                       const VerifyOptions& options) {
  Findings findings;
  JpegDecoder decoder;
  for (const RecordPlace& place : places) {
    try {
      VerifyRecord(file, place, options, decoder, findings);
    } catch (const Error& error) {
      if (error.exit_code() != EX_DATAERR) throw;
      findings.problems.emplace_back(error.what());
    }
  }
  return findings;
}

// All records whose headers are good, and a problem where the first one is not.
std::vector<RecordPlace> PlacesOf(const RecordFile& file, std::vector<std::string>& problems) {
  std::vector<RecordPlace> places;
  std::uint64_t offset = 0;
  try {
    for (; offset < file.bytes(); offset += places.back().size) {
      places.push_back(file.PlaceAt(offset));
    }
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    problems.push_back(std::string(error.what()) + "; the " +
                       std::to_string(file.bytes() - offset) +
                       " bytes from there on cannot be checked");
  }
  if (file.bytes() == 0) problems.push_back(file.path() + " is empty: it has no record");
  return places;
}

void VerifyFile(const RecordFile& file, const VerifyOptions& options,
                const std::function<void(const std::string&)>& on_problem, VerifySummary& summary) {
  constexpr std::size_t kRun = 16;  // records per task
  std::vector<std::string> problems;
  const std::vector<RecordPlace> places = PlacesOf(file, problems);
  std::vector<Findings> findings((places.size() + kRun - 1) / kRun);
  ParallelFor(options.threads, static_cast<std::int64_t>(findings.size()), [&](std::int64_t i) {
    const auto run = static_cast<std::size_t>(i);
    const std::size_t length = std::min(kRun, places.size() - run * kRun);
    findings[run] = VerifyRecords(file, std::span(places).subspan(run * kRun, length), options);
  });
  ++summary.files;
  summary.bytes += file.bytes();
  summary.records += std::ssize(places);
  const auto report = [&](const std::string& problem) {
    ++summary.problems;
    on_problem(problem);
  };
  for (const Findings& of_run : findings) {
    summary.pixels += of_run.pixels;
    std::ranges::for_each(of_run.problems, report);
  }
  std::ranges::for_each(problems, report);
}

}  // namespace

std::int64_t MakeIndexFiles(const std::string& data_dir, const std::string& index_dir,
                            int threads) {
  const std::vector<std::string> paths = FindAllDataFiles(data_dir);
  std::error_code error;
  fs::create_directories(index_dir, error);
  if (error) throw OsError("cannot make the directory " + index_dir, error.value());
  std::vector<std::int64_t> records(paths.size());
  ParallelFor(threads, std::ssize(paths), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    const std::vector<RecordPlace> places = RecordFile(paths[number], true).Scan();
    const std::string text = FormatIndex(places);
    NewFile index((fs::path(index_dir) / fs::path(paths[number]).filename()).string());
    index.Write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    index.Finish();
    index.Commit();
    records[number] = std::ssize(places);
  });
  std::int64_t total = 0;
  for (const std::int64_t count : records) total += count;
  return total;
}

VerifySummary VerifyDataSet(const VerifyOptions& options,
                            const std::function<void(const std::string&)>& on_problem) {
  const auto begin = std::chrono::steady_clock::now();
  VerifySummary summary;
  for (const std::string& path : FindAllDataFiles(options.data_dir)) {
    VerifyFile(RecordFile(path, true), options, on_problem, summary);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

}  // namespace trainer
