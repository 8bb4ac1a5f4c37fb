// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/plane_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "core/error.h"

namespace welkin::data::simulate {
namespace {

FileDescriptor open_scratch(const std::filesystem::path& folder) {
  const int unnamed = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (unnamed >= 0) return FileDescriptor(unnamed);
  // File systems without O_TMPFILE (NFS, Lustre): a named file, unlinked at once.
  std::string name = (folder / ".welkin-scratch-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) throw file_error("create a scratch file in", folder, errno);
  ::unlink(name.c_str());
  return FileDescriptor(named);
}

}  // namespace

PlaneStore::PlaneStore(int64_t planes, int64_t values_per_plane, const std::optional<std::filesystem::path>& scratch)
    : planes_(planes), values_(values_per_plane) {
  if (!scratch) {
    memory_.resize(static_cast<size_t>(planes * values_per_plane));
    return;
  }
  folder_ = *scratch;
  file_ = open_scratch(folder_);
  // Reserved now: a disk that is too small is found before hours of work.
  const int problem = ::posix_fallocate(file_.get(), 0, planes * values_per_plane * static_cast<int64_t>(sizeof(float)));
  if (problem != 0) throw file_error("reserve the scratch file of the simulation in", folder_, problem);
}

int64_t PlaneStore::position(int64_t plane, int64_t offset, int64_t length) const {
  WELKIN_CHECK(offset >= 0 && length >= 0 && offset + length <= values_, "a range of a plane");
  return ((plane % planes_ + planes_) % planes_) * values_ + offset;
}

void PlaneStore::read(int64_t plane, int64_t offset, int64_t length, float* out) const {
  const int64_t at = position(plane, offset, length);
  if (!file_) {
    std::copy_n(memory_.data() + at, length, out);
    return;
  }
  auto* bytes = reinterpret_cast<char*>(out);
  int64_t left = length * static_cast<int64_t>(sizeof(float)), from = at * static_cast<int64_t>(sizeof(float));
  while (left > 0) {
    const ssize_t count = ::pread(file_.get(), bytes, static_cast<size_t>(left), from);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw file_error("read the scratch file of the simulation in", folder_, count < 0 ? errno : EIO);
    bytes += count, from += count, left -= count;
  }
}

void PlaneStore::write(int64_t plane, int64_t offset, int64_t length, const float* in) {
  const int64_t at = position(plane, offset, length);
  if (!file_) {
    std::copy_n(in, length, memory_.data() + at);
    return;
  }
  const auto* bytes = reinterpret_cast<const char*>(in);
  int64_t left = length * static_cast<int64_t>(sizeof(float)), to = at * static_cast<int64_t>(sizeof(float));
  while (left > 0) {
    const ssize_t count = ::pwrite(file_.get(), bytes, static_cast<size_t>(left), to);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error("write the scratch file of the simulation in", folder_, errno);
    bytes += count, to += count, left -= count;
  }
}

}  // namespace welkin::data::simulate
