// SPDX-License-Identifier: Apache-2.0
#include "train/offload/spill_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/process/host.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr const char* kGoOn = "the run's last checkpoint is whole, continue from it with --resume";
constexpr unsigned kOwnerOnly = 0600;

std::string reason_of(int error_number) { return std::system_category().message(error_number); }

// Opens a file without a name if the file system can; else the name is removed as soon as the file is open.
int open_unnamed(const std::filesystem::path& folder, int extra) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | extra, kOwnerOnly);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
  std::string name = (folder / ".welkin-offload-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC | extra);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Transfers all bytes, in as many system calls as needed. Returns 0 or the error number. A call that transfers 0 bytes has met
// the end of a file or disk.
template <typename Transfer>
int in_full(size_t bytes, const Transfer& transfer) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t now = transfer(done);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return errno;
    if (now == 0) return EIO;
    done += static_cast<size_t>(now);
  }
  return 0;
}

std::string size_text(uint64_t bytes) { return format_bytes(bytes); }

}  // namespace

SpillFile::SpillFile(std::filesystem::path folder, std::string holds) : folder_(std::move(folder)), holds_(std::move(holds)) {
  make_folders(folder_);
  int fd = open_unnamed(folder_, O_DIRECT);
  is_direct_ = fd >= 0;
  if (fd < 0 && errno == EINVAL) fd = open_unnamed(folder_, 0);
  if (fd < 0) {
    const int error_number = errno;
    throw DataError(
        "offload",
        cat("cannot make a file for the ", holds_, ": offload_path=", folder_.string(), ", reason=", reason_of(error_number)),
        "Choose a folder on a local disk that you have the right to write to");
  }
  file_ = FileDescriptor(fd);
}

size_t SpillFile::num_blocks() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

SpillFile::Block SpillFile::block_at(size_t block) const {
  const std::lock_guard lock(mutex_);
  return blocks_.at(block);
}

std::string SpillFile::described(size_t block) const {
  const Block known = block_at(block);
  return cat("file=", holds_, " in ", folder_.string(), ", block=", block, " of ", num_blocks(), ", offset=", known.offset,
             ", bytes=", known.bytes);
}

void SpillFile::no_room(size_t bytes, int error_number) const {
  struct statvfs disk {};
  const bool is_known = ::fstatvfs(file_.get(), &disk) == 0;
  throw DataError(
      "offload",
      cat("there is no room for the ", holds_, ": offload_path=", folder_.string(), ", needed=", size_text(end_ + bytes),
          ", free=", is_known ? size_text(uint64_t{disk.f_bavail} * disk.f_frsize + end_) : "unknown",
          ", reason=", reason_of(error_number)),
      error_number == EFBIG ? "Raise the limit on file sizes (ulimit -f), or choose another file system"
                            : "Free space on that disk (or quota), or choose another offload_path");
}

// Checks the limit on file sizes first: beyond it the system would send a signal.
void SpillFile::make_room(size_t offset, size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    no_room(bytes, EFBIG);
  }
  struct statvfs disk {};
  if (::fstatvfs(file_.get(), &disk) == 0 && bytes / disk.f_frsize > disk.f_bavail) no_room(bytes, ENOSPC);
  int error_number = 0;
  do {
    error_number = ::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error_number == EINTR);
  if (error_number == EOPNOTSUPP || error_number == ENOSYS) {  // glibc emulates it by a write per page, not direct I/O
    const int flags = ::fcntl(file_.get(), F_GETFL);
    ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT);
    error_number = ::posix_fallocate(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
    ::fcntl(file_.get(), F_SETFL, flags);
  }
  if (error_number != 0) no_room(bytes, error_number);
}

size_t SpillFile::add(size_t bytes) {
  WELKIN_CHECK(bytes % kBlockAlignment == 0, "blocks have whole pages");
  if (bytes > 0) make_room(end_, bytes);
  const std::lock_guard lock(mutex_);
  blocks_.push_back({.offset = end_, .bytes = bytes});
  end_ += bytes;
  return blocks_.size() - 1;
}

// Some file systems open a file for direct I/O and refuse the first transfer.
template <typename Transfer>
int SpillFile::moved(size_t bytes, const Transfer& transfer) const {
  const int error_number = in_full(bytes, transfer);
  const int flags = ::fcntl(file_.get(), F_GETFL);
  if (error_number != EINVAL || (flags & O_DIRECT) == 0) return error_number;
  ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT);
  return in_full(bytes, transfer);
}

void SpillFile::write(size_t block, std::span<const std::byte> bytes) {
  const Block target = block_at(block);
  WELKIN_CHECK(bytes.size() <= target.bytes, "bytes fit into their block");
  const int error_number = moved(bytes.size(), [&](size_t done) {
    return ::pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(target.offset + done));
  });
  if (error_number != 0) {
    throw DataError("offload", cat("a block cannot be written: ", described(block), ", reason=", reason_of(error_number)),
                    cat("Check that disk, or choose another offload_path; ", kGoOn));
  }
  const uint64_t hash = xxh3_64(bytes);
  const std::lock_guard lock(mutex_);
  blocks_[block].written = bytes.size();
  blocks_[block].hash = hash;
}

void SpillFile::read(size_t block, std::span<std::byte> bytes) const {
  const Block source = block_at(block);
  WELKIN_CHECK(source.written == 0 || bytes.size() == source.written, "a block is read as it was written");
  if (source.written == 0) {
    std::ranges::fill(bytes, std::byte{0});
    return;
  }
  const int error_number = moved(bytes.size(), [&](size_t done) {
    return ::pread(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(source.offset + done));
  });
  if (error_number != 0) {
    throw DataError("offload", cat("a block cannot be read: ", described(block), ", reason=", reason_of(error_number)),
                    cat("Check that disk, or choose another offload_path; ", kGoOn));
  }
  if (const uint64_t hash = xxh3_64(bytes); hash != source.hash) {
    throw DataError(
        "offload",
        cat("a block is damaged: ", described(block), ", xxh3=", hex_digits(hash), ", expected=", hex_digits(source.hash)),
        cat("The disk gives back other bytes than were written: choose another offload_path; ", kGoOn));
  }
}

}  // namespace welkin::train
