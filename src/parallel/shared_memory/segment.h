// SPDX-License-Identifier: Apache-2.0
// The memory that the members of a group share, and who of them lives. It has no name in a file system: a member opens it through
// the process that has made it, so nothing is left behind by one that is killed. Its size is sealed and its pages are reserved,
// so that a full memory is an error here and never a signal later.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/file_descriptor.h"
#include "parallel/shared_memory/shared_word.h"

namespace welkin::parallel {

// How another process of the host finds a segment.
struct SegmentPlace {
  int64_t process = 0;
  int64_t descriptor = -1;
  std::array<uint64_t, 2> nonce{};  // stands in it
};

struct SegmentShape {
  int64_t members = 0;
  int64_t buffer_bytes = 0;  // of one of a member's two buffers: a multiple of 64, and kLeastPart or more for each member

  bool operator==(const SegmentShape&) const = default;
  // Calls divide a buffer between the members, in cache lines; one line may say how long a part is.
  static constexpr int64_t kLeastPart = 128;
  // With buffers as large as they pay, as long as the segment has at most kMostBytes. Of more than some 200 members they are too
  // small for a segment.
  static constexpr int64_t kMostBytes = int64_t{16} << 20;
  static SegmentShape of_members(int64_t members);
};

// What a member's buffer holds: readers compare it with the call that they make.
struct alignas(64) RoundNote {
  uint64_t call = 0;
  uint64_t rounds = 0;
};

// Of the messages from one member to another, which count up from 1.
struct alignas(64) Mailbox {
  SharedWord posted;                 // messages that are there to be taken
  SharedWord taken;                  // messages that their receiver has: these and all before
  std::atomic<uint64_t> letters{0};  // in the sender's memory: says of each message that is not taken where it is
};

class Segment {
 public:
  // A new one, and member 0's place in it. std::runtime_error where the system refuses it, or the memory is full.
  explicit Segment(const SegmentShape& shape);
  // That of another process. std::runtime_error where it is not on this host, not visible from here, or of another shape.
  Segment(const SegmentPlace& place, const SegmentShape& shape, int64_t member);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentShape& shape() const { return shape_; }
  int64_t member() const { return member_; }
  SegmentPlace place() const;

  // Members show each other that they write to the same memory: each leaves a number, and reads the others'.
  void greet(uint64_t number);
  uint64_t greeting_of(int64_t member) const;

  SharedWord& published_by(int64_t member) const;  // rounds
  RoundNote& note(int64_t member, uint32_t round) const;
  std::byte* buffer(int64_t member, uint32_t round) const;
  Mailbox& mailbox(int64_t from, int64_t to) const;

  // This member makes no more calls: who waits for it is woken.
  void fail();
  bool has_failed(int64_t member) const;
  // Whether the process of a member has closed the segment, or has ended: the system lets go of its lock. A system call.
  bool is_gone(int64_t member) const;

 private:
  struct Header;
  struct Line;

  void map(int64_t bytes);
  void lock_place();
  Line& line(int64_t member) const;

  SegmentShape shape_;
  int64_t member_ = 0;
  FileDescriptor file_;
  std::byte* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace welkin::parallel
