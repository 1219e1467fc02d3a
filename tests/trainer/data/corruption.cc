// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/data/corruption.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

std::size_t Below(std::size_t limit, Random& random) {
  return random.Below(static_cast<std::uint32_t>(std::max<std::size_t>(limit, 1)));
}

std::string Noise(std::size_t length, Random& random) {
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

// Bytes of a file.

void TurnABit(std::string& bytes, Random& random) {
  if (!bytes.empty()) bytes[Below(bytes.size(), random)] ^= static_cast<char>(1 << random.Below(8));
}

void Overwrite(std::string& bytes, Random& random) {
  const std::size_t at = Below(bytes.size(), random);
  const std::size_t length = std::min(1 + Below(64, random), bytes.size() - at);
  bytes.replace(at, length, random.Below(2) == 0 ? Noise(length, random) : std::string(length, 0));
}

void CutShort(std::string& bytes, Random& random) { bytes.resize(Below(bytes.size(), random)); }

void Append(std::string& bytes, Random& random) { bytes += Noise(1 + Below(100, random), random); }

void Insert(std::string& bytes, Random& random) {
  bytes.insert(Below(bytes.size(), random), Noise(1 + Below(32, random), random));
}

void TakeOut(std::string& bytes, Random& random) {
  bytes.erase(Below(bytes.size(), random), 1 + Below(32, random));
}

// Pieces of a file: records, or lines.
using Pieces = std::vector<std::string>;

void CutOutAPiece(Pieces& pieces, Random& random) {
  pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(Below(pieces.size(), random)));
}

void DoubleAPiece(Pieces& pieces, Random& random) {
  const std::size_t which = Below(pieces.size(), random);
  const std::string piece = pieces[which];
  pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(Below(pieces.size() + 1, random)),
                piece);
}

void ExchangePieces(Pieces& pieces, Random& random) {
  std::swap(pieces[Below(pieces.size(), random)], pieces[Below(pieces.size(), random)]);
}

void ReplaceAPiece(Pieces& pieces, Random& random) {
  pieces[Below(pieces.size(), random)] = pieces[Below(pieces.size(), random)];
}

Pieces RecordsOf(const std::string& path) {
  const std::string bytes = tests::TextOf(path);
  Pieces records;
  for (const RecordPlace& place : RecordFile(path, true).Scan()) {
    records.push_back(bytes.substr(place.offset, place.size));
  }
  return records;
}

Pieces LinesOf(const std::string& path) {
  Pieces lines;
  std::string rest = tests::TextOf(path);
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.push_back(rest.substr(0, length));
    rest.erase(0, length);
  }
  return lines;
}

void WritePieces(const std::string& path, const Pieces& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += piece;
  WriteText(path, bytes);
}

// Files.

void Remove(const fs::path& path) { fs::remove(path); }
void Empty(const fs::path& path) { fs::resize_file(path, 0); }
void MakeLinkToNothing(const fs::path& path) {
  fs::remove(path);
  fs::create_symlink("gone", path);
}
void MakeDirectory(const fs::path& path) {
  fs::remove(path);
  fs::create_directory(path);
}
void MakePipe(const fs::path& path) {
  fs::remove(path);
  ::mkfifo(path.c_str(), 0600);
}

void ExchangeFiles(const fs::path& one, const fs::path& other) {
  const std::string bytes = tests::TextOf(one.string());
  WriteText(one.string(), tests::TextOf(other.string()));
  WriteText(other.string(), bytes);
}

// Which file it is about.
using Choose = std::function<fs::path(const DataSetDirectories& directories, Random& random)>;

fs::path AnyFileOf(const fs::path& dir, Random& random) {
  std::vector<std::string> paths = FindDataFiles(dir.string(), Split::kTrain);
  std::ranges::copy(FindDataFiles(dir.string(), Split::kValidation), std::back_inserter(paths));
  return paths[Below(paths.size(), random)];
}
fs::path AShard(const DataSetDirectories& directories, Random& random) {
  return AnyFileOf(directories.data, random);
}
fs::path AnIndex(const DataSetDirectories& directories, Random& random) {
  return AnyFileOf(directories.index, random);
}
fs::path TheManifest(const DataSetDirectories& directories, Random& /*random*/) {
  return directories.data / kShardManifestName;
}

void AddBytes(std::vector<Corruption>& all, const std::string& kind, const Choose& choose) {
  const std::vector<std::pair<std::string, void (*)(std::string&, Random&)>> ways = {
      {"a bit turned", TurnABit},   {"bytes overwritten", Overwrite}, {"cut short", CutShort},
      {"bytes at the end", Append}, {"bytes put in between", Insert}, {"bytes taken out", TakeOut}};
  for (const auto& [name, change] : ways) {
    all.push_back({kind + ": " + name, [choose, change = change](
                                           const DataSetDirectories& directories, Random& random) {
                     const std::string path = choose(directories, random).string();
                     std::string bytes = tests::TextOf(path);
                     change(bytes, random);
                     WriteText(path, bytes);
                   }});
  }
}

void AddPieces(std::vector<Corruption>& all, const std::string& kind, const Choose& choose,
               Pieces (*pieces_of)(const std::string& path)) {
  const std::vector<std::pair<std::string, void (*)(Pieces&, Random&)>> ways = {
      {"cut out", CutOutAPiece},
      {"doubled", DoubleAPiece},
      {"exchanged", ExchangePieces},
      {"replaced by another", ReplaceAPiece}};
  for (const auto& [name, change] : ways) {
    all.push_back({kind + " " + name, [choose, pieces_of, change = change](
                                          const DataSetDirectories& directories, Random& random) {
                     const std::string path = choose(directories, random).string();
                     Pieces pieces = pieces_of(path);
                     change(pieces, random);
                     WritePieces(path, pieces);
                   }});
  }
}

void AddFiles(std::vector<Corruption>& all, const std::string& kind, const Choose& choose) {
  const std::vector<std::pair<std::string, void (*)(const fs::path&)>> ways = {
      {"removed", Remove},
      {"emptied", Empty},
      {"a link to nothing", MakeLinkToNothing},
      {"a directory", MakeDirectory},
      {"a pipe", MakePipe}};
  for (const auto& [name, change] : ways) {
    all.push_back({kind + ": " + name, [choose, change = change](
                                           const DataSetDirectories& directories, Random& random) {
                     change(choose(directories, random));
                   }});
  }
}

void MoveARecord(const DataSetDirectories& directories, Random& random) {
  const std::string from = AShard(directories, random).string();
  const std::string to = AShard(directories, random).string();
  Pieces records = RecordsOf(from);
  const std::string moved = records[Below(records.size(), random)];
  std::erase(records, moved);
  WritePieces(from, records);
  WriteText(to, tests::TextOf(to) + moved);
}

void AddAStray(const DataSetDirectories& directories, Random& random) {
  const fs::path shard = AShard(directories, random);
  const std::vector<std::string> names = {"train-00003-of-00003", "train-00003-of-00004",
                                          "train-0-of-3", "train-extra",
                                          shard.filename().string() + "~"};
  fs::copy_file(shard, directories.data / names[Below(names.size(), random)]);
}

// Nothing in the names tells that a shard is gone.
void LeaveOutAShard(const DataSetDirectories& directories, Random& random) {
  const std::size_t out = Below(3, random);
  int number = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = "train-0000" + std::to_string(i) + "-of-00003";
    for (const fs::path& directory : {directories.data, directories.index}) {
      if (i == out) {
        fs::remove(directory / name);
      } else {
        fs::rename(directory / name,
                   directory / ("train-0000" + std::to_string(number) + "-of-00002"));
      }
    }
    if (i != out) ++number;
  }
}

}  // namespace

std::vector<Corruption> AllCorruptions() {
  std::vector<Corruption> all;
  AddBytes(all, "shard", AShard);
  AddBytes(all, "index", AnIndex);
  AddBytes(all, "manifest", TheManifest);
  AddPieces(all, "shard: records", AShard, RecordsOf);
  AddPieces(all, "index: lines", AnIndex, LinesOf);
  AddPieces(all, "manifest: lines", TheManifest, LinesOf);
  AddFiles(all, "shard", AShard);
  AddFiles(all, "index", AnIndex);
  AddFiles(all, "manifest", TheManifest);
  all.push_back({"shard: a record moved to another", MoveARecord});
  all.push_back({"shard: one too many", AddAStray});
  all.push_back({"shard: left out, the others numbered anew", LeaveOutAShard});
  all.push_back({"shards exchanged", [](const DataSetDirectories& directories, Random& random) {
                   ExchangeFiles(AShard(directories, random), AShard(directories, random));
                 }});
  all.push_back({"shards and their indexes exchanged",
                 [](const DataSetDirectories& directories, Random& random) {
                   const fs::path one = AShard(directories, random);
                   const fs::path other = AShard(directories, random);
                   ExchangeFiles(one, other);
                   ExchangeFiles(directories.index / one.filename(),
                                 directories.index / other.filename());
                 }});
  all.push_back(
      {"shard: replaced by another", [](const DataSetDirectories& directories, Random& random) {
         const fs::path from = AShard(directories, random);
         WriteText(AShard(directories, random).string(), tests::TextOf(from.string()));
       }});
  all.push_back({"indexes exchanged", [](const DataSetDirectories& directories, Random& random) {
                   ExchangeFiles(AnIndex(directories, random), AnIndex(directories, random));
                 }});
  return all;
}

}  // namespace trainer
