// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic that cannot wrap, for sizes and offsets that come from files and flags.
// `fail` is called with no argument when the result does not fit, and must throw: the caller knows the message.
//   const int64_t bytes = checked_mul(count, width, [&] { throw DataError(...); });
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <utility>

#include "core/error.h"

namespace welkin {

template <std::integral T, std::invocable Fail>
constexpr T checked_add(T a, T b, Fail&& fail) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) {
    std::forward<Fail>(fail)();
    check_failed("checked_add", __FILE__, __LINE__, "an overflow handler returned");
  }
  return sum;
}

template <std::integral T, std::invocable Fail>
constexpr T checked_mul(T a, T b, Fail&& fail) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) {
    std::forward<Fail>(fail)();
    check_failed("checked_mul", __FILE__, __LINE__, "an overflow handler returned");
  }
  return product;
}

// The number of elements of a shape: the product of its extents, 1 for no extents. Negative extents fail; a zero anywhere gives
// zero only when no other partial product overflows (a shape that no machine can index is refused even when it is empty).
template <std::ranges::input_range Shape, std::invocable Fail>
constexpr auto checked_product(const Shape& shape, Fail&& fail) {
  using T = std::ranges::range_value_t<Shape>;
  T product = 1;
  bool empty = false;
  for (const T extent : shape) {
    if (extent < T{0}) {
      fail();
      check_failed("checked_product", __FILE__, __LINE__, "an overflow handler returned");
    }
    if (extent == T{0}) {
      empty = true;
    } else {
      product = checked_mul(product, extent, fail);
    }
  }
  return empty ? T{0} : product;
}

// A value in another integer type, unchanged.
template <std::integral To, std::integral From, std::invocable Fail>
constexpr To checked_cast(From value, Fail&& fail) {
  if (!std::in_range<To>(value)) {
    std::forward<Fail>(fail)();
    check_failed("checked_cast", __FILE__, __LINE__, "an overflow handler returned");
  }
  return static_cast<To>(value);
}

}  // namespace welkin
