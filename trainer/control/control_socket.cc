// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

constexpr int kBacklog = 16;

support::Descriptor MakeSocket(int flags) {
  return support::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Of `path`, which fits.
sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

}  // namespace

std::size_t MaxBytesOfSocketPath() { return sizeof(sockaddr_un::sun_path) - 1; }

// It is bound under another name and renamed once it listens: one that is found and refuses is of
// a process that has ended.
support::Descriptor ListenAt(const std::string& path) {
  const std::string early = path + ".new";
  if (early.size() > MaxBytesOfSocketPath()) {
    throw Error(EX_OSERR, "the path of a socket would be too long: " + path);
  }
  support::Descriptor socket = MakeSocket(SOCK_NONBLOCK);
  const sockaddr_un address = AddressOf(early);
  if (socket.fd() < 0 ||
      ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.fd(), kBacklog) != 0 || std::rename(early.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(early.c_str());
    throw OsError("cannot make the socket " + path, error);
  }
  return socket;
}

support::Descriptor ConnectTo(const std::string& path, int& error) {
  error = ENAMETOOLONG;
  if (path.size() > MaxBytesOfSocketPath()) return support::Descriptor();
  support::Descriptor socket = MakeSocket(0);
  constexpr timeval kLimit = {kSocketTimeout, 0};
  for (const int name : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    ::setsockopt(socket.fd(), SOL_SOCKET, name, &kLimit, sizeof(kLimit));
  }
  const sockaddr_un address = AddressOf(path);
  error = 0;
  if (socket.fd() < 0 ||
      ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  return socket;
}

bool IsPeerOf(int fd, uid_t uid) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) &&
         peer.uid == uid;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDirectoryPrefix = "ddltraind.";
constexpr std::string_view kSocketSuffix = ".socket";
// "/12345678.socket.new", with room.
constexpr std::size_t kBytesForSocketName = 32;

bool IsPrivate(const fs::path& directory) {
  struct stat info = {};
  return ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
}

bool HasCapacity(const fs::path& directory) {
  return directory.is_absolute() &&
         directory.string().size() + kBytesForSocketName <= MaxBytesOfSocketPath();
}

bool IsStale(const fs::path& socket) {
  int error = 0;
  ConnectTo(socket.string(), error);
  return error == ECONNREFUSED;
}

void RemoveStale(const fs::path& base) {
  std::error_code ignored;
  for (fs::directory_iterator directory(base, ignored), end; !ignored && directory != end;
       directory.increment(ignored)) {
    if (!directory->path().filename().string().starts_with(kDirectoryPrefix) ||
        !IsPrivate(directory->path())) {
      continue;
    }
    std::error_code error;
    for (fs::directory_iterator entry(directory->path(), error), last; !error && entry != last;
         entry.increment(error)) {
      std::error_code unknown;
      if (!entry->is_socket(unknown) || !IsStale(entry->path())) continue;
      fs::remove(entry->path(), unknown);
      fs::remove(directory->path(), unknown);  // where nothing else is in it
    }
  }
}

}  // namespace

SocketDirectory::SocketDirectory(const SocketDirectoryOptions& options) {
  if (HasCapacity(options.run_directory) && IsPrivate(options.run_directory)) {
    path_ = options.run_directory;
    return;
  }
  int error = ENOENT;
  for (const fs::path& base : options.bases) {
    std::string directory = (base / (std::string(kDirectoryPrefix) + "XXXXXX")).string();
    if (!HasCapacity(directory)) continue;
    RemoveStale(base);
    if (::mkdtemp(directory.data()) != nullptr) {
      path_ = directory;
      is_own_ = true;
      return;
    }
    error = errno;
  }
  throw OsError("no directory for a socket can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp", error);
}

SocketDirectory::~SocketDirectory() {
  if (is_own_) ::rmdir(path_.c_str());
}

fs::path SocketDirectory::socket() const {
  return path_ / (std::to_string(::getpid()) + std::string(kSocketSuffix));
}

namespace {

[[noreturn]] void ThrowNoAnswer(const std::string& path) {
  throw NoAnswer(EX_UNAVAILABLE, path + ": ddltraind does not answer; is its process stopped?");
}

support::Descriptor Connect(const std::string& path) {
  int error = 0;
  support::Descriptor socket = ConnectTo(path, error);
  if (error == ENOENT || error == ECONNREFUSED) {
    throw NobodyListens(EX_UNAVAILABLE, "nobody listens at " + path);
  }
  if (error == EAGAIN) ThrowNoAnswer(path);
  const std::string why = path + ": " + std::generic_category().message(error);
  if (error == EACCES || error == EPERM) throw Error(EX_NOPERM, why);
  if (error != 0) throw Error(EX_UNAVAILABLE, why);
  // Whoever could write the file that names the socket might have named one of their own.
  if (!IsPeerOf(socket.fd(), ::geteuid())) {
    throw Error(EX_NOPERM, path + " is the socket of another user: be that user");
  }
  return socket;
}

}  // namespace

ControlAnswer Ask(const std::string& path, const ControlRequest& request) {
  const support::Descriptor socket = Connect(path);
  const std::string line = FormatRequest(request) + "\n";
  std::string text;
  if (::send(socket.fd(), line.data(), line.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(line.size())) {
    std::array<char, 4096> part{};
    ssize_t count = 0;
    do {
      count = ::recv(socket.fd(), part.data(), part.size(), 0);
      if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    } while ((count > 0 && text.back() != '\n' && text.size() <= kMaxAnswerBytes) ||
             (count < 0 && errno == EINTR));
    if (count < 0 && errno == EAGAIN) ThrowNoAnswer(path);
  }
  // It has ended while it was asked.
  if (text.empty()) throw NobodyListens(EX_UNAVAILABLE, "nobody answers at " + path);
  if (text.back() != '\n') throw Error(EX_DATAERR, path + ": the answer is cut off");
  text.pop_back();
  return ParseAnswer(text);
}

namespace {

using ControlClock = std::chrono::steady_clock;

constexpr int kMillisecondsBetweenTries = 100;

// Until `until`, rounded up; -1 for ever.
int Milliseconds(ControlClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ControlClock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

}  // namespace

ControlServer::ControlServer(const std::string& path, RunControl& control, uid_t uid)
    : path_(path),
      control_(control),
      uid_(uid),
      listener_(ListenAt(path)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  try {
    if (wake_.fd() < 0) throw OsError("cannot make an eventfd", errno);
    thread_ = StartThread("the thread that answers ddlctl", [this] { Run(); });
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

ControlServer::~ControlServer() {
  ::unlink(path_.c_str());
  ::eventfd_write(wake_.fd(), 1);  // its counter always has room for one
}

void ControlServer::Run() {
  for (;;) {
    const bool is_full = clients_.size() >= kMaxClients;
    std::vector<pollfd> waiting = {{wake_.fd(), POLLIN, 0},
                                   {is_full ? -1 : listener_.fd(), POLLIN, 0}};
    int timeout = -1;
    for (const Client& client : clients_) {
      waiting.push_back({client.socket.fd(), POLLIN, 0});
      const int left = Milliseconds(client.until);
      timeout = timeout < 0 ? left : std::min(timeout, left);
    }
    if (::poll(waiting.data(), waiting.size(), timeout) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    const auto now = ControlClock::now();
    std::size_t at = 2;
    std::erase_if(clients_, [&](Client& client) {
      const bool has_reported = waiting[at++].revents != 0;
      return (has_reported && !Read(client)) || client.until <= now;
    });
    if (waiting[1].revents != 0) Accept();
  }
}

void ControlServer::Accept() {
  support::Descriptor socket(
      ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.fd() < 0) {
    // No descriptor is left for it: it stays in the queue, which must not keep a core busy.
    pollfd wake = {wake_.fd(), POLLIN, 0};
    if (errno == EMFILE || errno == ENFILE) ::poll(&wake, 1, kMillisecondsBetweenTries);
    return;
  }
  if (!IsPeerOf(socket.fd(), uid_)) return;
  clients_.push_back({std::move(socket), ControlClock::now() + kTimeout, {}});
}

bool ControlServer::Read(Client& client) {
  std::array<char, kMaxRequestBytes> part{};
  const ssize_t count = ::recv(client.socket.fd(), part.data(), part.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  client.line.append(part.data(), static_cast<std::size_t>(count));
  const std::size_t end = client.line.find('\n');
  if (end == std::string::npos && client.line.size() <= kMaxRequestBytes) return true;
  const std::string answer = Answer(client.line.substr(0, end)) + "\n";
  // Whoever does not take it at once gets none: a new socket has room for it.
  static_cast<void>(::send(client.socket.fd(), answer.data(), answer.size(), MSG_NOSIGNAL));
  return false;
}

std::string ControlServer::Answer(const std::string& line) {
  const ParsedRequest parsed = ParseRequest(line);
  if (parsed.request) return FormatAnswer(control_.Take(*parsed.request));
  return FormatAnswer({"the message is not understood: " + parsed.problem, control_.status()});
}

}  // namespace trainer
