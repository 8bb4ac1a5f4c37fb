// SPDX-License-Identifier: Apache-2.0
// Checks for readers of foreign JSON: a number with a fraction or an exponent is no integer, and nlohmann's conversion of 1e123
// to one is undefined.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

namespace welkin {

// True if integers stand where a T has them, in lists and maps too. Values of another kind are left to
// get<T>(), which rejects them.
template <typename T, typename Json>
bool has_integers_of(const Json& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Json> || std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_unsigned_v<T> ? value.is_number_unsigned() : value.is_number_integer();
  } else if constexpr (requires { typename T::mapped_type; }) {
    return !value.is_object() || std::ranges::all_of(value, has_integers_of<typename T::mapped_type, Json>);
  } else if constexpr (requires { typename T::value_type; }) {
    return !value.is_array() || std::ranges::all_of(value, has_integers_of<typename T::value_type, Json>);
  } else {
    return true;
  }
}

}  // namespace welkin
