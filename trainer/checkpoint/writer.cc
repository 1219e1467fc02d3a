// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/file.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr char kInstead[] = "another --model_dir (checkpoints already there are intact)";

// A directory of ours that is removed unless it got its final name.
class TemporaryDirectory {
 public:
  TemporaryDirectory(fs::path path, const WriteContext& context) : path_(std::move(path)) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);  // of an earlier process with our number
    MakeNewDirectory(path_, context);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  void RenameTo(const fs::path& final_path, const WriteContext& context) {
    Rename(path_, final_path, context);
    path_.clear();
  }

 private:
  fs::path path_;
};

// One safetensors file, ready to be written: views of the caller's tensors behind a header.
struct PreparedFile {
  std::string header;
  std::vector<Bytes> data;  // in the order of the file
  ManifestFile manifest;
};

PreparedFile Prepare(const char* name, std::span<const TensorReader> tensors) {
  PreparedFile file;
  file.header = MakeSafetensorsHeader(tensors);
  file.manifest.name = name;
  file.manifest.bytes = file.header.size();
  file.manifest.header_crc32c = Crc32c(std::as_bytes(std::span(file.header)));
  for (const std::size_t position : DataOrder(tensors)) {
    const TensorReader& tensor = tensors[position];
    const Bytes bytes(static_cast<const std::byte*>(tensor.data),
                      static_cast<std::size_t>(tensor.shape.elements()) * SizeOf(tensor.dtype));
    file.data.push_back(bytes);
    file.manifest.bytes += bytes.size();
    file.manifest.tensors.push_back(
        {.name = tensor.name, .bytes = bytes.size(), .crc32c = Crc32c(bytes)});
  }
  return file;
}

void WritePrepared(const fs::path& directory, const PreparedFile& file,
                   const WriteContext& context) {
  std::vector<Bytes> pieces = {std::as_bytes(std::span(file.header))};
  pieces.insert(pieces.end(), file.data.begin(), file.data.end());
  WriteNewFile(directory / file.manifest.name, pieces, context);
}

// The manifest of the checkpoint in `directory` if there is one and all of it is valid.
std::optional<Manifest> ReadIfValid(const fs::path& directory) {
  try {
    return ReadCheckpoint(directory).manifest;
  } catch (const Error& problem) {
    if (!IsUnusable(problem)) throw;
    return std::nullopt;
  }
}

}  // namespace

fs::path WriteCheckpoint(const fs::path& model_dir, const CheckpointState& state,
                         const CheckpointTensors& tensors, const WriteHook& hook) {
  const DelayedEnd delayed;
  std::vector<PreparedFile> files;
  files.push_back(Prepare(kModelFile, tensors.model));
  files.push_back(Prepare(kOptimizerFile, tensors.optimizer));
  if (!tensors.average.empty()) files.push_back(Prepare(kAverageFile, tensors.average));
  Manifest manifest{state, {}};
  for (const PreparedFile& file : files) manifest.files.push_back(file.manifest);

  const fs::path parent = CheckpointsDirectory(model_dir);
  const fs::path final_path = parent / CheckpointName(state.step);
  const WriteContext context{hook, kInstead};
  MakeDirectories(parent, context);
  if (std::optional<Manifest> present = ReadIfValid(final_path)) {
    // It may have been evaluated since.
    present->state.top1 = state.top1;
    present->state.data.validation = state.data.validation;
    if (*present == manifest) {
      if (state.top1) NoteTop1(final_path, *state.top1, hook, state.data.validation);
      return final_path;
    }
    throw Error(EX_DATAERR, final_path.string() +
                                ": a checkpoint of another run is there; give each run a "
                                "--model_dir of its own");
  }

  TemporaryDirectory temporary(parent / TemporaryName(state.step), context);
  for (const PreparedFile& file : files) WritePrepared(temporary.path(), file, context);
  const std::string text = ToJson(manifest);
  const Bytes text_bytes = std::as_bytes(std::span(text));
  WriteNewFile(temporary.path() / kManifestFile, std::span(&text_bytes, 1), context);
  SyncDirectory(temporary.path(), context);
  SetAside(final_path);  // there is only an unusable one, if any
  temporary.RenameTo(final_path, context);
  SyncDirectory(parent, context);
  return final_path;
}

int RemoveStaleCheckpoints(const fs::path& model_dir) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(CheckpointsDirectory(model_dir), error), end;
       !error && entry != end; entry.increment(error)) {
    const auto owner = ParseTemporaryName(entry->path().filename().string());
    if (owner && IsStale(entry->path(), *owner)) stale.push_back(entry->path());
  }
  int removed = 0;
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
    if (!error) ++removed;
  }
  return removed;
}

namespace {

// Most bytes between two calls of the hook.
constexpr std::size_t kMaxWrite = std::size_t{8} << 20;

[[noreturn]] void Fail(const char* action, const std::filesystem::path& path, int error,
                       const WriteContext& context) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(EX_OSERR, std::string("cannot ") + action + " " + path.string() + ": " +
                            support::DescribeWriteError(path, error) +
                            (full ? "; make room there" : "; check that directory") + " or give " +
                            std::string(context.instead));
}

void Announce(const WriteContext& context, std::string_view call) {
  if (context.hook) context.hook(call);
}

void Check(int error, const char* action, const std::filesystem::path& path,
           const WriteContext& context) {
  if (error != 0) Fail(action, path, error, context);
}

support::Descriptor Open(const std::filesystem::path& path, int flags, const char* action,
                         const WriteContext& context) {
  support::Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.is_open()) Fail(action, path, errno, context);
  return file;
}

void Write(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path,
           const WriteContext& context) {
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!left.empty()) {
    Announce(context, "write");
    const std::string_view piece = left.substr(0, kMaxWrite);
    Check(support::WriteAll(fd, piece).error, "write", path, context);
    left.remove_prefix(piece.size());
  }
}

void Sync(int fd, const std::filesystem::path& path, const WriteContext& context) {
  Announce(context, "fsync");
  Check(support::SyncFile(fd), "sync", path, context);
}

bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat of_a = {};
  struct stat of_b = {};
  return ::lstat(a.c_str(), &of_a) == 0 && ::lstat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace

void WriteNewFile(const std::filesystem::path& path,
                  std::span<const std::span<const std::byte>> pieces, const WriteContext& context) {
  Announce(context, "open");
  support::Descriptor file =
      Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create", context);
  for (const std::span<const std::byte> piece : pieces) Write(file.fd(), piece, path, context);
  Sync(file.fd(), path, context);
  Announce(context, "close");
  Check(file.Close(), "close", path, context);
}

void SyncDirectory(const std::filesystem::path& path, const WriteContext& context) {
  Sync(Open(path, O_RDONLY | O_DIRECTORY, "open", context).fd(), path, context);
}

void MakeNewDirectory(const std::filesystem::path& path, const WriteContext& context) {
  Announce(context, "mkdir");
  if (::mkdir(path.c_str(), 0777) != 0) Fail("create", path, errno, context);
}

void MakeDirectories(const std::filesystem::path& path, const WriteContext& context) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  MakeDirectories(parent, context);
  Announce(context, "mkdir");
  const int error = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  const bool is_there = error == EEXIST && std::filesystem::is_directory(path, ignored);
  if (error != 0 && !is_there) {
    if (error != EEXIST && error != ENOTDIR) Fail("create", path, error, context);
    throw Error(EX_OSERR, "cannot create " + path.string() + ": " +
                              support::DescribeObstacle(path, error) + "; or give " +
                              std::string(context.instead));
  }
  SyncDirectory(parent, context);
}

void Rename(const std::filesystem::path& from, const std::filesystem::path& to,
            const WriteContext& context) {
  Announce(context, "rename");
  if (::rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno, context);
}

bool RenameIfNew(const std::filesystem::path& from, const std::filesystem::path& to,
                 const WriteContext& context) {
  Announce(context, "link");
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return true;
  }
  const int error = errno;
  // Over NFS the answer to a call that has succeeded may be lost, and the repeated one finds this.
  if (error == EEXIST && IsSameFile(from, to)) {
    ::unlink(from.c_str());
    return true;
  }
  if (error == EEXIST) return false;
  if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS) {
    Fail("rename to", to, error, context);
  }
  struct stat info = {};
  if (::lstat(to.c_str(), &info) == 0) return false;
  Rename(from, to, context);
  return true;
}

}  // namespace trainer
