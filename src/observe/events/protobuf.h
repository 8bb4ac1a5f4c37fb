// SPDX-License-Identifier: Apache-2.0
// Encodes protocol buffer fields (protobuf.dev/programming-guides/encoding), as far as TensorBoard's event files need it.
// protobuf_reader.h decodes them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace welkin::observe {

// Builds one message by appending fields; a sub-message is the bytes of another one.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(uint32_t field, int64_t value) {
    append_varint(uint64_t{field} << 3);  // wire type 0
    append_varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtobufMessage& float64(uint32_t field, double value) {
    append_varint(uint64_t{field} << 3 | 1);
    append_little_endian(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  ProtobufMessage& float32(uint32_t field, float value) {
    append_varint(uint64_t{field} << 3 | 5);
    append_little_endian(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  // A string, bytes, or an encoded sub-message.
  ProtobufMessage& bytes(uint32_t field, std::string_view value) {
    append_varint(uint64_t{field} << 3 | 2);
    append_varint(value.size());
    bytes_.append(value);
    return *this;
  }

  const std::string& encoded() const { return bytes_; }

 private:
  void append_varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
    bytes_.push_back(static_cast<char>(value));
  }
  void append_little_endian(uint64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i, value >>= 8) bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace welkin::observe
