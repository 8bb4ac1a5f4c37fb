// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/shared_calls.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "core/text.h"
#include "parallel/shared_memory/member_memory.h"

namespace welkin::parallel {
namespace {

enum class CallKind : uint64_t { AllReduce = 1, ReduceScatter, AllGather, Broadcast, AllToAll };

// Shorter sums are made by every member of all values: one round in place of two.
constexpr int64_t kAtOnceBytes = 8192;
// Pieces of members begin at cache lines.
constexpr int64_t kLine = 64;
// Of a member at a time: what is read stays in the second cache until it has been added.
constexpr int64_t kReadPiece = int64_t{128} << 10;

constexpr uint64_t call_of(CallKind kind, int64_t bytes, uint64_t detail = 0) {
  return static_cast<uint64_t>(bytes) * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(kind) + (detail << 8);
}

uint64_t detail_of(c10::ScalarType type, OrderedReduction reduction) {
  return static_cast<uint64_t>(type) | static_cast<uint64_t>(reduction) << 8;
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

int64_t rounded_down(int64_t bytes) { return bytes / kLine * kLine; }

}  // namespace

struct SharedCalls::Sums {
  std::byte* values = nullptr;
  int64_t bytes = 0;
  int64_t element = 0;
  c10::ScalarType type{};
  OrderedReduction reduction{};

  void reduce(std::byte* out, const std::vector<const std::byte*>& parts, int64_t length) const {
    reduce_in_order(type, reduction, out, parts, length / element);
  }
};

// All members see all addresses, so they decide alike. Nobody reads at 0.
bool SharedCalls::with_addresses(const std::byte* own, int64_t bytes, const std::function<void()>& work) {
  const auto place = static_cast<size_t>(rounds_.member());
  addresses_.resize(processes_.size());
  addresses_[place] = reinterpret_cast<uint64_t>(own);  // NOLINT: for other processes
  if (!can_read_memory({.process = processes_[place], .address = addresses_[place]}, bytes)) addresses_[place] = 0;
  std::memcpy(rounds_.begin(), &addresses_[place], sizeof(uint64_t));
  rounds_.publish();
  for (int64_t member = 0; member < rounds_.members(); ++member) {
    if (member != rounds_.member()) std::memcpy(&addresses_[static_cast<size_t>(member)], rounds_.of(member), sizeof(uint64_t));
  }
  if (std::ranges::count(addresses_, uint64_t{0}) > 0) return false;
  work();
  await_all();
  return true;
}

// A round without data: what was read before it is no longer needed.
void SharedCalls::await_all() {
  rounds_.begin();
  rounds_.publish();
  for (int64_t member = 0; member < rounds_.members(); ++member) {
    if (member != rounds_.member()) rounds_.of(member);
  }
}

void SharedCalls::read(int64_t member, int64_t offset, std::byte* to, int64_t bytes) {
  const auto place = static_cast<size_t>(member);
  const int error =
      read_memory({.process = processes_[place], .address = addresses_[place] + static_cast<uint64_t>(offset)}, to, bytes);
  if (error == 0) return;
  throw std::runtime_error(
      cat("Connection closed by peer: the memory of the member at place ", member, " cannot be read: ", std::strerror(error)));
}

void SharedCalls::sum_read(const Sums& sums, std::byte* out, const std::byte* own, int64_t offset, int64_t length) {
  const int64_t members = rounds_.members();
  read_.resize(static_cast<size_t>(members * kReadPiece));
  for (int64_t begin = 0; begin < length; begin += kReadPiece) {
    const int64_t bytes = std::min(kReadPiece, length - begin);
    for (int64_t member = 0; member < members; ++member) {
      std::byte* room = read_.data() + member * kReadPiece;
      if (member != rounds_.member()) read(member, offset + begin, room, bytes);
      parts_[static_cast<size_t>(member)] = member == rounds_.member() ? own + begin : room;
    }
    sums.reduce(out + begin, parts_, bytes);
  }
}

void SharedCalls::all_reduce(std::byte* values, int64_t count, c10::ScalarType type, OrderedReduction reduction) {
  const auto element = static_cast<int64_t>(c10::elementSize(type));
  const Sums sums{.values = values, .bytes = count * element, .element = element, .type = type, .reduction = reduction};
  if (sums.bytes == 0) return;
  rounds_.call(call_of(CallKind::AllReduce, sums.bytes, detail_of(type, reduction)), [&] {
    if (sums.bytes <= std::min(kAtOnceBytes, rounds_.buffer_bytes())) return reduce_at_once(sums);
    if (reads(sums.bytes) && reduce_by_reading(sums)) return;
    reduce_by_ranges(sums);
  });
}

void SharedCalls::reduce_at_once(const Sums& sums) {
  copy_bytes(rounds_.begin(), sums.values, sums.bytes);
  rounds_.publish();
  for (int64_t member = 0; member < rounds_.members(); ++member) {
    parts_[static_cast<size_t>(member)] = member == rounds_.member() ? sums.values : rounds_.of(member);
  }
  sums.reduce(sums.values, parts_, sums.bytes);
}

// Each member sums one range of a piece. A round carries the sums of the piece before and the values of the next one, so a piece
// costs one round. In a buffer the sums stand behind the values.
void SharedCalls::reduce_by_ranges(const Sums& sums) {
  const int64_t members = rounds_.members(), own = rounds_.member();
  const int64_t range = rounded_down(rounds_.buffer_bytes() / (members + 1)), piece = range * members;
  const int64_t pieces = (sums.bytes + piece - 1) / piece;
  const auto begin_of = [&](int64_t number, int64_t member) { return std::min(sums.bytes, number * piece + member * range); };
  const auto length_of = [&](int64_t number, int64_t member) {
    return std::min(begin_of(number, member) + range, sums.bytes) - begin_of(number, member);
  };
  for (int64_t number = 0; number <= pieces; ++number) {
    std::byte* room = rounds_.begin();
    if (number > 0) {
      for (int64_t member = 0; member < members; ++member) {
        parts_[static_cast<size_t>(member)] = rounds_.before(member) + own * range;
      }
      std::byte* values = sums.values + begin_of(number - 1, own);
      parts_[static_cast<size_t>(own)] = values;
      sums.reduce(room + piece, parts_, length_of(number - 1, own));
      copy_bytes(values, room + piece, length_of(number - 1, own));
    }
    for (int64_t member = 0; number < pieces && member < members; ++member) {
      if (member != own) copy_bytes(room + member * range, sums.values + begin_of(number, member), length_of(number, member));
    }
    rounds_.publish();
    for (int64_t step = 1; step < members; ++step) {
      const int64_t member = (own + step) % members;
      const std::byte* there = rounds_.of(member);
      if (number > 0) copy_bytes(sums.values + begin_of(number - 1, member), there + piece, length_of(number - 1, member));
    }
  }
}

// Each member sums one range in its place, where nobody else reads meanwhile, and then fetches the others' sums.
bool SharedCalls::reduce_by_reading(const Sums& sums) {
  const int64_t members = rounds_.members(), own = rounds_.member();
  const int64_t range = rounded_down(sums.bytes / members);
  const auto begin_of = [&](int64_t member) { return member * range; };
  const auto length_of = [&](int64_t member) { return member + 1 == members ? sums.bytes - begin_of(member) : range; };
  return with_addresses(sums.values, sums.bytes, [&] {
    sum_read(sums, sums.values + begin_of(own), sums.values + begin_of(own), begin_of(own), length_of(own));
    await_all();
    for (int64_t step = 1; step < members; ++step) {
      const int64_t member = (own + step) % members;
      read(member, begin_of(member), sums.values + begin_of(member), length_of(member));
    }
  });
}

void SharedCalls::reduce_scatter(std::byte* part, const std::byte* whole, int64_t count, c10::ScalarType type,
                                 OrderedReduction reduction) {
  const auto element = static_cast<int64_t>(c10::elementSize(type));
  const Sums sums{.values = part, .bytes = count * element, .element = element, .type = type, .reduction = reduction};
  const int64_t members = rounds_.members(), own = rounds_.member();
  const int64_t piece = rounded_down(rounds_.buffer_bytes() / members);
  rounds_.call(call_of(CallKind::ReduceScatter, sums.bytes, detail_of(type, reduction)), [&] {
    const auto sum = [&] { sum_read(sums, part, whole + own * sums.bytes, own * sums.bytes, sums.bytes); };
    if (reads(members * sums.bytes) && with_addresses(whole, members * sums.bytes, sum)) return;
    for (int64_t begin = 0; begin < sums.bytes; begin += piece) {
      const int64_t length = std::min(piece, sums.bytes - begin);
      std::byte* room = rounds_.begin();
      for (int64_t member = 0; member < members; ++member) {
        if (member != own) copy_bytes(room + member * piece, whole + member * sums.bytes + begin, length);
      }
      rounds_.publish();
      for (int64_t member = 0; member < members; ++member) {
        parts_[static_cast<size_t>(member)] = member == own ? whole + own * sums.bytes + begin : rounds_.of(member) + own * piece;
      }
      sums.reduce(part + begin, parts_, length);
    }
  });
}

void SharedCalls::all_gather(std::byte* whole, const std::byte* part, int64_t bytes) {
  const int64_t members = rounds_.members(), own = rounds_.member(), piece = rounds_.buffer_bytes();
  rounds_.call(call_of(CallKind::AllGather, bytes), [&] {
    const auto fetch = [&] {
      copy_bytes(whole + own * bytes, part, bytes);
      for (int64_t step = 1; step < members; ++step) {
        const int64_t member = (own + step) % members;
        read(member, 0, whole + member * bytes, bytes);
      }
    };
    if (reads(members * bytes) && with_addresses(part, bytes, fetch)) return;
    for (int64_t begin = 0; begin < bytes; begin += piece) {
      const int64_t length = std::min(piece, bytes - begin);
      copy_bytes(rounds_.begin(), part + begin, length);
      rounds_.publish();
      copy_bytes(whole + own * bytes + begin, part + begin, length);
      for (int64_t step = 1; step < members; ++step) {
        const int64_t member = (own + step) % members;
        copy_bytes(whole + member * bytes + begin, rounds_.of(member), length);
      }
    }
  });
}

// Only the root is awaited: it is up to one round ahead.
void SharedCalls::broadcast(std::byte* values, int64_t bytes, int64_t root) {
  const int64_t piece = rounds_.buffer_bytes();
  rounds_.call(call_of(CallKind::Broadcast, bytes, static_cast<uint64_t>(root)), [&] {
    for (int64_t begin = 0; begin < bytes; begin += piece) {
      const int64_t length = std::min(piece, bytes - begin);
      std::byte* room = rounds_.begin();
      if (rounds_.member() == root) copy_bytes(room, values + begin, length);
      rounds_.publish();
      if (rounds_.member() != root) copy_bytes(values + begin, rounds_.of(root), length);
    }
  });
}

// A member does not know how much others send each other, so the first round tells how many they need.
void SharedCalls::all_to_all(std::byte* out, const std::byte* in, const std::vector<int64_t>& out_bytes,
                             const std::vector<int64_t>& in_bytes) {
  const int64_t members = rounds_.members(), own = rounds_.member();
  const int64_t stride = rounded_down(rounds_.buffer_bytes() / members), piece = stride - kLine;
  std::vector<int64_t> leaving(in_bytes.size()), arriving(out_bytes.size());
  std::exclusive_scan(in_bytes.begin(), in_bytes.end(), leaving.begin(), int64_t{0});
  std::exclusive_scan(out_bytes.begin(), out_bytes.end(), arriving.begin(), int64_t{0});
  const auto at = [](const std::vector<int64_t>& values, int64_t member) { return values[static_cast<size_t>(member)]; };
  const auto length_of = [&](int64_t bytes, int64_t round) { return std::clamp(bytes - round * piece, int64_t{0}, piece); };
  int64_t most = 0;
  for (int64_t member = 0; member < members; ++member) {
    if (member != own) most = std::max(most, at(in_bytes, member));
  }
  copy_bytes(out + at(arriving, own), in + at(leaving, own), std::min(at(in_bytes, own), at(out_bytes, own)));
  int64_t rounds = std::max(int64_t{1}, (most + piece - 1) / piece);
  rounds_.call(call_of(CallKind::AllToAll, 0), [&] {
    for (int64_t round = 0; round < rounds; ++round) {
      std::byte* room = rounds_.begin();
      for (int64_t member = 0; member < members; ++member) {
        if (member == own) continue;
        const int64_t bytes = at(in_bytes, member);
        std::memcpy(room + member * stride, &bytes, sizeof bytes);
        copy_bytes(room + member * stride + kLine, in + at(leaving, member) + std::min(bytes, round * piece),
                   length_of(bytes, round));
      }
      rounds_.publish(static_cast<uint64_t>(rounds));
      for (int64_t step = 1; step < members; ++step) {
        const int64_t member = (own + step) % members;
        const std::byte* there = rounds_.of(member) + own * stride;
        int64_t bytes = 0;
        std::memcpy(&bytes, there, sizeof bytes);
        if (bytes != at(out_bytes, member)) {
          throw std::runtime_error(
              cat("the member at place ", member, " sends ", bytes, " bytes, and ", at(out_bytes, member), " are expected"));
        }
        copy_bytes(out + at(arriving, member) + std::min(bytes, round * piece), there + kLine, length_of(bytes, round));
        if (round == 0) rounds = std::max(rounds, static_cast<int64_t>(rounds_.rounds_of(member)));
      }
    }
  });
}

}  // namespace welkin::parallel
