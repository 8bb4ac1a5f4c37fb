// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no index.json may crash the reader of checkpoints, hang it, or come out of it as something else than it went in.
// Bytes that are JSON get the hash of their content, as those of somebody who means harm would have it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "train/checkpoint/format/checkpoint_index.h"
#include "train/checkpoint/format/tensor_pieces.h"

namespace {

int depth_of(std::string_view text) {
  int depth = 0, most = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    most = depth > most ? depth : most;
  }
  return most;
}

// What is nested deeply stays as it is: this code would copy it level by level itself.
std::string with_hash(const std::string& text) {
  constexpr int kDeep = 100;
  if (depth_of(text) > kDeep) return text;
  auto body = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) return text;
  body.erase("xxh3");
  try {
    body["xxh3"] = welkin::hex_digits(welkin::xxh3_64(welkin::as_byte_span(body.dump())));
    return body.dump();
  } catch (const nlohmann::json::exception&) {
    return text;  // not UTF-8
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto index = welkin::train::parse_checkpoint_index(with_hash(text), "fuzz");
    for (const auto& [name, tensor] : index.tensors) {
      if (!tensor.pieces.empty()) (void)welkin::train::problem_of_pieces(tensor);
    }
    const std::string again = welkin::train::to_json(index);
    if (welkin::train::to_json(welkin::train::parse_checkpoint_index(again, "fuzz")) != again) std::abort();
  } catch (const welkin::CheckpointError&) {  // the one legal way to refuse
  }
  return 0;
}
