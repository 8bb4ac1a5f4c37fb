// SPDX-License-Identifier: Apache-2.0
// What the store is asked and what it answers, as bytes: a kind, a number and texts. A frame on the wire is the length of a
// sealed message (4 bytes, little endian), then the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::parallel {

enum class StoreCall : uint8_t {
  // Requests. Texts, then number:
  Set,         // key, value
  Get,         // key; milliseconds to wait for it
  Wait,        // keys; milliseconds
  Check,       // keys
  Add,         // key; what is added to the decimal number there
  CompareSet,  // key, expected, new value: c10d's rule
  Delete,      // key
  Count,       // none
  // Replies:
  Done,     // texts: the value, where there is one; number: 1 yes, 0 no, the sum, the count
  Timeout,  // a key did not come in time
  Refused,  // the request makes no sense: what is wrong
};

struct StoreMessage {
  StoreCall kind = StoreCall::Done;
  int64_t number = 0;
  std::vector<std::string> texts = {};
};

constexpr size_t kFrameHeader = 4;
// Of a sealed message; values are addresses, hashes and configurations.
constexpr size_t kMostFrameBytes = size_t{16} << 20;
// Of a caller's first one.
constexpr size_t kMostFirstBytes = size_t{64} << 10;
// What a caller says first, before its nonce. The server answers with its own nonce and nothing else.
constexpr std::string_view kGreeting = "WELKINS1";

std::string encode(const StoreMessage& message);
// Nothing when the bytes are no message: an unknown kind, a length beyond the end, bytes left over.
std::optional<StoreMessage> decode(std::string_view bytes);

// With its length in front. A sealed message is at most kMostFrameBytes.
std::string framed(const std::string& sealed);
// The length that a frame's header says.
size_t frame_length(std::string_view header);

}  // namespace welkin::parallel
