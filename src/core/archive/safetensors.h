// SPDX-License-Identifier: Apache-2.0
// Safetensors files: an 8-byte little-endian header length, a JSON header, raw row-major data
// (github.com/huggingface/safetensors, "Format"). The reader treats every byte as hostile; the writer streams, and its file
// appears whole or not at all. Values are little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"

namespace welkin {

class FilesTogether;

struct TensorInfo {
  Dtype dtype = Dtype::F32;
  std::vector<int64_t> shape;  // empty: a scalar
  uint64_t begin = 0;          // byte range in the file's data section
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;  // the header's "__metadata__"
  uint64_t data_offset = 0;                                  // of the data section in the file
};

// Reads and checks the header of a whole file's bytes: lengths, JSON, known types, shape against byte count, no overlap, no hole,
// nothing left over. `source` names the file in the DataError.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view source);

// A mapped file. Thread-safe after construction. Spans live as long as it does; another process that truncates the file breaks
// them.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<std::string>& names() const { return names_; }  // in the order of their data
  bool contains(std::string_view name) const { return header_.tensors.contains(name); }
  const TensorInfo& info(std::string_view name) const;            // DataError with the nearest names when absent
  std::span<const std::byte> bytes(std::string_view name) const;  // not necessarily aligned in files of other writers
  const std::map<std::string, std::string, std::less<>>& metadata() const { return header_.metadata; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<MappedFile> file_;
  SafetensorsHeader header_;
  std::vector<std::string> names_;
};

// Collects the tensors to write, then writes them in one pass; memory stays at what one producer holds.
class SafetensorsWriter {
 public:
  using Emit = std::function<void(std::span<const std::byte>)>;
  using Producer = std::function<void(const Emit&)>;

  // The data section starts at a multiple of this and wide types come first, so every tensor is aligned to its element.
  static constexpr uint64_t kAlignment = 64;

  void set_metadata(std::string key, std::string value) { metadata_[std::move(key)] = std::move(value); }

  // `produce` is called once, during write(), and emits the tensor's bytes in any number of pieces.
  void add(std::string name, Dtype dtype, std::vector<int64_t> shape, Producer produce);
  // `bytes` must stay valid until write() returns.
  void add(std::string name, Dtype dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes);

  // Writes atomically (core/file.h) and returns the XXH3 of the file's bytes. Throws DataError on a full disk and the like.
  uint64_t write(const std::filesystem::path& path);
  // The same of a file that becomes visible with others.
  uint64_t write(const std::filesystem::path& path, FilesTogether& files);
  // Bytes of the file that was written.
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  struct Entry {
    std::string name;
    TensorInfo info;
    Producer produce;
  };
  std::string header() const;  // length word, JSON, padding; entries must be in file order
  void place_entries();

  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  uint64_t written_bytes_ = 0;
};

}  // namespace welkin
