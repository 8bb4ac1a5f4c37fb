// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "core/error.h"
#include "core/host.h"
#include "core/printable.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// Who wrote the file last.
std::string holder(const FileDescriptor& file) {
  std::array<char, 200> text{};
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  return count <= 0 ? "unknown" : printable({text.data(), static_cast<size_t>(count)});
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  file_ = open_file(path, O_RDWR | O_CREAT);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return;
    throw ConfigError("train", cat("another run works in the run folder: path=", folder.string(), ", by=", holder(file_)),
                      "Choose another --run_num, or wait until that run has ended");
  }
  // For people alone: what is in the file is no lock.
  const std::string who = cat("process ", getpid(), " on ", host_name());
  if (ftruncate(file_.get(), 0) == 0) write_fully(file_, path, who);
}

}  // namespace welkin::train
