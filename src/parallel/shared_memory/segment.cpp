// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "core/text.h"

namespace welkin::parallel {

struct Segment::Header {
  static constexpr uint64_t kMagic = 0x31'6d'6b'6c'65'57'00'02;  // with the version of the layout

  uint64_t magic = kMagic;
  int64_t members = 0, buffer_bytes = 0;
  std::array<uint64_t, 2> nonce{};
};

// On cache lines of its own.
struct alignas(128) Segment::Line {
  SharedWord published;
  std::atomic<uint32_t> failed{0};
  std::atomic<uint64_t> greeting{0};
};

namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kLineBytes = 128;
// Two buffers and one incoming call fit into a core's second cache.
constexpr int64_t kBestBuffer = int64_t{256} << 10;

int64_t rounded_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

int64_t data_offset(const SegmentShape& shape) { return rounded_up(kPage + shape.members * kLineBytes, kPage); }

int64_t buffer_stride(const SegmentShape& shape) { return static_cast<int64_t>(sizeof(RoundNote)) + shape.buffer_bytes; }

int64_t mail_offset(const SegmentShape& shape) { return data_offset(shape) + 2 * shape.members * buffer_stride(shape); }

int64_t mail_bytes(const SegmentShape& shape) { return shape.members * shape.members * static_cast<int64_t>(sizeof(Mailbox)); }

int64_t segment_bytes(const SegmentShape& shape) { return rounded_up(mail_offset(shape) + mail_bytes(shape), kPage); }

[[noreturn]] void refuse(const char* what, int error_number) {
  throw std::runtime_error(cat("shared memory: ", what, ": ", std::strerror(error_number)));
}

void check(bool is_done, const char* what) {
  if (!is_done) refuse(what, errno);
}

struct flock lock_of(int64_t member, int16_t type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = member;
  lock.l_len = 1;
  return lock;
}

}  // namespace

SegmentShape SegmentShape::of_members(int64_t members) {
  const int64_t most = kMostBytes / (2 * members) - 2 * kPage;
  return {.members = members, .buffer_bytes = std::max(kPage, std::min(kBestBuffer, most) / kPage * kPage)};
}

Segment::Segment(const SegmentShape& shape) : shape_(shape) {
  static_assert(sizeof(Line) == kLineBytes && sizeof(Header) <= kPage);
  if (shape.members < 2 || shape.buffer_bytes < SegmentShape::kLeastPart * shape.members || shape.buffer_bytes % 64 != 0) {
    throw std::runtime_error(cat("shared memory: no shape: members=", shape.members, ", buffer_bytes=", shape.buffer_bytes));
  }
  file_ = FileDescriptor(::memfd_create("welkin collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  check(static_cast<bool>(file_), "it cannot be made");
  const int64_t bytes = segment_bytes(shape);
  check(::fchmod(file_.get(), 0600) == 0, "it cannot be kept to this user");
  check(::ftruncate(file_.get(), bytes) == 0, "it cannot have its size");
  if (const int error = ::posix_fallocate(file_.get(), 0, bytes); error != 0) refuse("its pages cannot be reserved", error);
  check(::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, "its size cannot be sealed");
  map(bytes);
  auto* header = new (memory_) Header;  // NOLINT: in the shared memory
  header->members = shape.members;
  header->buffer_bytes = shape.buffer_bytes;
  for (int64_t member = 0; member < shape.members; ++member) new (&line(member)) Line;  // NOLINT: in the shared memory
  for (int64_t from = 0; from < shape.members; ++from) {
    for (int64_t to = 0; to < shape.members; ++to) new (&mailbox(from, to)) Mailbox;  // NOLINT: in the shared memory
  }
  const auto length = static_cast<ssize_t>(sizeof header->nonce);
  if (::getrandom(header->nonce.data(), sizeof header->nonce, 0) != length) refuse("no nonce", errno);
  lock_place();
}

Segment::Segment(const SegmentPlace& place, const SegmentShape& shape, int64_t member) : shape_(shape), member_(member) {
  const std::string path = cat("/proc/", place.process, "/fd/", place.descriptor);
  file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  check(static_cast<bool>(file_), "that of the first member cannot be opened");
  struct stat facts {};
  check(::fstat(file_.get(), &facts) == 0, "it cannot be looked at");
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  if (!S_ISREG(facts.st_mode) || seals < 0 || (seals & F_SEAL_SHRINK) == 0 || facts.st_size != segment_bytes(shape)) {
    throw std::runtime_error("shared memory: what was opened is not the first member's");
  }
  map(facts.st_size);
  Header header;
  std::memcpy(&header, memory_, sizeof header);
  if (header.magic != Header::kMagic || header.nonce != place.nonce || header.members != shape.members ||
      header.buffer_bytes != shape.buffer_bytes) {
    throw std::runtime_error("shared memory: what was opened is not the first member's");
  }
  lock_place();
}

Segment::~Segment() {
  if (memory_ != nullptr) ::munmap(memory_, static_cast<size_t>(bytes_));
}

void Segment::map(int64_t bytes) {
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
  check(memory != MAP_FAILED, "it cannot be mapped");  // NOLINT: the system's constant
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
}

// The lock is of this opening of the file: it goes with the descriptor, however the process ends.
void Segment::lock_place() {
  struct flock lock = lock_of(member_, F_WRLCK);
  check(::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0, "a member's place is taken");
}

bool Segment::is_gone(int64_t member) const {
  struct flock lock = lock_of(member, F_WRLCK);
  return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

SegmentPlace Segment::place() const {
  Header header;
  std::memcpy(&header, memory_, sizeof header);
  return {.process = ::getpid(), .descriptor = file_.get(), .nonce = header.nonce};
}

Segment::Line& Segment::line(int64_t member) const {
  return *reinterpret_cast<Line*>(memory_ + kPage + member * kLineBytes);  // NOLINT: the layout of the segment
}

void Segment::greet(uint64_t number) { line(member_).greeting = number; }
uint64_t Segment::greeting_of(int64_t member) const { return line(member).greeting; }
SharedWord& Segment::published_by(int64_t member) const { return line(member).published; }

RoundNote& Segment::note(int64_t member, uint32_t round) const {
  auto* place = memory_ + data_offset(shape_) + (2 * member + round % 2) * buffer_stride(shape_);
  return *reinterpret_cast<RoundNote*>(place);  // NOLINT: the layout of the segment
}

std::byte* Segment::buffer(int64_t member, uint32_t round) const {
  return reinterpret_cast<std::byte*>(&note(member, round)) + sizeof(RoundNote);  // NOLINT: the layout of the segment
}

Mailbox& Segment::mailbox(int64_t from, int64_t to) const {
  auto* place = memory_ + mail_offset(shape_) + (from * shape_.members + to) * static_cast<int64_t>(sizeof(Mailbox));
  return *reinterpret_cast<Mailbox*>(place);  // NOLINT: the layout of the segment
}

void Segment::fail() {
  line(member_).failed.store(1, std::memory_order_seq_cst);
  published_by(member_).wake();
}

bool Segment::has_failed(int64_t member) const { return line(member).failed.load(std::memory_order_seq_cst) != 0; }

}  // namespace welkin::parallel
