// SPDX-License-Identifier: Apache-2.0
//
// Looks through whole data sets: makes index files and manifests, finds what is wrong.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace trainer {

// Writes DALI's index files of all data files of `data_dir` to `index_dir`, which is made if it is
// not there; existing ones are replaced.  Returns how many records they list.
// Throws Error(EX_USAGE), and writes nothing, where a file that is no index has the name of one.
// Throws Error(EX_DATAERR) when there is no data file or one is damaged, Error(EX_OSERR) when an
// index cannot be written.
std::int64_t MakeIndexFiles(const std::string& data_dir, const std::string& index_dir, int threads);

// Writes the manifest of all data files of `data_dir` (data_files.h); an older one is replaced.
// Returns how many records it counts.  Throws Error(EX_DATAERR) when there is no data file, one is
// damaged, or missing by the numbers in the names unless `may_be_part`; Error(EX_OSERR) when the
// manifest cannot be written.
std::int64_t MakeShardManifest(const std::string& data_dir, bool may_be_part, int threads);

struct VerifyOptions {
  std::string data_dir;
  std::string index_dir;  // index files to check too; "": none
  int classes = 1000;
  int label_offset = 1;
  int threads = 1;
};

struct VerifySummary {
  int files = 0;
  std::int64_t records = 0;
  std::int64_t problems = 0;
  std::uint64_t bytes = 0;   // of the files
  std::uint64_t pixels = 0;  // decoded
  double seconds = 0;
  bool has_manifest = false;
  std::string labels_note;  // why labels.txt was not compared, where it is there
};

// Where the class of each label was first met.  Tells each label that is met with two classes, and
// each class that is met with two labels, once.  Pure.
class LabelNames {
 public:
  // `place` is "train-*", say.  Returns what is wrong, "" if nothing or if it was said before.
  std::string Add(std::int64_t label, const std::string& name, const std::string& place);

 private:
  struct Met {
    std::string name;
    std::string place;
  };
  struct MetLabel {
    std::int64_t label = 0;
    std::string place;
  };
  std::map<std::int64_t, Met> by_label_;
  std::map<std::string, MetLabel> by_name_;
  std::set<std::int64_t> reported_;
};

// Looks for files that are missing; reads every record of every data file, checks both checksums,
// parses it, checks the label, decodes the whole image; compares the names of the classes, where
// records have them, over all files and with labels.txt, which must have a line for each label;
// compares every file with the manifest, if there is one, and with its index file.  Each problem is
// told to `on_problem`, those of records in the order of files and offsets as "PATH, record at
// offset N: ...".  What follows a damaged record header in its file cannot be found; the message
// says so.  Throws Error(EX_DATAERR) when there is no data file.
VerifySummary VerifyDataSet(const VerifyOptions& options,
                            const std::function<void(const std::string&)>& on_problem);

}  // namespace trainer
