// SPDX-License-Identifier: Apache-2.0
// Decodes protocol buffer fields (protobuf.dev/programming-guides/encoding), as far as TensorBoard's event files need it. Every
// byte counts as hostile: no field reaches beyond its message, and nothing recurses.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::observe {

enum class WireType : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct ProtobufField {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  uint64_t bits = 0;         // Varint, Fixed64, Fixed32
  std::string_view bytes{};  // Bytes: a string or a sub-message, inside the message

  double float64() const { return std::bit_cast<double>(bits); }
  float float32() const { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  bool is(uint32_t wanted, WireType wanted_type) const { return number == wanted && type == wanted_type; }
};

// Walks over the fields of one message.
class ProtobufReader {
 public:
  // `source` names the file in the DataError; both outlive the reader.
  ProtobufReader(std::string_view message, std::string_view source) : message_(message), source_(source) {}

  // The next field; nothing at the end. Throws DataError if the bytes are not a message.
  std::optional<ProtobufField> next() {
    if (at_ == message_.size()) return std::nullopt;
    const uint64_t key = varint();
    ProtobufField field{.number = static_cast<uint32_t>(key >> 3), .type = static_cast<WireType>(key & 7)};
    if (key >> 32 != 0 || field.number == 0) refuse("a field has no number");
    switch (field.type) {
      case WireType::Varint:
        field.bits = varint();
        return field;
      case WireType::Fixed64:
        field.bits = little_endian(8);
        return field;
      case WireType::Fixed32:
        field.bits = little_endian(4);
        return field;
      case WireType::Bytes:
        field.bytes = take(varint());
        return field;
    }
    refuse("a field of an unknown wire type");  // groups (3, 4) are in no event file
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError("events",
                    cat("not a protocol buffer message: ", what, ", at=", at_, ", bytes=", message_.size(), ", file=", source_),
                    "The file is damaged: copy it again, or leave it out");
  }

  std::string_view take(uint64_t count) {
    if (count > message_.size() - at_) refuse("a field is longer than its message");
    const std::string_view piece = message_.substr(at_, count);
    at_ += count;
    return piece;
  }

  uint64_t little_endian(size_t num_bytes) {
    uint64_t value = 0;
    const std::string_view piece = take(num_bytes);
    for (size_t i = 0; i < num_bytes; ++i) value |= uint64_t{static_cast<uint8_t>(piece[i])} << (8 * i);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      if (shift < 64) value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    refuse("a number of more than ten bytes");
  }

  std::string_view message_, source_;
  uint64_t at_ = 0;
};

}  // namespace welkin::observe
