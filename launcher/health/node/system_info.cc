// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/system_info.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// Of "400 Gb/sec (4X NDR)", "131072000 kB".
long long FirstWord(const std::string& text) {
  return support::WholeNumber<long long>(text.substr(0, text.find(' '))).value_or(0);
}

// x86 and Arm say "model name", POWER "cpu".
std::string CpuModel(const fs::path& cpuinfo) {
  for (const char* key : {"model name", "cpu", "CPU part"}) {
    const std::string model = ValueOf(cpuinfo, key, ':');
    if (!model.empty()) return model;
  }
  return "unknown CPU";
}

int CountProcessors(const fs::path& cpuinfo) {
  std::ifstream file(cpuinfo);
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("processor")) ++count;
  }
  return count;
}

int CountNvidiaDevices(const fs::path& devices) {
  int count = 0;
  for (const fs::path& device : SortedEntries(devices)) {
    // Display controllers: 0300 VGA, 0302 3D; NVSwitches and audio functions are others.
    if (FirstLine(device / "vendor") != "0x10de") continue;
    const std::string device_class = FirstLine(device / "class").substr(0, 6);
    if (device_class == "0x0300" || device_class == "0x0302") ++count;
  }
  return count;
}

// "4: ACTIVE" -> "ACTIVE"; "100 Gb/sec (4X EDR)" -> 100.
std::vector<IbPortInfo> ReadPorts(const fs::path& infiniband) {
  std::vector<IbPortInfo> ports;
  for (const fs::path& device : SortedEntries(infiniband)) {
    for (const fs::path& directory : SortedEntries(device / "ports")) {
      const std::string state = FirstLine(directory / "state");
      IbPortInfo port;
      port.name = device.filename().string() + ":" + directory.filename().string();
      port.state = Trimmed(state.substr(state.find(':') + 1));
      port.rate_gbits = static_cast<int>(FirstWord(FirstLine(directory / "rate")));
      port.protocol = FirstLine(directory / "link_layer");
      ports.push_back(port);
    }
  }
  return ports;
}

// Opens a file without a name, which cannot be left behind.  Where the file system has no such
// files, it is one whose name is removed at once.
support::Descriptor OpenUnnamed(const std::string& directory) {
  support::Descriptor unnamed(open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (unnamed.is_open() ||
      (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)) {
    return unnamed;
  }
  std::string name = directory + "/.ddlrun-check.XXXXXX";
  support::Descriptor named(mkostemp(name.data(), O_CLOEXEC));
  if (named.is_open()) unlink(name.c_str());
  return named;
}

long long FreeBytes(const std::string& path) {
  struct statvfs info = {};
  if (statvfs(path.c_str(), &info) != 0) return -1;
  return static_cast<long long>(info.f_bavail) * static_cast<long long>(info.f_frsize);
}

bool IsSeen(const std::string& file, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (access(file.c_str(), F_OK) != 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

// The directory that daemons of Open MPI 4 use in jobs of several nodes has a name that is known
// beforehand: whose it is.
std::string ForeignMpiDirectory(const fs::path& tmp, const std::string& machine) {
  const std::string name =
      "ompi." + machine.substr(0, machine.find('.')) + "." + std::to_string(geteuid());
  struct stat status = {};
  if (lstat((tmp / name).c_str(), &status) != 0 || status.st_uid == geteuid()) return "";
  return "/tmp/" + name + " belongs to user " + std::to_string(status.st_uid);
}

std::string OpennessToOtherUsers(const fs::path& base, const std::string& machine) {
  std::string text = ForeignMpiDirectory(base / "tmp", machine);
  for (const char* name : {"protected_regular", "protected_symlinks"}) {
    if (FirstLine(base / "proc/sys/fs" / name) != "0") continue;  // older kernels have none
    text += (text.empty() ? "fs." : ", fs.") + std::string(name) + " is 0";
  }
  return text;
}

}  // namespace

void ReadSystemInfo(const std::string& root, NodeInfo& info) {
  const fs::path base = root.empty() ? fs::path("/") : fs::path(root);
  info.cpu_model = CpuModel(base / "proc/cpuinfo");
  info.cpus = CountProcessors(base / "proc/cpuinfo");
  info.memory_bytes = FirstWord(ValueOf(base / "proc/meminfo", "MemTotal", ':')) * 1024;
  info.machine = FirstLine(base / "proc/sys/kernel/hostname");
  info.kernel = FirstLine(base / "proc/sys/kernel/osrelease");
  info.system = ValueOf(base / "etc/os-release", "PRETTY_NAME", '=');
  info.nvidia_devices = CountNvidiaDevices(base / "sys/bus/pci/devices");
  info.ports = ReadPorts(base / "sys/class/infiniband");
  info.other_users = OpennessToOtherUsers(base, info.machine);
}

void ReadLimits(NodeInfo& info) {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  info.memlock_bytes =
      limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<long long>(limit.rlim_cur);
  info.shm_error = WriteError("/dev/shm");
  info.shm_free_bytes = FreeBytes("/dev/shm");
}

std::string WriteError(const std::string& path) {
  const support::Descriptor file = OpenUnnamed(path);
  if (!file.is_open()) return std::strerror(errno);
  // Writes a block and has it reach the disk: only then quotas and full disks are noticed.
  const std::array<char, 4096> block = {};
  const ssize_t written = write(file.fd(), block.data(), block.size());
  if (written < 0) return std::strerror(errno);
  if (written != static_cast<ssize_t>(block.size())) return std::strerror(ENOSPC);
  return fsync(file.fd()) == 0 || errno == EINVAL ? "" : std::strerror(errno);
}

DirectoryInfo ReadDirectory(const std::string& probe, std::chrono::milliseconds timeout) {
  DirectoryInfo info;
  std::error_code error;
  info.path = fs::current_path(error).string();
  if (error) {
    info.write_error = "the directory is gone: " + error.message();
    return info;
  }
  info.is_shared = probe.empty() || IsSeen(probe, timeout);
  info.write_error = WriteError(".");
  info.free_bytes = FreeBytes(".");
  return info;
}

std::string FindMpiVersion() {
  // The libraries of Open MPI 4 and 5, of Spectrum MPI, and of MPICH and those made of it.
  for (const char* name : {"libmpi.so.40", "libmpi_ibm.so.3", "libmpi.so.12"}) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    // By the MPI standard this may be called before MPI_Init.
    using Function = int (*)(char*, int*);
    const auto get = reinterpret_cast<Function>(dlsym(library, "MPI_Get_library_version"));
    std::vector<char> text(16384);  // MPI_MAX_LIBRARY_VERSION_STRING is 256 or 8192
    int length = 0;
    if (get == nullptr || get(text.data(), &length) != 0) continue;
    const std::string version = text.data();
    return version.substr(0, version.find_first_of(",\n"));
  }
  return "";
}

std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\"");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\"") + 1 - first);
}

std::string ValueOf(const fs::path& path, const std::string& key, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t at = line.find(separator);
    if (at != std::string::npos && Trimmed(line.substr(0, at)) == key) {
      return Trimmed(line.substr(at + 1));
    }
  }
  return "";
}

std::vector<fs::path> SortedEntries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string LookUpHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error == EAI_SYSTEM) return std::strerror(errno);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return "";
}

std::string LoopbackOfHost(const std::string& host) {
  constexpr unsigned kLoopbackNetwork = 127;
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  std::string loopback;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const in_addr address = reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    if (ntohl(address.s_addr) >> 24 != kLoopbackNetwork) return "";
    std::array<char, INET_ADDRSTRLEN> text = {};
    inet_ntop(AF_INET, &address, text.data(), text.size());
    loopback = text.data();
  }
  return loopback;
}

NameLookup::NameLookup(const std::string& host, const LookUp& look_up) {
  std::promise<std::string> promise;
  problem_ = promise.get_future();
  if (host.empty()) {
    promise.set_value("");
    return;
  }
  std::thread([host, look_up, answer = std::move(promise)]() mutable {
    answer.set_value(look_up(host));
  }).detach();
}

std::string NameLookup::Problem(std::chrono::steady_clock::time_point end) {
  if (problem_.wait_until(end) == std::future_status::ready) return problem_.get();
  return "the name servers do not answer";
}

}  // namespace launcher
