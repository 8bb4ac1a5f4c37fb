// SPDX-License-Identifier: Apache-2.0
#include "core/archive/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/archive/safetensors_header.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is used in place");

// The format's own limit; a header this long already describes a million tensors.
constexpr uint64_t kLongestHeader = 100'000'000;

[[noreturn]] void refuse(std::string_view source, std::string_view why) {
  throw DataError("safetensors", cat(why, ", file=", source),
                  "The file is damaged or of another format: fetch or write it again");
}

uint64_t read_header_length(std::span<const std::byte> file, std::string_view source) {
  uint64_t length = 0;
  if (file.size() < sizeof(length)) refuse(source, cat("no room for a header: bytes=", file.size()));
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > kLongestHeader) refuse(source, cat("header too long: bytes=", length, ", limit=", kLongestHeader));
  if (length > file.size() - sizeof(length)) {
    refuse(source, cat("file ends inside its header: header bytes=", length, ", file bytes=", file.size()));
  }
  return length;
}

void check_byte_count(const std::string& name, const TensorInfo& info, uint64_t data_bytes, std::string_view source) {
  if (info.begin > info.end || info.end > data_bytes) {
    refuse(source,
           cat("data out of range: tensor=", name, ", begin=", info.begin, ", end=", info.end, ", data bytes=", data_bytes));
  }
  const auto overflow = [&] { refuse(source, cat("shape too large: tensor=", name, ", shape=", join(info.shape, "x"))); };
  const int64_t count = checked_product(info.shape, overflow);
  const uint64_t wanted = checked_mul(static_cast<uint64_t>(count), dtype_bytes(info.dtype), overflow);
  if (wanted != info.end - info.begin) {
    refuse(source, cat("shape and bytes disagree: tensor=", name, ", dtype=", dtype_name(info.dtype),
                       ", shape=", join(info.shape, "x"), ", bytes wanted=", wanted, ", bytes stored=", info.end - info.begin));
  }
}

std::vector<std::string> names_by_offset(const SafetensorsHeader& header) {
  std::vector<std::pair<const TensorInfo*, const std::string*>> rows;
  for (const auto& [name, info] : header.tensors) rows.emplace_back(&info, &name);
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return std::pair(row.first->begin, row.first->end); });
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(*row.second);
  return names;
}

// The format requires that the tensors fill the data section, and that each byte belongs to one of them.
void check_coverage(const SafetensorsHeader& header, uint64_t data_bytes, std::string_view source) {
  uint64_t filled = 0;
  for (const std::string& name : names_by_offset(header)) {
    const TensorInfo& info = header.tensors.find(name)->second;
    if (info.begin < filled)
      refuse(source, cat("data overlaps: tensor=", name, ", begin=", info.begin, ", previous end=", filled));
    if (info.begin > filled) refuse(source, cat("bytes of no tensor: from=", filled, ", to=", info.begin));
    filled = info.end;
  }
  if (filled != data_bytes) refuse(source, cat("bytes of no tensor: from=", filled, ", to=", data_bytes));
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view source) {
  const uint64_t length = read_header_length(file, source);
  const char* json = reinterpret_cast<const char*>(file.data()) + sizeof(length);
  SafetensorsHeader header;
  SafetensorsHeaderEvents events(header);
  if (!nlohmann::json::sax_parse(json, json + length, &events) || !events.finished()) refuse(source, events.problem());
  header.data_offset = sizeof(length) + length;
  const uint64_t data_bytes = file.size() - header.data_offset;
  for (const auto& [name, info] : header.tensors) check_byte_count(name, info, data_bytes, source);
  check_coverage(header, data_bytes, source);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path),
      file_(std::make_unique<MappedFile>(path)),
      header_(parse_safetensors(file_->bytes(), path.string())),
      names_(names_by_offset(header_)) {}

const TensorInfo& SafetensorsFile::info(std::string_view name) const {
  const auto found = header_.tensors.find(name);
  if (found != header_.tensors.end()) return found->second;
  const auto near = nearest(name, names_);
  throw DataError("safetensors", cat("no such tensor: name=", name, ", file=", path_.string(), ", tensors=", names_.size()),
                  near.empty() ? "Check that this file belongs to this model" : cat("Nearest names: ", join(near, ", ")));
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  return file_->bytes().subspan(header_.data_offset + tensor.begin, tensor.end - tensor.begin);
}

}  // namespace welkin
