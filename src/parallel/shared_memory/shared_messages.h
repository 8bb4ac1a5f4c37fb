// SPDX-License-Identifier: Apache-2.0
// Messages between two members of a group on one host: the sender leaves in a mailbox where its bytes are, and the receiver
// copies them from the sender's memory (member_memory.h) when it waits for any message. No thread carries them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "parallel/shared_memory/member_wait.h"
#include "parallel/shared_memory/segment.h"

namespace welkin::parallel {

// Messages of two members, one way, have numbers and arrive in the order of their sending. From any thread. Errors are
// std::runtime_error; after one the others are told, and no call of this member follows.
class SharedMessages {
 public:
  // `processes`: those of the members, who can read each other's memory.
  SharedMessages(std::shared_ptr<Segment> segment, WaitLimits limits, std::vector<int64_t> processes);
  // Waits for the receivers of what is on its way, but not after an error, and no longer than kPatience.
  ~SharedMessages();
  SharedMessages(const SharedMessages&) = delete;
  SharedMessages& operator=(const SharedMessages&) = delete;

  static constexpr std::chrono::seconds kPatience{30};

  // Does not wait. `owner` keeps the bytes, which nobody may change, until the receiver has them. Returns the message's number.
  uint32_t send(int64_t to, const std::byte* values, int64_t bytes, std::shared_ptr<const void> owner);
  // Of this message and those before it.
  bool is_taken(int64_t to, uint32_t number) const;
  void await_taken(int64_t to, uint32_t number);

  // The next message from a member, of `bytes`, will be copied to `values`, which `owner` keeps. Does not wait. Returns its
  // number.
  uint32_t receive(int64_t from, std::byte* values, int64_t bytes, std::shared_ptr<const void> owner);
  void await_received(int64_t from, uint32_t number);

 private:
  // As receivers read them.
  struct Letter {
    uint64_t address = 0;
    int64_t bytes = 0;
  };
  struct Leaving {
    std::shared_ptr<const void> owner;
    Letter letter;
  };
  struct Outgoing {
    uint32_t sent = 0;
    std::deque<Leaving> on_its_way;  // the last of those sent
    // Letters of these, by number; each twice as long as the one before, which a receiver may still read. rings[i][0].bytes: how
    // many follow.
    std::vector<std::vector<Letter>> rings;
  };
  struct Arriving {
    std::shared_ptr<const void> owner;
    std::byte* values = nullptr;
    int64_t bytes = 0;
  };
  struct Incoming {
    uint32_t expected = 0;
    std::deque<Arriving> to_come;  // the last of those expected
  };

  template <typename Run>
  void guarded(Run run);
  Leaving readable(const std::byte* values, int64_t bytes, std::shared_ptr<const void> owner) const;
  static void write_letter(Outgoing& out, Mailbox& mailbox);
  void let_go();
  void receive_arrived();
  void receive_arrived(int64_t from);
  void await(SharedWord& word, uint32_t number, int64_t member, MemberWait::Time end);
  void read(int64_t from, uint64_t address, std::byte* to, int64_t bytes) const;
  Letter letter_of(int64_t from, uint32_t number) const;
  Mailbox& mailbox_to(int64_t to) const { return segment_->mailbox(segment_->member(), to); }
  Mailbox& mailbox_from(int64_t from) const { return segment_->mailbox(from, segment_->member()); }

  std::shared_ptr<Segment> segment_;
  MemberWait wait_;
  std::vector<int64_t> processes_;
  std::mutex mutex_;
  std::vector<Outgoing> outgoing_;  // by place
  std::vector<Incoming> incoming_;  // by place
};

}  // namespace welkin::parallel
