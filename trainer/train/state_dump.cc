// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// A new file that is removed again unless it was renamed into place.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path)
      : path_(path), partial_(path.string() + ".partial-" + std::to_string(getpid())) {
    fd_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) throw OsError("cannot create " + partial_, errno);
  }
  ~NewFile() {
    if (fd_ >= 0) close(fd_);
    if (!committed_) unlink(partial_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void Write(const void* data, std::size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = write(fd_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw OsError("cannot write " + partial_, errno);
      next += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  void Commit() {
    if (fsync(fd_) != 0) throw OsError("cannot write " + partial_, errno);
    if (close(std::exchange(fd_, -1)) != 0) throw OsError("cannot write " + partial_, errno);
    if (rename(partial_.c_str(), path_.c_str()) != 0) {
      throw OsError("cannot rename " + partial_ + " to " + path_.string(), errno);
    }
    committed_ = true;
  }

 private:
  const std::filesystem::path path_;
  const std::string partial_;
  int fd_ = -1;
  bool committed_ = false;
};

}  // namespace

void WriteTensorFile(const std::filesystem::path& path, const std::vector<HostTensor>& tensors,
                     const SafetensorsMetadata& metadata) {
  const std::vector<TensorSource> sources = SourcesOf(tensors);
  const std::string header = MakeSafetensorsHeader(sources, metadata);
  NewFile file(path);
  file.Write(header.data(), header.size());
  for (const std::size_t i : DataOrder(sources)) {
    file.Write(tensors[i].values.data(), tensors[i].values.size() * sizeof(float));
  }
  file.Commit();
}

std::vector<HostTensor> StateForDump(const Network& network, double gradient_scale,
                                     Stream& stream) {
  std::vector<HostTensor> tensors;
  for (const Parameter& parameter : network.parameters()) {
    const auto add = [&](const std::string& prefix, Network::Part part) -> HostTensor& {
      return tensors.emplace_back(HostTensor{prefix + parameter.name, parameter.spec.shape,
                                             network.Export(part, parameter, stream)});
    };
    if (parameter.spec.statistic) {
      add("statistic.", Network::Part::kValue);
      continue;
    }
    add("weight.", Network::Part::kValue);
    for (float& value : add("gradient.", Network::Part::kGradient).values) {
      value = static_cast<float>(value * gradient_scale);
    }
    add("momentum.", Network::Part::kMomentum);
  }
  return tensors;
}

}  // namespace trainer
