// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/read_allocation.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "launcher/allocation/host_allocation.h"
#include "launcher/allocation/hosts_of_job.h"
#include "launcher/base/error.h"
#include "launcher/cli/user_program.h"
#include "launcher/pipeline/batch_system.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/system/files.h"
#include "rankfile/host_name.h"

namespace launcher {
namespace {

// -H or -hostfile.
std::optional<Allocation> ReadRequestedHosts(const Options& options,
                                             const Environment& environment) {
  if (!options.hosts.empty() && !options.hostfile.empty()) {
    throw LaunchError(EX_USAGE, "give either -H or -hostfile, not both");
  }
  if (!options.hosts.empty()) {
    const std::string wrong = DescribeHostAsProgram(options.hosts, options.program);
    const bool is_program =
        wrong.empty() || !FindProgram(options.program.front(), environment).empty();
    if (!is_program) throw LaunchError(EX_USAGE, wrong);
    return AllocationFromHostList(options.hosts);
  }
  if (options.hostfile.empty()) return std::nullopt;
  return AllocationFromHostfile(ReadFile(options.hostfile), options.hostfile);
}

// Hosts that no job knows, by which two names of one node are told: refuses two names of one host,
// each of which would get the first GPU and the first cores.
Allocation WithDistinctHosts(Allocation requested, const Environment& environment) {
  const auto reject = [&](const std::string& words) {
    throw LaunchError(
        requested.origin == Allocation::Origin::kHostfile ? EX_DATAERR : EX_USAGE,
        requested.origin_text + ": " + words + "; write one of them, with all its slots");
  };
  rankfile::HostSpellings spellings;
  std::string own;  // of this machine
  for (const AllocatedNode& node : requested.nodes) {
    if (const std::string* other = spellings.Add(node.host)) {
      reject(*other + " and " + node.host + " are one host spelled in two ways");
    }
    if (!IsThisMachine(node.host, environment)) continue;
    if (!own.empty()) reject(own + " and " + node.host + " are both this machine");
    own = node.host;
  }
  return requested;
}

}  // namespace

std::optional<Allocation> ReadJob(const Options& options, Environment environment) {
  if (options.accelerators == 0) environment.erase("CUDA_VISIBLE_DEVICES");
  return ReadSlurmAllocation(environment);
}

Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job) {
  std::optional<Allocation> requested = ReadRequestedHosts(options, environment);
  std::optional<Allocation> slurm = ReadJob(options, environment);
  if (!slurm) {
    if (!requested) requested = ReadBatchAllocation(environment, ReadFile);
    return requested ? WithDistinctHosts(*requested, environment)
                     : AllocationOfThisMachine(HostName());
  }
  if (!requested) return *slurm;
  const HostsOfJob hosts(*slurm);
  const bool leaves_job =
      std::any_of(requested->nodes.begin(), requested->nodes.end(),
                  [&](const AllocatedNode& node) { return hosts.Find(node.host) == nullptr; });
  if (leaves_job && may_leave_job) return WithDistinctHosts(*requested, environment);
  // While the allocation still has the node that Slurm's variables are about.
  if (!options.accelerators) QuerySlurmForGpus(environment, &*slurm);
  return RestrictToHosts(*slurm, *requested);
}

namespace {

// Whether it is of the loopback, or of an interface of this machine.
bool IsOwnAddress(const sockaddr& address) {
  constexpr unsigned kLoopbackNetwork = 127;
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  const bool is_v4 = address.sa_family == AF_INET;
  if (is_v4 && ntohl(v4->sin_addr.s_addr) >> 24 == kLoopbackNetwork) return true;
  if (!is_v4 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return true;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
    const sockaddr* const own = interface->ifa_addr;
    if (own == nullptr || own->sa_family != address.sa_family) continue;
    const bool is_same =
        is_v4 ? reinterpret_cast<const sockaddr_in*>(own)->sin_addr.s_addr == v4->sin_addr.s_addr
              : IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr,
                                   &v6->sin6_addr) != 0;
    if (is_same) return true;
  }
  return false;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses LookUp(const std::string& name, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

// Whether `host`, whose first label is all that this machine calls itself, is this machine: by its
// addresses, else by the domain that files or a name server give this machine.
bool IsOwnNameWithDomain(const std::string& host) {
  const Addresses addresses = LookUp(host, 0);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (IsOwnAddress(*address->ai_addr)) return true;
  }
  if (addresses != nullptr) return false;
  const Addresses own = LookUp(HostName(), AI_CANONNAME);
  return own != nullptr && own->ai_canonname != nullptr &&
         rankfile::KeyOfHost(own->ai_canonname).name == rankfile::KeyOfHost(host).name;
}

}  // namespace

std::string NameOfKernel() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::string HostName() {
  const std::string name = NameOfKernel();
  return rankfile::IsHostName(name) ? name : "localhost";
}

bool IsKnownName(const std::string& host) { return LookUp(host, 0) != nullptr; }

bool IsThisMachine(const std::string& host, const Environment& environment) {
  if (host == HostName()) return true;  // though it may look like an address
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1) {
    return IsOwnAddress(reinterpret_cast<const sockaddr&>(address));
  }
  const rankfile::HostKey key = rankfile::KeyOfHost(host);
  if (key.label == "localhost" || host == ValueOr(environment, "SLURMD_NODENAME", "")) return true;
  const rankfile::HostKey own = rankfile::KeyOfHost(HostName());
  if (!rankfile::SameHost(key.name, own.name)) return false;
  if (key.name == own.name || own.name != own.label) return true;
  static std::map<std::string, bool> known;
  const auto [found, is_new] = known.try_emplace(key.name, false);
  if (is_new) found->second = IsOwnNameWithDomain(host);
  return found->second;
}

}  // namespace launcher
