// SPDX-License-Identifier: Apache-2.0
// The writing half of safetensors.h.
#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/archive/safetensors.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/files_together.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin {
namespace {

// Names and metadata come from users' models: text that is not UTF-8 cannot stand in JSON.
std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw DataError("safetensors", cat("not valid UTF-8: text=", text), "Use another name");
  }
}

// Small enough to stay in a core's cache between its hash and its copy to the page cache, large enough for the disk.
constexpr size_t kSliceBytes = size_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

void SafetensorsWriter::add(std::string name, Dtype dtype, std::vector<int64_t> shape, Producer produce) {
  const bool taken = std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.name == name; });
  WELKIN_CHECK(!taken && name != "__metadata__", cat("safetensors name taken: ", name));
  const auto overflow = [&] { throw DataError("safetensors", cat("shape too large: tensor=", name), "Split the tensor"); };
  const auto count = static_cast<uint64_t>(checked_product(shape, overflow));
  const uint64_t num_bytes = checked_mul(count, dtype_bytes(dtype), overflow);
  entries_.push_back({std::move(name), {dtype, std::move(shape), 0, num_bytes}, std::move(produce)});
}

void SafetensorsWriter::add(std::string name, Dtype dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes) {
  add(std::move(name), dtype, std::move(shape), [bytes](const Emit& emit) { emit(bytes); });
}

void SafetensorsWriter::place_entries() {
  std::ranges::stable_sort(entries_, std::greater<>{}, [](const Entry& entry) { return dtype_bytes(entry.info.dtype); });
  uint64_t offset = 0;
  for (Entry& entry : entries_) {
    const uint64_t num_bytes = entry.info.end - entry.info.begin;
    entry.info.begin = offset;
    entry.info.end =
        checked_add(offset, num_bytes, [&] { throw DataError("safetensors", "file too large", "Write several files"); });
    offset = entry.info.end;
  }
}

std::string SafetensorsWriter::header() const {
  std::vector<std::string> items;
  if (!metadata_.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata_) pairs.push_back(cat(json_string(key), ":", json_string(value)));
    items.push_back(cat("\"__metadata__\":{", join(pairs, ","), "}"));
  }
  for (const Entry& entry : entries_) {
    items.push_back(cat(json_string(entry.name), ":{\"dtype\":\"", dtype_name(entry.info.dtype), "\",\"shape\":[",
                        join(entry.info.shape, ","), "],\"data_offsets\":[", entry.info.begin, ",", entry.info.end, "]}"));
  }
  std::string json = cat("{", join(items, ","), "}");
  json.append((kAlignment - (sizeof(uint64_t) + json.size()) % kAlignment) % kAlignment, ' ');
  const uint64_t length = json.size();
  return std::string(as_text(std::as_bytes(std::span(&length, 1)))) + json;
}

uint64_t SafetensorsWriter::write(const std::filesystem::path& path) {
  FilesTogether one;
  const uint64_t hash = write(path, one);
  one.finish();
  return hash;
}

uint64_t SafetensorsWriter::write(const std::filesystem::path& path, FilesTogether& files) {
  place_entries();
  Xxh3 hash;
  files.write(path, [&](const std::filesystem::path& temporary) {
    const FileDescriptor file = open_file(temporary, O_WRONLY);
    uint64_t emitted = 0, offset = 0;
    // The disk works while later slices are hashed and copied.
    const Emit emit = [&](std::span<const std::byte> bytes) {
      emitted += bytes.size();
      while (!bytes.empty()) {
        const auto slice = bytes.first(std::min(bytes.size(), kSliceBytes));
        hash.update(slice);
        write_fully(file, path, as_text(slice));
        begin_write_back(file, offset, slice.size());
        offset += slice.size();
        bytes = bytes.subspan(slice.size());
      }
    };
    emit(as_byte_span(header()));
    for (const Entry& entry : entries_) {
      emitted = 0;
      entry.produce(emit);
      WELKIN_CHECK(emitted == entry.info.end - entry.info.begin, cat("wrong number of bytes emitted for ", entry.name));
    }
    written_bytes_ = offset;
  });
  return hash.digest();
}

}  // namespace welkin
