// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "support/file.h"
#include "support/file_owner.h"
#include "support/json.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kLockFile[] = ".ddltraind.lock";

// Who holds a lock, as it says itself.
struct Holder {
  std::string host;  // "": not known
  std::int64_t pid = 0;
  std::string since;
  std::string job;
};

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

class FileLock {
 public:
  // `is_ours`: the file is of this user, or of the owner of the directory, and can be written.
  FileLock(fs::path path, support::Descriptor file, bool is_ours)
      : path_(std::move(path)), file_(std::move(file)), is_ours_(is_ours) {}
  ~FileLock() {
    // Before the lock is let go, or the file could be that of the next run; nor is it ours if
    // somebody has removed it.
    if (is_held_ && is_ours_ && IsThere()) ::unlink(path_.c_str());
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Whether the file that is open is still the one of this name.
  bool IsThere() const {
    struct stat open {};
    struct stat named {};
    return ::fstat(file_.fd(), &open) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           IsSameFile(open, named);
  }
  bool IsOfFile(const FileLock& other) const {
    struct stat open {};
    struct stat of_other {};
    return ::fstat(file_.fd(), &open) == 0 && ::fstat(other.file_.fd(), &of_other) == 0 &&
           IsSameFile(open, of_other);
  }

  bool is_ours() const { return is_ours_; }

  // 0, or why not: EWOULDBLOCK if another process has it.
  int Try() {
    while (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EINTR) return errno;
    }
    is_held_ = true;
    return 0;
  }

  // What fails here is only what a refused run would say, so nothing is made of it.
  void Write(const Holder& holder) const {
    const nlohmann::json json = {
        {"host", holder.host}, {"pid", holder.pid}, {"since", holder.since}, {"job", holder.job}};
    const std::string text = json.dump() + "\n";
    if (::ftruncate(file_.fd(), 0) == 0 && ::pwrite(file_.fd(), text.data(), text.size(), 0) >= 0)
      support::SyncFile(file_.fd());
  }

  Holder Read() const {
    std::array<char, 1024> text{};
    const ssize_t length = ::pread(file_.fd(), text.data(), text.size(), 0);
    const auto json = support::ParseJson<>(
        std::string_view(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))),
        {.bytes = text.size(), .depth = 2, .values = text.size()});
    try {
      return {json.at("host").get<std::string>(),
              support::IntegerOf<std::int64_t>(json.at("pid"), 0,
                                               std::numeric_limits<std::int32_t>::max())
                  .value_or(0),
              json.at("since").get<std::string>(), json.at("job").get<std::string>()};
    } catch (const nlohmann::json::exception&) {
      return {};
    }
  }

 private:
  static bool IsSameFile(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  }

  fs::path path_;
  support::Descriptor file_;
  bool is_ours_;
  bool is_held_ = false;
};

std::unique_ptr<FileLock> Open(const fs::path& path) {
  // O_NONBLOCK: a FIFO in its place must not hang us.
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  support::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0660));
  if (!file.is_open() && errno == EACCES) {
    // That of another user's run, in a directory of a group: flock takes one that is only read,
    // too.
    support::Descriptor read(::open(path.c_str(), O_RDONLY | kFlags));
    if (read.is_open()) return std::make_unique<FileLock>(path, std::move(read), false);
    errno = EACCES;
  }
  if (!file.is_open()) {
    throw Error(EX_OSERR, "cannot create " + path.string() + ": " +
                              std::generic_category().message(errno) +
                              "; check that directory or give another --model_dir");
  }
  // Another user may have made it for all to write.
  struct stat status {};
  const bool is_ours =
      ::fstat(file.fd(), &status) == 0 && support::IsOfUserOrDirectoryOwner(status, path.c_str());
  return std::make_unique<FileLock>(path, std::move(file), is_ours);
}

std::string Describe(const Holder& holder) {
  if (holder.host.empty()) return "another ddltraind";
  return "ddltraind on " + holder.host + ", pid " + std::to_string(holder.pid) +
         (holder.job.empty() ? "" : " (job " + holder.job + ")") + ", since " + holder.since;
}

// Whether its process is not there any more, as far as this host knows.
bool IsGone(const Holder& holder) {
  return holder.host == HostName() && holder.pid > 0 &&
         ::kill(static_cast<pid_t>(holder.pid), 0) != 0 && errno == ESRCH;
}

std::string Rejection(const fs::path& model_dir, const fs::path& file, const Holder& holder) {
  if (IsGone(holder)) {
    return model_dir.string() + " is locked, but not by " + Describe(holder) +
           ", which is dead: another process holds " + file.string() + " (fuser " + file.string() +
           " names it); rm " + file.string() + ", and start again";
  }
  std::string text = model_dir.string() + " is in use by " + Describe(holder) +
                     ": wait for it, give another --model_dir, or end it (";
  if (!holder.job.empty()) {
    text += "scancel " + holder.job;
  } else if (holder.host.empty() || holder.host == HostName()) {
    text += "kill " + (holder.pid > 0 ? std::to_string(holder.pid) : "its process");
  } else {
    text += "ssh " + holder.host + " kill " + std::to_string(holder.pid);
  }
  text += ")";
  if (holder.host != HostName()) {
    text += "; if that node is gone for good: rm " + file.string() + ", and start again";
  }
  return text;
}

using Clock = std::chrono::steady_clock;

// Waits a little for the holder of the lock of `file`; `begin` is when the first of these waits
// was, or will be.
void AwaitHolder(const fs::path& model_dir, const fs::path& file, const Holder& holder,
                 std::optional<Clock::time_point>& begin, const RunLockOptions& options) {
  const bool is_here = holder.host == HostName();
  const double seconds = is_here ? options.same_host_seconds : options.other_host_seconds;
  if (begin && Clock::now() - *begin >= std::chrono::duration<double>(seconds)) {
    throw Error(EX_CONFIG, Rejection(model_dir, file, holder));
  }
  if (options.stop_requested()) {
    throw Error(EX_TEMPFAIL, "stopped while waiting for " + model_dir.string() +
                                 ", which is in use by " + Describe(holder));
  }
  if (!begin) {
    begin = Clock::now();
    options.warn(model_dir.string() + " is in use by " + Describe(holder) + ": waiting up to " +
                 std::to_string(static_cast<int>(seconds)) + " s for its end");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

class HeldLock : public RunLock {
 public:
  HeldLock(fs::path model_dir, RunLockOptions options, std::unique_ptr<FileLock> lock)
      : model_dir_(std::move(model_dir)), options_(std::move(options)), lock_(std::move(lock)) {}

  void Renew() override {
    if (lock_->IsThere()) return;
    const WriteHook no_hook;
    MakeDirectories(model_dir_, {no_hook, "another --model_dir"});
    const fs::path file = model_dir_ / kLockFile;
    std::unique_ptr<FileLock> lock = Open(file);
    if (lock->IsOfFile(*lock_)) return;  // a file server that was not to be reached
    if (lock->Try() == EWOULDBLOCK) {
      throw Error(EX_CONFIG, model_dir_.string() +
                                 " was removed during this run, and another run has taken "
                                 "it: " +
                                 Describe(lock->Read()) +
                                 "; this one ends, or the two would mix their checkpoints: give "
                                 "each run a --model_dir of its own");
    }
    lock->Write({HostName(), ::getpid(), Now(), options_.job});
    lock_ = std::move(lock);
    options_.warn(file.string() +
                  " was removed during this run: it is made again; logs that were removed "
                  "with it are lost");
  }

 private:
  const fs::path model_dir_;
  const RunLockOptions options_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace

std::unique_ptr<RunLock> LockRun(const fs::path& model_dir, const RunLockOptions& options) {
  RequireDirectory(model_dir);
  if (const std::string wrong = DescribeMisplaced(model_dir); !wrong.empty()) {
    throw Error(EX_USAGE, wrong);
  }
  const WriteHook no_hook;
  MakeDirectories(model_dir, {no_hook, "another --model_dir"});
  const fs::path file = model_dir / kLockFile;
  std::optional<Clock::time_point> begin;
  for (;;) {
    std::unique_ptr<FileLock> lock = Open(file);
    const int error = lock->Try();
    // Its last holder may have removed it between our two calls; then it is nobody's lock.
    if (error == 0 && !lock->IsThere()) continue;
    if (error != EWOULDBLOCK && !lock->is_ours()) {
      // Left by a run that was killed; or not known, as NFS locks only what can be written
      // (flock(2)).
      throw Error(EX_OSERR, file.string() +
                                " is of a run of another user: give another --model_dir, or, if "
                                "that run has ended, rm it");
    }
    if (error == 0) {
      lock->Write({HostName(), ::getpid(), Now(), options.job});
      return std::make_unique<HeldLock>(model_dir, options, std::move(lock));
    }
    if (error != EWOULDBLOCK) {
      options.warn(file.string() + ": this file system has no locks (" +
                   std::generic_category().message(error) +
                   "): nothing keeps a second run out of " + model_dir.string());
      ::unlink(file.c_str());
      return nullptr;
    }
    AwaitHolder(model_dir, file, lock->Read(), begin, options);
  }
}

bool IsRunIn(const fs::path& model_dir) {
  const fs::path path = model_dir / kLockFile;
  const support::Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.is_open() && ::flock(file.fd(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace trainer
