// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/store_message.h"

#include "core/error.h"

namespace welkin::parallel {
namespace {

void put(std::string& bytes, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
}

// Removes the next `width` bytes and returns them as a number.
std::optional<uint64_t> take(std::string_view& bytes, size_t width) {
  if (bytes.size() < width) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  bytes.remove_prefix(width);
  return value;
}

}  // namespace

std::string encode(const StoreMessage& message) {
  std::string bytes;
  put(bytes, static_cast<uint64_t>(message.kind), 1);
  put(bytes, static_cast<uint64_t>(message.number), 8);
  for (const std::string& text : message.texts) {
    put(bytes, text.size(), 4);
    bytes += text;
  }
  return bytes;
}

std::optional<StoreMessage> decode(std::string_view bytes) {
  const auto kind = take(bytes, 1);
  const auto number = take(bytes, 8);
  if (!kind || !number || *kind > static_cast<uint64_t>(StoreCall::Refused)) return std::nullopt;
  StoreMessage message{.kind = static_cast<StoreCall>(*kind), .number = static_cast<int64_t>(*number)};
  while (!bytes.empty()) {
    const auto length = take(bytes, 4);
    if (!length || *length > bytes.size()) return std::nullopt;
    message.texts.emplace_back(bytes.substr(0, *length));
    bytes.remove_prefix(*length);
  }
  return message;
}

std::string framed(const std::string& sealed) {
  WELKIN_CHECK(sealed.size() <= kMostFrameBytes, "a message of the store is longer than a frame");
  std::string frame;
  put(frame, sealed.size(), kFrameHeader);
  return frame + sealed;
}

size_t frame_length(std::string_view header) { return take(header, kFrameHeader).value_or(kMostFrameBytes + 1); }

}  // namespace welkin::parallel
