// SPDX-License-Identifier: Apache-2.0
#include "parallel/shared_memory/ordered_sum.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "core/text.h"

namespace welkin::parallel {
namespace {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};

struct Greater {
  template <typename T>
  T operator()(T a, T b) const {
    return a >= b || a != a ? a : b;  // NOLINT: a NaN is not equal to itself
  }
};

struct Less {
  template <typename T>
  T operator()(T a, T b) const {
    return a <= b || a != a ? a : b;  // NOLINT: a NaN is not equal to itself
  }
};

template <typename T, typename Combine>
void combine_two(T* out, const T* first, const T* second, int64_t count, Combine combine) {
  for (int64_t i = 0; i < count; ++i) out[i] = combine(first[i], second[i]);
}

// By pieces that stay in the first cache.
template <typename T, typename Combine>
void combine_all(T* out, const std::vector<const std::byte*>& parts, int64_t count, Combine combine) {
  constexpr int64_t kPiece = 1024;
  std::array<T, kPiece> sums;
  const auto values = [&](size_t member) { return reinterpret_cast<const T*>(parts[member]); };  // NOLINT: typed by the caller
  if (parts.size() == 2) return combine_two(out, values(0), values(1), count, combine);
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    combine_two(sums.data(), values(0) + begin, values(1) + begin, length, combine);
    for (size_t member = 2; member < parts.size(); ++member) {
      const T* part = values(member) + begin;
      for (int64_t i = 0; i < length; ++i) sums[static_cast<size_t>(i)] = combine(sums[static_cast<size_t>(i)], part[i]);
    }
    std::copy_n(sums.data(), length, out + begin);
  }
}

template <typename T>
void reduce(OrderedReduction reduction, std::byte* out, const std::vector<const std::byte*>& parts, int64_t count) {
  T* values = reinterpret_cast<T*>(out);  // NOLINT: typed by the caller
  if (reduction == OrderedReduction::Sum) return combine_all(values, parts, count, Add());
  if (reduction == OrderedReduction::Max) return combine_all(values, parts, count, Greater());
  combine_all(values, parts, count, Less());
}

}  // namespace

bool has_ordered_reduction(c10::ScalarType type) {
  constexpr std::array kTypes{c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kHalf, c10::kInt, c10::kLong, c10::kByte};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

void reduce_in_order(c10::ScalarType type, OrderedReduction reduction, std::byte* out, const std::vector<const std::byte*>& parts,
                     int64_t count) {
  switch (type) {
    case c10::kFloat:
      return reduce<float>(reduction, out, parts, count);
    case c10::kDouble:
      return reduce<double>(reduction, out, parts, count);
    case c10::kBFloat16:
      return reduce<c10::BFloat16>(reduction, out, parts, count);
    case c10::kHalf:
      return reduce<c10::Half>(reduction, out, parts, count);
    case c10::kInt:
      return reduce<int32_t>(reduction, out, parts, count);
    case c10::kLong:
      return reduce<int64_t>(reduction, out, parts, count);
    case c10::kByte:
      return reduce<uint8_t>(reduction, out, parts, count);
    default:
      throw std::logic_error(cat("no ordered reduction of type ", c10::toString(type)));
  }
}

}  // namespace welkin::parallel
