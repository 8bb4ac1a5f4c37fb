// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a message of the rendezvous store. What is read is written as it was, and no request makes the store crash.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "parallel/store/store_message.h"
#include "parallel/store/store_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace welkin::parallel;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto message = decode(bytes);
  if (!message) return 0;
  if (encode(*message) != bytes) std::abort();
  StoreTable table;
  table.answer({.kind = StoreCall::Set, .texts = {"key", "7"}});
  table.answer(*message);
  table.answer(*message);
  return 0;
}
