// SPDX-License-Identifier: Apache-2.0
#include "data/formats/tar_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr uint64_t kTarBlock = 512;
constexpr uint64_t kMostExtendedHeader = 1 << 20;
constexpr size_t kMostTarMembers = 50'000'000;

using TarBlock = std::array<std::byte, kTarBlock>;

class TarReader {
 public:
  TarReader(const ReadAt& read_at, uint64_t file_bytes, std::string_view source)
      : read_at_(read_at), file_bytes_(file_bytes), source_(source) {}

  std::vector<SampleEntry> read_all() {
    while (read_member()) {
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void refuse(std::string_view reason) const {
    throw DataError("data", cat("not a usable tar file: path=", source_, ", offset=", place_, ", reason=", reason),
                    "Copy or make it again");
  }

  // False at the block of zeros that ends an archive.
  bool read_member() {
    if (place_ == file_bytes_ && !entries_.empty()) refuse("it ends without a block of zeros: it is truncated");
    if (file_bytes_ - place_ < kTarBlock) refuse("it ends inside a header");
    TarBlock block;
    read_at_(place_, block);
    if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) return false;
    check_sum(block);
    const char type = static_cast<char>(block[156]);
    const uint64_t size = next_size_.value_or(number(block, 124, 12));
    const uint64_t data = place_ + kTarBlock;
    if (size > file_bytes_ - data) refuse(cat("a member of ", size, " bytes, of which ", file_bytes_ - data, " are there"));
    take_member(type, block, data, size);
    const uint64_t padded = (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    place_ = data + padded;
    if (place_ > file_bytes_) refuse("it ends inside a member: it is truncated");
    return true;
  }

  void take_member(char type, const TarBlock& block, uint64_t data, uint64_t size) {
    if (type == 'L') {  // GNU: the name of the next member
      next_name_ = text_at(data, size);
      next_name_ = next_name_->substr(0, next_name_->find('\0'));
      return;
    }
    if (type == 'x') return read_pax(text_at(data, size));
    if (type == 'g' || type == 'K') return;
    if (type == '0' || type == '\0' || type == '7') {
      if (entries_.size() == kMostTarMembers) refuse("more than 50 million members");
      entries_.push_back({clean_name(next_name_.value_or(name_of(block))), data, size});
    }
    next_name_.reset();
    next_size_.reset();
  }

  // "27 path=some/name\n", the number counting the whole line.
  void read_pax(std::string_view text) {
    while (!text.empty()) {
      size_t length = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto digits = static_cast<size_t>(end - text.data());
      if (code != std::errc{} || length <= digits + 1 || length > text.size() || text[digits] != ' ')
        refuse("a broken extended header");
      std::string_view line = text.substr(digits + 1, length - digits - 1);
      if (line.ends_with('\n')) line.remove_suffix(1);
      if (line.starts_with("path=")) next_name_ = std::string(line.substr(5));
      if (line.starts_with("size=")) next_size_ = decimal(line.substr(5));
      if (line.starts_with("GNU.sparse")) refuse("a sparse member, which is not supported");
      text.remove_prefix(length);
    }
  }

  uint64_t decimal(std::string_view text) const {
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size()) refuse("a size that is no number");
    return value;
  }

  std::string text_at(uint64_t data, uint64_t size) const {
    if (size > kMostExtendedHeader) refuse("an extended header of more than 1 MiB");
    std::string text(static_cast<size_t>(size), '\0');
    read_at_(data, std::as_writable_bytes(std::span(text)));
    return text;
  }

  static std::string field(const TarBlock& block, size_t begin, size_t length) {
    std::string text;
    for (size_t i = begin; i < begin + length && block[i] != std::byte{0}; ++i) text += static_cast<char>(block[i]);
    return text;
  }

  static std::string name_of(const TarBlock& block) {
    const std::string name = field(block, 0, 100);
    const std::string prefix = field(block, 257, 6) == "ustar" ? field(block, 345, 155) : "";
    return prefix.empty() ? name : cat(prefix, "/", name);
  }

  static std::string clean_name(std::string name) {
    while (name.starts_with("./")) name.erase(0, 2);
    return name;
  }

  // Octal digits, or GNU's base 256 where the first bit is set.
  uint64_t number(const TarBlock& block, size_t begin, size_t length) const {
    uint64_t value = 0;
    if ((block[begin] & std::byte{0x80}) != std::byte{0}) {
      for (size_t i = begin + 1; i < begin + length; ++i) {
        if (value >> 56 != 0) refuse("a size that no file has");
        value = (value << 8) | std::to_integer<uint64_t>(block[i]);
      }
      return value;
    }
    for (size_t i = begin; i < begin + length; ++i) {
      const char digit = static_cast<char>(block[i]);
      if (digit == '\0' || (digit == ' ' && value > 0)) break;
      if (digit == ' ') continue;
      if (digit < '0' || digit > '7') refuse("a number that is not octal");
      value = value * 8 + static_cast<uint64_t>(digit - '0');
    }
    return value;
  }

  void check_sum(const TarBlock& block) const {
    uint64_t sum = 8 * ' ';  // the field itself counts as blanks
    for (size_t i = 0; i < block.size(); ++i) sum += i >= 148 && i < 156 ? 0 : std::to_integer<uint64_t>(block[i]);
    if (sum != number(block, 148, 8)) refuse("the checksum of a header does not fit");
  }

  const ReadAt& read_at_;
  uint64_t file_bytes_;
  std::string_view source_;
  uint64_t place_ = 0;
  std::optional<std::string> next_name_;
  std::optional<uint64_t> next_size_;
  std::vector<SampleEntry> entries_;
};

}  // namespace

std::vector<SampleEntry> read_tar_index(const ReadAt& read_at, uint64_t file_bytes, std::string_view source) {
  return TarReader(read_at, file_bytes, source).read_all();
}

}  // namespace welkin::data
