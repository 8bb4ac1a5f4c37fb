// SPDX-License-Identifier: Apache-2.0
// How a call over shared memory fails.
#pragma once

#include <stdexcept>
#include <string>

namespace welkin::parallel {

// The text of the call's error.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace welkin::parallel
