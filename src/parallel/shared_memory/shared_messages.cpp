// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/shared_messages.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "core/text.h"
#include "parallel/shared_memory/member_memory.h"

namespace welkin::parallel {
namespace {

constexpr size_t kFirstLetters = 64;

uint64_t address_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }  // NOLINT: for other processes

}  // namespace

SharedMessages::SharedMessages(std::shared_ptr<Segment> segment, WaitLimits limits, std::vector<int64_t> processes)
    : segment_(std::move(segment)),
      wait_(*segment_, std::move(limits)),
      processes_(std::move(processes)),
      outgoing_(processes_.size()),
      incoming_(processes_.size()) {}

// Where a receiver copies from memory that has been freed since, it finds the failure behind its copy.
SharedMessages::~SharedMessages() {
  const auto end = std::min(wait_.end_of_call(), std::chrono::steady_clock::now() + kPatience);
  try {
    for (size_t place = 0; place < outgoing_.size(); ++place) {
      const auto to = static_cast<int64_t>(place);
      let_go();
      if (outgoing_[place].on_its_way.empty()) continue;
      if (std::uncaught_exceptions() > 0 || segment_->has_failed(segment_->member())) throw std::runtime_error("given up");
      await(mailbox_to(to).taken, outgoing_[place].sent, to, end);
    }
  } catch (const std::exception&) {
    segment_->fail();
  }
}

template <typename Run>
void SharedMessages::guarded(Run run) {
  try {
    run();
  } catch (...) {
    segment_->fail();
    throw;
  }
}

// Members that wait for their messages to be taken may wait for each other: each takes what has arrived meanwhile.
void SharedMessages::await(SharedWord& word, uint32_t number, int64_t member, MemberWait::Time end) {
  if (word.has_reached(number)) return;
  receive_arrived();
  wait_.await(word, number, member, end, [this] { receive_arrived(); });
}

// A copy where the kernel cannot read the memory itself, such as a device's driver's.
SharedMessages::Leaving SharedMessages::readable(const std::byte* values, int64_t bytes,
                                                 std::shared_ptr<const void> owner) const {
  const MemberBytes own{.process = processes_[static_cast<size_t>(segment_->member())], .address = address_of(values)};
  if (bytes == 0 || can_read_memory(own, bytes)) return {.owner = std::move(owner), .letter = {own.address, bytes}};
  auto copy = std::make_shared<std::vector<std::byte>>(values, values + bytes);
  const uint64_t address = address_of(copy->data());
  return {.owner = std::move(copy), .letter = {address, bytes}};
}

uint32_t SharedMessages::send(int64_t to, const std::byte* values, int64_t bytes, std::shared_ptr<const void> owner) {
  Leaving leaving = readable(values, bytes, std::move(owner));
  let_go();
  const std::lock_guard lock(mutex_);
  Outgoing& out = outgoing_[static_cast<size_t>(to)];
  out.on_its_way.push_back(std::move(leaving));
  ++out.sent;
  write_letter(out, mailbox_to(to));
  mailbox_to(to).posted.raise(out.sent);
  return out.sent;
}

// The last one. In a longer ring those before it are written again: their receiver reads either ring.
void SharedMessages::write_letter(Outgoing& out, Mailbox& mailbox) {
  auto& rings = out.rings;
  size_t first = out.on_its_way.size() - 1;
  if (rings.empty() || out.on_its_way.size() >= rings.back().size()) {
    const size_t length = rings.empty() ? kFirstLetters : 2 * (rings.back().size() - 1);
    rings.emplace_back(1 + length).front().bytes = static_cast<int64_t>(length);
    first = 0;
  }
  std::vector<Letter>& ring = rings.back();
  for (size_t i = first; i < out.on_its_way.size(); ++i) {
    const uint32_t number = out.sent - static_cast<uint32_t>(out.on_its_way.size() - 1 - i);
    ring[1 + number % (ring.size() - 1)] = out.on_its_way[i].letter;
  }
  mailbox.letters.store(address_of(ring.data()), std::memory_order_release);
}

void SharedMessages::let_go() {
  std::vector<Leaving> taken;  // its memory is freed behind the lock
  const std::lock_guard lock(mutex_);
  for (size_t place = 0; place < outgoing_.size(); ++place) {
    Outgoing& out = outgoing_[place];
    const auto first = [&out] { return out.sent - static_cast<uint32_t>(out.on_its_way.size() - 1); };
    while (!out.on_its_way.empty() && is_taken(static_cast<int64_t>(place), first())) {
      taken.push_back(std::move(out.on_its_way.front()));
      out.on_its_way.pop_front();
    }
  }
}

bool SharedMessages::is_taken(int64_t to, uint32_t number) const { return mailbox_to(to).taken.has_reached(number); }

void SharedMessages::await_taken(int64_t to, uint32_t number) {
  guarded([&] { await(mailbox_to(to).taken, number, to, wait_.end_of_call()); });
  let_go();
}

uint32_t SharedMessages::receive(int64_t from, std::byte* values, int64_t bytes, std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  Incoming& in = incoming_[static_cast<size_t>(from)];
  in.to_come.push_back({.owner = std::move(owner), .values = values, .bytes = bytes});
  return ++in.expected;
}

void SharedMessages::await_received(int64_t from, uint32_t number) {
  guarded([&] {
    await(mailbox_from(from).posted, number, from, wait_.end_of_call());
    const std::lock_guard lock(mutex_);
    receive_arrived(from);
  });
  let_go();
}

void SharedMessages::read(int64_t from, uint64_t address, std::byte* to, int64_t bytes) const {
  const int error = read_memory({.process = processes_[static_cast<size_t>(from)], .address = address}, to, bytes);
  if (error == 0) return;
  throw std::runtime_error(
      cat("Connection closed by peer: the memory of the member at place ", from, " cannot be read: ", std::strerror(error)));
}

SharedMessages::Letter SharedMessages::letter_of(int64_t from, uint32_t number) const {
  const uint64_t ring = mailbox_from(from).letters.load(std::memory_order_acquire);
  Letter first, letter;
  read(from, ring, reinterpret_cast<std::byte*>(&first), sizeof first);
  const uint64_t place = 1 + number % static_cast<uint64_t>(std::max(first.bytes, int64_t{1}));
  read(from, ring + place * sizeof letter, reinterpret_cast<std::byte*>(&letter), sizeof letter);
  return letter;
}

void SharedMessages::receive_arrived() {
  const std::lock_guard lock(mutex_);
  for (size_t from = 0; from < incoming_.size(); ++from) receive_arrived(static_cast<int64_t>(from));
}

// What a sender that has failed left may be freed, and other values stand there: so it is asked behind the copy.
void SharedMessages::receive_arrived(int64_t from) {
  Incoming& in = incoming_[static_cast<size_t>(from)];
  while (!in.to_come.empty()) {
    const uint32_t number = in.expected - static_cast<uint32_t>(in.to_come.size() - 1);
    if (!mailbox_from(from).posted.has_reached(number)) return;
    const Arriving& arriving = in.to_come.front();
    const Letter letter = letter_of(from, number);
    if (letter.bytes == arriving.bytes && letter.bytes > 0) read(from, letter.address, arriving.values, letter.bytes);
    if (segment_->has_failed(from)) {
      throw std::runtime_error(cat("Connection closed by peer: the member at place ", from, " has failed"));
    }
    if (letter.bytes != arriving.bytes) {
      throw std::runtime_error(
          cat("the member at place ", from, " sends ", letter.bytes, " bytes, and ", arriving.bytes, " are expected"));
    }
    in.to_come.pop_front();
    mailbox_from(from).taken.raise(number);
  }
}

}  // namespace welkin::parallel
