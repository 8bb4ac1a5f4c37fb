// SPDX-License-Identifier: Apache-2.0
// JSON from foreign files, with our own error texts. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

using Json = nlohmann::json;

// Throws DataError: "<what>: path=<source>, key=<key>".
[[noreturn]] void refuse_json(std::string_view source, std::string_view key, std::string_view reason);

Json parse_json(std::string_view text, std::string_view source);  // an object
// Required values of an object.
const Json& json_member(const Json& object, const char* key, std::string_view source);
std::string json_text(const Json& value, std::string_view key, std::string_view source);
int64_t json_integer(const Json& value, std::string_view key, std::string_view source);  // 0 or more
Extents json_extents(const Json& value, std::string_view key, std::string_view source,
                     int64_t smallest);  // at most kMostArrayDims
std::vector<std::string> json_texts(const Json& value, std::string_view key, std::string_view source);
// Texts and numbers, single or in a list; other values are left out.
Attributes json_attributes(const Json& object);
Json attributes_json(const Attributes& attributes);

}  // namespace welkin::data
