// SPDX-License-Identifier: Apache-2.0
// A WebDataset shard: the samples of all arrays by turns, 00000017.fields.npy, each an npy file.
#include <fcntl.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "core/file_descriptor.h"
#include "core/text.h"
#include "data/formats/array_writer.h"
#include "data/formats/npy_file.h"

namespace welkin::data {
namespace {

constexpr size_t kTarBlockBytes = 512;

// POSIX ustar; sizes from 8 GiB on in GNU's base 256. No owner and no time: the same values are the same bytes.
std::string tar_header(const std::string& name, uint64_t size) {
  std::string block(kTarBlockBytes, '\0');
  const auto put = [&](size_t offset, std::string_view text) { block.replace(offset, text.size(), text); };
  const auto octal = [&](size_t offset, size_t width, uint64_t value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%0*llo", static_cast<int>(width), static_cast<unsigned long long>(value));
    put(offset, text.data());
  };
  if (name.size() > 100) throw DataError("data", cat("a name that is too long for a tar file: name=", name), "Rename the array");
  put(0, name);
  octal(100, 7, 0644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  if (size < uint64_t{1} << 33) {
    octal(124, 11, size);
  } else {
    block[124] = static_cast<char>(0x80);
    for (size_t i = 0; i < 8; ++i) block[135 - i] = static_cast<char>((size >> (8 * i)) & 255);
  }
  octal(136, 11, 0);
  put(148, "        ");
  block[156] = '0';
  put(257, std::string_view("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  octal(148, 6, sum);
  block[154] = '\0';
  return block;
}

class TarWriter : public ArrayWriter {
 public:
  TarWriter(const std::filesystem::path& path, const OutputFile& output)
      : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_TRUNC)), arrays_(output.arrays) {
    const std::string text = sidecar_text(sidecar_of(output));
    append(tar_header(std::string(kSidecarName), text.size()));
    append(text);
    pad();
  }

  bool by_sample() const override { return true; }

  // A block lies inside one sample.
  void write(size_t index, const ArrayRegion& region, StoredBlock values) override {
    const OutputArray& array = arrays_[index];
    if (left_ == 0) begin_sample(array, region.begin[0]);
    append({reinterpret_cast<const char*>(values.data()), values.size()});
    left_ -= values.size();
    if (left_ == 0) pad();
  }

  void finish() override {
    append(std::string(2 * kTarBlockBytes, '\0'));
    sync_file(file_, path_);
  }

 private:
  void begin_sample(const OutputArray& array, int64_t sample) {
    const Extents shape(array.shape.begin() + 1, array.shape.end());
    const std::string head = npy_header_of(shape, array.dtype);
    left_ = stored_bytes(array) / static_cast<uint64_t>(array.shape[0]);
    std::array<char, 32> key{};
    std::snprintf(key.data(), key.size(), "%08lld", static_cast<long long>(sample));
    append(
        tar_header(array.name.empty() ? cat(key.data(), ".npy") : cat(key.data(), ".", array.name, ".npy"), head.size() + left_));
    append(head);
  }

  void append(std::string_view bytes) {
    write_fully(file_, path_, bytes);
    place_ += bytes.size();
  }

  void pad() { append(std::string((kTarBlockBytes - place_ % kTarBlockBytes) % kTarBlockBytes, '\0')); }

  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<OutputArray> arrays_;
  uint64_t place_ = 0;
  uint64_t left_ = 0;  // of the sample that is written
};

}  // namespace

std::unique_ptr<ArrayWriter> make_tar_writer(const std::filesystem::path& path, const OutputFile& output) {
  return std::make_unique<TarWriter>(path, output);
}

}  // namespace welkin::data
