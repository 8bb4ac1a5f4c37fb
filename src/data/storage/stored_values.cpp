// SPDX-License-Identifier: Apache-2.0
#include "data/storage/stored_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/error.h"
#include "data/storage/stored_array.h"

namespace welkin::data {
namespace {

struct Float16Bits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};

template <typename T>
T swapped(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  std::ranges::reverse(bytes);
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <typename To, typename T>
To converted(T value) {
  if constexpr (std::is_same_v<T, Float16Bits>) {
    return static_cast<To>(half_to_double(value.bits));
  } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
    return static_cast<To>(bfloat16_to_double(value.bits));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? To{1} : To{0};
  } else {
    return static_cast<To>(value);
  }
}

// One run of values along the innermost axis.
template <typename T, typename To, bool Swap>
void copy_run(const std::byte* from, int64_t from_stride, To* to, int64_t to_stride, int64_t count) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  if constexpr (std::is_same_v<T, To> && !Swap) {
    if (from_stride == static_cast<int64_t>(sizeof(T)) && to_stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, from + i * from_stride, sizeof(value));
    if constexpr (Swap && sizeof(Stored) > 1) value = swapped(value);
    to[i * to_stride] = converted<To, Stored>(value);
  }
}

struct Loop {
  int64_t extent = 1, from = 0, to = 0;
};

// The block's axes without those of one value, outermost first; neighbours that lie like one axis become one. The axis along
// which the source lies densest comes last.
struct Loops {
  std::array<Loop, kMostArrayDims> loop{};
  size_t count = 0;

  explicit Loops(const ValueBlock& block) {
    for (size_t d = 0; d < block.extent.size(); ++d) {
      if (block.extent[d] != 1) loop[count++] = {block.extent[d], block.from_stride[d], block.to_stride[d]};
    }
    const auto used = std::span(loop).first(count);
    std::ranges::stable_sort(used, [](const Loop& a, const Loop& b) { return std::abs(a.from) > std::abs(b.from); });
    size_t kept = 0;
    for (size_t d = 0; d < count; ++d) {
      const bool joins =
          kept > 0 && loop[kept - 1].from == loop[d].from * loop[d].extent && loop[kept - 1].to == loop[d].to * loop[d].extent;
      if (joins) {
        loop[kept - 1] = {loop[kept - 1].extent * loop[d].extent, loop[d].from, loop[d].to};
      } else {
        loop[kept++] = loop[d];
      }
    }
    count = kept;
  }
};

template <typename T, typename To, bool Swap>
void copy_loops(const Loops& loops, size_t depth, const std::byte* from, To* to) {
  if (depth == loops.count) return copy_run<T, To, Swap>(from, 0, to, 0, 1);
  const Loop& loop = loops.loop[depth];
  if (depth + 1 == loops.count) return copy_run<T, To, Swap>(from, loop.from, to, loop.to, loop.extent);
  for (int64_t i = 0; i < loop.extent; ++i) copy_loops<T, To, Swap>(loops, depth + 1, from + i * loop.from, to + i * loop.to);
}

template <typename T>
void copy_typed(const ValueBlock& block) {
  const Loops loops(block);
  const bool swap = block.type.big_endian && sizeof(T) > 1;
  if (block.to_double) {
    auto* to = static_cast<double*>(block.to);
    swap ? copy_loops<T, double, true>(loops, 0, block.from, to) : copy_loops<T, double, false>(loops, 0, block.from, to);
  } else {
    auto* to = static_cast<float*>(block.to);
    swap ? copy_loops<T, float, true>(loops, 0, block.from, to) : copy_loops<T, float, false>(loops, 0, block.from, to);
  }
}

// Round to nearest, ties to even, from the bits of a wider float: `kept` fraction bits of a double remain.
uint16_t half_of(double value) {
  if (std::isnan(value)) return 0x7E00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (size >= 65520.0) return sign | 0x7C00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int step = std::max(exponent - 11, -24);  // of the last fraction bit
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(size, -step)));
  if (step == -24) return sign | static_cast<uint16_t>(units);  // subnormal, or the smallest normal
  return sign | static_cast<uint16_t>(((step + 24) << 10) + units);
}

uint16_t bfloat16_of(double value) {
  if (std::isnan(value)) return 0x7FC0;
  // Two roundings (double to float to bfloat16) would differ from one in rare ties: the float is made odd where it is inexact.
  auto narrow = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(narrow);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
    if (std::abs(static_cast<double>(narrow)) > std::abs(value)) --bits;
    bits |= 1;
  }
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
void store_run(const double* from, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    if constexpr (std::is_same_v<T, Float16Bits>) {
      value = {half_of(from[i])};
    } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
      value = {bfloat16_of(from[i])};
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(std::nearbyint(from[i]));
    } else {
      value = static_cast<T>(from[i]);
    }
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

// Calls body with a value of the C++ type that stands for `dtype`.
template <typename Body>
void with_type(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::F64:
      return body(double{});
    case Dtype::F32:
      return body(float{});
    case Dtype::F16:
      return body(Float16Bits{});
    case Dtype::BF16:
      return body(BFloat16Bits{});
    case Dtype::I64:
      return body(int64_t{});
    case Dtype::I32:
      return body(int32_t{});
    case Dtype::I16:
      return body(int16_t{});
    case Dtype::I8:
      return body(int8_t{});
    case Dtype::U64:
      return body(uint64_t{});
    case Dtype::U32:
      return body(uint32_t{});
    case Dtype::U16:
      return body(uint16_t{});
    case Dtype::U8:
    case Dtype::Bool:
      return body(uint8_t{});
  }
}

}  // namespace

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  // 2^(exponent - 25) as a double, from its bits: ldexp would be a call for each value.
  if (exponent == 0) return sign * fraction * 0x1p-24;
  return sign * (1024 + fraction) * std::bit_cast<double>(static_cast<uint64_t>(exponent - 25 + 1023) << 52);
}

double bfloat16_to_double(uint16_t bits) { return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)); }

void copy_values(const ValueBlock& block) {
  for (const int64_t extent : block.extent) {
    if (extent == 0) return;
  }
  with_type(block.type.dtype, [&](auto type) { copy_typed<decltype(type)>(block); });
}

void store_values(const double* from, size_t count, Dtype dtype, std::byte* to) {
  with_type(dtype, [&](auto type) { store_run<decltype(type)>(from, count, to); });
}

std::vector<std::byte> stored_values(const std::vector<double>& values, Dtype dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  store_values(values.data(), values.size(), dtype, bytes.data());
  return bytes;
}

}  // namespace welkin::data
