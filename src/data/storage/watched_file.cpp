// SPDX-License-Identifier: Apache-2.0
#include "data/storage/watched_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/text.h"

namespace welkin::data {

WatchedFile::WatchedFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  if (::fstat(descriptor_.get(), &opened_) != 0) throw file_error("look at", path_, errno);
  if (!S_ISREG(opened_.st_mode)) {
    throw DataError("file", cat("not a regular file: path=", path_.string()), "Name a file of training data");
  }
  const auto size = static_cast<size_t>(opened_.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED) throw file_error("map", path_, errno);
  mapping_ = {static_cast<const std::byte*>(address), size};
}

WatchedFile::~WatchedFile() {
  // const_cast: munmap takes a plain pointer; nothing is written.
  if (!mapping_.empty()) ::munmap(const_cast<std::byte*>(mapping_.data()), mapping_.size());
}

void WatchedFile::read(uint64_t offset, std::span<std::byte> out) const {
  const ReadMark mark(path_, offset);
  const uint64_t first = offset;
  count(out.size());
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw file_error(cat("read ", out.size(), " bytes at offset ", offset), path_, errno);
    if (count == 0) report_change(offset);
    out = out.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  check_unchanged(first);
}

void WatchedFile::check_unchanged(uint64_t offset) const {
  struct stat now {};
  if (::fstat(descriptor_.get(), &now) != 0) throw file_error("look at", path_, errno);
  const bool same_time = now.st_mtim.tv_sec == opened_.st_mtim.tv_sec && now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec;
  if (now.st_nlink == 0 || now.st_size != opened_.st_size || !same_time) report_change(offset);
}

// The kernel could not give a page: the file was cut short, or the disk has failed. A system call then gives the reason.
void WatchedFile::report_lost_page(uint64_t offset, uint64_t bytes) const {
  check_unchanged(offset);
  std::vector<std::byte> piece(size_t{64} << 10);
  const uint64_t end = std::min<uint64_t>(size(), offset + bytes);
  for (uint64_t at = offset; at < end; at += piece.size()) {
    read(at, std::span(piece).first(static_cast<size_t>(std::min<uint64_t>(piece.size(), end - at))));
  }
  report_change(offset);
}

void WatchedFile::report_change(uint64_t offset) const {
  struct stat now {};
  const bool open = ::fstat(descriptor_.get(), &now) == 0;
  const bool removed = open && now.st_nlink == 0;
  const char* what = removed ? "the file was removed or replaced while it was being read"
                             : "the file was truncated or written to while it was being read";
  throw DataError("file",
                  cat(what, ": path=", path_.string(), ", bytes_before=", size(), ", bytes_now=", open ? now.st_size : -1,
                      ", offset=", offset),
                  "Restore it, keep training files unchanged during a run, and resume from the last checkpoint");
}

}  // namespace welkin::data
