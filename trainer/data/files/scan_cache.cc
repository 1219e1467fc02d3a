// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/scan_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/core/consistency_item.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

constexpr std::string_view kFirstBytes = "ddltraind scan 1\n";
constexpr std::size_t kScanChecksumBytes = 4;
constexpr std::uint64_t kMaxOfFourBytes = std::numeric_limits<std::uint32_t>::max();

template <typename T>
void AppendNumber(T value, std::string& out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 255U);
  }
}

void AppendText(std::string_view text, std::string& out) {
  DDL_CHECK(text.size() <= kMaxOfFourBytes);
  AppendNumber(static_cast<std::uint32_t>(text.size()), out);
  out += text;
}

// Takes what it is asked for from the front, and notes when that is not there.
class ScanReader {
 public:
  explicit ScanReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

  std::span<const std::uint8_t> Take(std::size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  template <typename T>
  T Number() {
    std::uint64_t value = 0;
    const auto taken = Take(sizeof(T));
    for (std::size_t i = taken.size(); i > 0; --i) value = value << 8 | taken[i - 1];
    return static_cast<T>(value);
  }

  std::string_view Text() {
    const auto taken = Take(Number<std::uint32_t>());
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

// False if the records do not fill the file.
bool ReadPlaces(ScanReader& reader, std::uint64_t file_bytes, std::vector<RecordPlace>& places) {
  const auto records = reader.Number<std::uint32_t>();
  if (!reader.ok() || records > reader.left() / sizeof(std::uint32_t)) return false;
  places.reserve(records);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < records; ++i) {
    const std::uint64_t size = reader.Number<std::uint32_t>();
    if (size < kRecordFramingBytes || size > file_bytes - offset) return false;
    places.push_back({offset, size});
    offset += size;
  }
  return offset == file_bytes;
}

bool ReadScannedFile(ScanReader& reader, ScannedFile& file) {
  file.name = reader.Text();
  file.identity.device = reader.Number<std::uint64_t>();
  file.identity.inode = reader.Number<std::uint64_t>();
  file.identity.bytes = reader.Number<std::uint64_t>();
  file.identity.modified = reader.Number<std::int64_t>();
  file.identity.changed = reader.Number<std::int64_t>();
  file.scan.checksum = reader.Number<std::uint32_t>();
  return ReadPlaces(reader, file.identity.bytes, file.scan.places);
}

std::uint32_t TrailingChecksum(std::span<const std::uint8_t> bytes) {
  return Crc32c(std::as_bytes(bytes.subspan(kFirstBytes.size() + kScanChecksumBytes)));
}

}  // namespace

bool KeepsScan(const RecordScan& scan) {
  return scan.places.size() <= kMaxOfFourBytes &&
         std::ranges::all_of(
             scan.places, [](const RecordPlace& place) { return place.size <= kMaxOfFourBytes; });
}

std::string FormatScans(std::string_view set, std::span<const ScannedFile> files) {
  std::string behind;
  AppendText(set, behind);
  AppendNumber(static_cast<std::uint32_t>(files.size()), behind);
  for (const ScannedFile& file : files) {
    DDL_CHECK(KeepsScan(file.scan));
    AppendText(file.name, behind);
    AppendNumber(file.identity.device, behind);
    AppendNumber(file.identity.inode, behind);
    AppendNumber(file.identity.bytes, behind);
    AppendNumber(file.identity.modified, behind);
    AppendNumber(file.identity.changed, behind);
    AppendNumber(file.scan.checksum, behind);
    AppendNumber(static_cast<std::uint32_t>(file.scan.places.size()), behind);
    for (const RecordPlace& place : file.scan.places) {
      AppendNumber(static_cast<std::uint32_t>(place.size), behind);
    }
  }
  std::string bytes(kFirstBytes);
  AppendNumber(Crc32c(std::as_bytes(std::span(behind))), bytes);
  return bytes + behind;
}

std::optional<std::vector<ScannedFile>> ParseScans(std::span<const std::uint8_t> bytes,
                                                   std::string_view set) {
  ScanReader reader(bytes);
  const auto first = reader.Take(kFirstBytes.size());
  const auto checksum = reader.Number<std::uint32_t>();
  if (!reader.ok() || !std::ranges::equal(first, kFirstBytes) ||
      checksum != TrailingChecksum(bytes) || reader.Text() != set) {
    return std::nullopt;
  }
  std::vector<ScannedFile> files;
  const auto count = reader.Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    ScannedFile file;
    if (!ReadScannedFile(reader, file)) return std::nullopt;
    if (!files.empty() && files.back().name >= file.name) return std::nullopt;
    files.push_back(std::move(file));
  }
  if (!reader.ok() || reader.left() > 0) return std::nullopt;
  return files;
}

namespace {

constexpr char kScanPrefix[] = "scan-";
constexpr std::size_t kKeptSets = 16;                            // of one user on one node
constexpr std::uint64_t kMaxScanBytes = std::uint64_t{1} << 30;  // 256 million records

// By the name of the file.
using Kept = std::map<std::string, ScannedFile>;

std::string NameOf(const RecordFile& file) {
  return std::filesystem::path(file.path()).filename().string();
}

// One look at what is kept, and what has to be scanned beside it.
class Scanning {
 public:
  Scanning(std::span<const RecordFile> files, const std::string& set, int threads,
           const ScanCacheOptions& options)
      : files_(files),
        set_(set),
        name_(kScanPrefix + HexFingerprint(set)),
        threads_(threads),
        options_(options),
        found_(files.size()) {}

  SetScan Run();

 private:
  std::optional<PrivateDirectory> OpenDirectory();
  bool TakeKept(const PrivateDirectory& directory);
  void ScanOthers();
  void Keep(const PrivateDirectory& directory);
  bool IsSettled(const FileIdentity& identity) const;

  std::span<const RecordFile> files_;
  const std::string& set_;
  const std::string name_;  // of what is kept
  const int threads_;
  const ScanCacheOptions& options_;
  std::vector<std::optional<ScannedFile>> found_;
  std::vector<std::uint8_t> is_to_be_kept_ = std::vector<std::uint8_t>(files_.size(), 1);
  ScanCost cost_;
};

// Nothing where there is none that can be used.
std::optional<PrivateDirectory> Scanning::OpenDirectory() {
  if (options_.dir.empty()) return std::nullopt;
  try {
    return PrivateDirectory(options_.dir);
  } catch (const Error& error) {
    cost_.note = error.what();
    return std::nullopt;
  }
}

// True if all files are known.
bool Scanning::TakeKept(const PrivateDirectory& directory) {
  const auto bytes = directory.Read(name_, kMaxScanBytes);
  auto scans =
      bytes
          ? ParseScans({reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()}, set_)
          : std::nullopt;
  if (!scans) return false;
  Kept kept;
  for (ScannedFile& scan : *scans) kept.emplace(scan.name, std::move(scan));
  bool is_all = true;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto scan = kept.find(NameOf(files_[i]));
    const bool is_known = scan != kept.end() && scan->second.identity == files_[i].identity();
    if (is_known) found_[i] = std::move(scan->second);
    is_all = is_all && is_known;
  }
  return is_all;
}

bool Scanning::IsSettled(const FileIdentity& identity) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now - std::chrono::nanoseconds(identity.changed) >= options_.settled;
}

void Scanning::ScanOthers() {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!found_[i]) others.push_back(i);
  }
  ParallelFor(threads_, std::ssize(others), [&](std::int64_t number) {
    const std::size_t i = others[static_cast<std::size_t>(number)];
    const RecordFile& file = files_[i];
    const bool may_be_kept = !options_.dir.empty() && IsSettled(file.identity());
    RecordScan scan = file.stays_open() ? file.ScanWithChecksum()
                                        : RecordFile(file.path(), true).ScanWithChecksum();
    // What was written to it since it was opened makes it another file for the next run.
    is_to_be_kept_[i] = may_be_kept && KeepsScan(scan) ? 1 : 0;
    found_[i] = ScannedFile{NameOf(file), file.identity(), std::move(scan)};
  });
  for (const std::size_t i : others) {
    ++cost_.scanned;
    cost_.headers += std::ssize(found_[i]->scan.places);
    cost_.bytes += found_[i]->scan.bytes_read;
  }
}

// What goes wrong is noted: the run has what it needs.
void Scanning::Keep(const PrivateDirectory& directory) {
  std::vector<ScannedFile> kept;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (is_to_be_kept_[i] != 0) kept.push_back(*found_[i]);
  }
  if (kept.empty()) return;
  const std::string bytes = FormatScans(set_, kept);
  if (bytes.size() > kMaxScanBytes) return;
  try {
    directory.Write(name_, bytes);
    directory.Prune(kScanPrefix, kKeptSets);
  } catch (const Error& error) {
    cost_.note = error.what();
  }
}

SetScan Scanning::Run() {
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<PrivateDirectory> directory = OpenDirectory();
  std::optional<support::Descriptor> lock;
  if (directory && !TakeKept(*directory)) {
    // A few locks for all sets, so that they need not be removed: who shares one waits for no more
    // than a scan.
    lock = directory->Lock(std::string("lock-") + name_.back(), options_.timeout);
    if (!lock) {
      cost_.note = directory->path() + ": another process holds the lock, or there are no locks";
    } else {
      TakeKept(*directory);
    }
  }
  ScanOthers();
  if (lock && cost_.scanned > 0) Keep(*directory);
  SetScan result;
  for (std::optional<ScannedFile>& file : found_) result.files.push_back(std::move(file->scan));
  cost_.files = std::ssize(files_);
  cost_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.cost = std::move(cost_);
  return result;
}

}  // namespace

SetScan ScanSet(std::span<const RecordFile> files, const std::string& set, int threads,
                const ScanCacheOptions& options) {
  return Scanning(files, set, threads, options).Run();
}

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLockPoll{10};
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kOwnDirectory = 0700;
constexpr mode_t kOthers = 0077;

std::string WhyNotPrivate(const support::Descriptor& directory) {
  struct stat status {};
  if (::fstat(directory.fd(), &status) != 0) return std::generic_category().message(errno);
  if (status.st_uid != ::geteuid()) return "it is of another user";
  if ((status.st_mode & kOthers) != 0) return "it is open to others: chmod 700 makes it private";
  return "";
}

}  // namespace

PrivateDirectory::PrivateDirectory(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), kOwnDirectory) != 0 && errno != EEXIST) {
    throw OsError("cannot make the directory " + path_, errno);
  }
  directory_ =
      support::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_.is_open()) throw OsError("cannot open the directory " + path_, errno);
  const std::string why = WhyNotPrivate(directory_);
  if (!why.empty()) throw Error(EX_OSERR, "cannot use the directory " + path_ + ": " + why);
}

support::Descriptor PrivateDirectory::Open(const std::string& name, int flags) const {
  return support::Descriptor(::openat(directory_.fd(), name.c_str(),
                                      flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, kOwnFile));
}

std::optional<std::string> PrivateDirectory::Read(const std::string& name,
                                                  std::uint64_t max_bytes) const {
  const support::Descriptor file = Open(name, O_RDONLY);
  struct stat status {};
  if (!file.is_open() || ::fstat(file.fd(), &status) != 0 || status.st_uid != ::geteuid()) {
    return std::nullopt;
  }
  support::WholeFile read = support::ReadWholeFile(file.fd(), max_bytes);
  if (read.problem != support::ReadProblem::kNone) return std::nullopt;
  return std::move(read.content);
}

void PrivateDirectory::Write(const std::string& name, std::string_view bytes) const {
  const int error =
      support::ReplaceFile(name, bytes, {.mode = kOwnFile, .directory = directory_.fd()});
  if (error != 0) throw OsError("cannot write " + path_ + "/" + name, error);
}

support::Descriptor PrivateDirectory::OpenToUpdate(const std::string& name) const {
  support::Descriptor file = Open(name, O_RDWR | O_CREAT);
  if (!file.is_open()) throw OsError("cannot open " + path_ + "/" + name, errno);
  return file;
}

void PrivateDirectory::Prune(const std::string& prefix, std::size_t kept) const {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    std::error_code gone;
    const fs::file_time_type time = entry->last_write_time(gone);
    if (!gone) files.emplace_back(time, entry->path());
  }
  if (files.size() <= kept) return;
  std::ranges::sort(files);
  files.resize(files.size() - kept);
  for (const auto& [time, path] : files) fs::remove(path, error);
}

std::optional<support::Descriptor> PrivateDirectory::Lock(const std::string& name,
                                                          std::chrono::milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  support::Descriptor file = Open(name, O_RDWR | O_CREAT);
  if (!file.is_open()) return std::nullopt;
  while (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    const bool is_held = errno == EWOULDBLOCK || errno == EINTR;
    if (!is_held || std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kLockPoll);
  }
  return file;
}

}  // namespace trainer
