// SPDX-License-Identifier: Apache-2.0
// Reads little-endian numbers and pieces of hostile bytes in order; never past their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::archive {

class ByteCursor {
 public:
  // `component` and `source` (the file's name) are for the DataError; both outlive the cursor.
  ByteCursor(std::span<const std::byte> bytes, std::string_view component, std::string_view source, uint64_t position = 0)
      : bytes_(bytes), component_(component), source_(source), position_(position) {}

  uint64_t position() const { return position_; }

  std::span<const std::byte> take(uint64_t count) {
    if (position_ > bytes_.size() || count > bytes_.size() - position_) {
      throw DataError(
          component_,
          cat("the bytes end too early: at=", position_, ", wanted=", count, ", bytes=", bytes_.size(), ", file=", source_),
          "The file is cut short or damaged: copy or save it again");
    }
    const auto piece = bytes_.subspan(position_, count);
    position_ += count;
    return piece;
  }

  template <typename T>
  T little() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view text(uint64_t count) {
    const auto piece = take(count);
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view component_, source_;
  uint64_t position_;
};

}  // namespace welkin::archive
