// SPDX-License-Identifier: Apache-2.0
// Requests and replies of the store as bytes: a kind, a number and texts. A frame on the wire is the length of a
// sealed message (4 bytes, little endian), then the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::parallel {

enum class StoreCall : uint8_t {
  // Requests, with their texts; then their number:
  Set,         // key, value
  Get,         // key; milliseconds to wait for it
  Wait,        // keys; milliseconds
  Check,       // keys
  Add,         // key; summand for the decimal number there
  CompareSet,  // key, expected, new value: c10d's rule
  Delete,      // key
  Count,       // none
  // Replies:
  Done,     // texts: the value, if there is one; number: 1 yes, 0 no, the sum, the count
  Timeout,  // a key did not arrive in time
  Refused,  // the request is invalid: text with the reason
};

struct StoreMessage {
  StoreCall kind = StoreCall::Done;
  int64_t number = 0;
  std::vector<std::string> texts = {};
};

constexpr size_t kFrameHeader = 4;
// Largest sealed message; values are addresses, hashes and configurations.
constexpr size_t kMostFrameBytes = size_t{16} << 20;
// Largest first message of a caller.
constexpr size_t kMostFirstBytes = size_t{64} << 10;
// A caller's first bytes, before its nonce. The server answers only with its own nonce.
constexpr std::string_view kGreeting = "WELKINS1";

std::string encode(const StoreMessage& message);
// Nothing if the bytes are not a message: an unknown kind, a length beyond the end, bytes left over.
std::optional<StoreMessage> decode(std::string_view bytes);

// Prepends the length. A sealed message has at most kMostFrameBytes.
std::string framed(const std::string& sealed);
// The length in a frame's header.
size_t frame_length(std::string_view header);

}  // namespace welkin::parallel
