// SPDX-License-Identifier: Apache-2.0
//
// What a run computes on, as checkpoints and exported weights note it: what its labels stand for,
// and which files it has.  By that weights are not trained further, evaluated or used with labels
// of another meaning, and a top-1 is compared only with one of the same images.  Pure, safe from
// any thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// The files of one split.
struct SplitIdentity {
  // "120 images in 2 files, listing a1e1b54e", a CRC-32C of their names and sizes; "synthetic
  // images"; "": not known.
  std::string files;
  // CRC-32C of their lines in ddldata.manifest, which has checksums of all records, in eight hex
  // digits; "": not known.
  std::string manifest;

  bool operator==(const SplitIdentity&) const = default;
};

struct DataIdentity {
  std::vector<std::string> class_names;  // of labels 1, 2, ..., as NameAsText; empty: not known
  SplitIdentity training;
  SplitIdentity validation;

  bool operator==(const DataIdentity&) const = default;
};

// The name of a class as UTF-8 on one line, another one for each name: a backslash is \\, and
// control characters, and in a name that is no UTF-8 all bytes from 0x80, are \xHH.
std::string NameAsText(std::string_view name);

// Whether two splits are known to differ: by the manifests where both have one.
bool IsOtherData(const SplitIdentity& one, const SplitIdentity& other);

// "120 images in 2 files (now 140 images in 3 files)", or, where these numbers are equal, what
// tells the two apart.  REQUIRES: IsOtherData.
std::string DescribeOtherData(const SplitIdentity& then, const SplitIdentity& now);

// Names of classes, and where they stand.
struct ClassNames {
  const std::vector<std::string>& names;
  std::string where;
};

// The first label that both have and that has another class in each, 'label 3 is "eel" in
// data/labels.txt, and "cat" in run/checkpoints/step-0000000120'; "" where there is none.
// `may_rename`: the names of `ours` may be others, as long as none of them is that of another label
// of `theirs`.
std::string DescribeOtherClasses(const ClassNames& ours, const ClassNames& theirs, bool may_rename);

}  // namespace trainer
