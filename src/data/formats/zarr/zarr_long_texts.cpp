// SPDX-License-Identifier: Apache-2.0
// Arrays of texts of any length: dtype |O with the filter vlen-utf8 in version 2, data type string in version 3. A
// chunk holds the number of its texts, then the length and the UTF-8 bytes of each. Numbers have four bytes,
// little-endian (numcodecs: VLenUTF8).
#include <algorithm>
#include <cstring>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/zarr/zarr_array.h"
#include "data/storage/watched_file.h"

namespace welkin::data {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{1} << 22;  // of a chunk, and of all texts

bool is_named(const Json& value, const char* key, std::string_view name) {
  if (value.is_string()) return value == name;
  return value.is_object() && value.contains(key) && value[key] == name;
}

bool has_one_filter(const Json& json) {
  if (!json.contains("filters") || !json["filters"].is_array() || json["filters"].size() != 1) return false;
  return is_named(json["filters"][0], "id", "vlen-utf8");
}

bool begins_with_texts(const Json& json) {
  if (!json.contains("codecs") || !json["codecs"].is_array() || json["codecs"].empty()) return false;
  return is_named(json["codecs"][0], "name", "vlen-utf8");
}

std::string fill_text(const Json& json) {
  return json.contains("fill_value") && json["fill_value"].is_string() ? json["fill_value"].get<std::string>() : std::string();
}

[[noreturn]] void refuse_texts(const std::filesystem::path& path, std::string_view reason) {
  throw DataError("data", cat("a chunk of texts cannot be read: path=", path.string(), ", reason=", reason),
                  "The file is damaged: restore or make it again");
}

// Takes numbers and texts from the front of a chunk.
class TextChunk {
 public:
  TextChunk(std::span<const std::byte> bytes, const std::filesystem::path& path) : bytes_(bytes), path_(path) {}

  uint32_t number() {
    uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const std::span<const std::byte> bytes = take(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> take(size_t count) {
    if (count > bytes_.size()) refuse_texts(path_, "it ends within a text");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::span<const std::byte> bytes_;
  const std::filesystem::path& path_;
};

ByteBuffer decoded_chunk(const std::filesystem::path& path, const std::vector<Codec>& codecs) {
  const WatchedFile file(path);
  if (file.size() > kMostTextBytes) refuse_texts(path, "more than 4 MiB");
  ByteBuffer bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.span());
  try {
    for (auto codec = codecs.rbegin(); codec != codecs.rend(); ++codec) bytes = decode(*codec, bytes.span(), kMostTextBytes);
  } catch (const CodecFailure& failure) {
    refuse_texts(path, failure.reason);
  }
  return bytes;
}

}  // namespace

std::optional<LongTexts> long_text_metadata(const Json& json) {
  LongTexts texts{.metadata = json, .fill = fill_text(json)};
  Json& changed = texts.metadata;
  changed["fill_value"] = 0;
  if (json.contains("dtype")) {
    if (json["dtype"] != "|O" || !has_one_filter(json)) return std::nullopt;
    changed["dtype"] = "|u1";
    changed["filters"] = nullptr;
    changed["order"] = "C";
    return texts;
  }
  if (!json.contains("data_type") || !is_named(json["data_type"], "name", "string") || !begins_with_texts(json))
    return std::nullopt;
  changed["data_type"] = "uint8";
  changed["codecs"][0] = "bytes";
  return texts;
}

std::vector<std::string> long_texts_of(const std::filesystem::path& folder, const ZarrArray& array, const std::string& fill) {
  std::vector<std::string> texts;
  uint64_t bytes = 0;
  for (int64_t begin = 0; begin < array.shape[0]; begin += array.chunk[0]) {
    const auto count = static_cast<size_t>(std::min(array.chunk[0], array.shape[0] - begin));
    const std::filesystem::path path = folder / array.chunk_file({begin / array.chunk[0]});
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      bytes += count * fill.size();
      if (bytes > kMostTextBytes) refuse_texts(path, "more than 4 MiB of texts");
      texts.insert(texts.end(), count, fill);
      continue;
    }
    const ByteBuffer decoded = decoded_chunk(path, array.encoding.codecs);
    for (std::string& text : long_texts_in(decoded.span(), count, path)) {
      bytes += text.size();
      texts.push_back(std::move(text));
    }
    if (bytes > kMostTextBytes) refuse_texts(path, "more than 4 MiB of texts");
  }
  return texts;
}

std::vector<std::string> long_texts_in(std::span<const std::byte> bytes, size_t count, const std::filesystem::path& path) {
  TextChunk chunk(bytes, path);
  if (chunk.number() < count) refuse_texts(path, "it holds too few texts");
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.push_back(chunk.text());
  return texts;
}

}  // namespace welkin::data
