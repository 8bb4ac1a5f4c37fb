// SPDX-License-Identifier: Apache-2.0
#include "data/formats/genericio/genericio_column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

GenericIoHeader read_header(const WatchedFile& file) {
  std::array<std::byte, kGenericIoPrefix> head{};
  if (file.size() >= head.size()) file.read(0, head);
  const uint64_t size = genericio_header_size(head, file.size());
  if (size < head.size()) {
    throw DataError("data", cat("not a sound GenericIO file: path=", file.path().string(), ", its header does not fit into it"),
                    "Check that the file is complete");
  }
  std::vector<std::byte> bytes(size);
  file.read(0, bytes);
  return parse_genericio_header(bytes, file.size(), file.path().string());
}

template <typename T>
double number_at(const std::byte* from, bool swap) {
  std::array<std::byte, sizeof(T)> bytes;
  std::copy_n(from, sizeof(T), bytes.begin());
  if (swap) std::ranges::reverse(bytes);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(value);
}

using NumberAt = double (*)(const std::byte*, bool);

NumberAt number_reader(const GenericIoVariable& variable) {
  if (variable.kind == GenericIoKind::Float) return variable.bytes == 4 ? number_at<float> : number_at<double>;
  const bool is_signed = variable.kind == GenericIoKind::Signed;
  switch (variable.bytes) {
    case 1:
      return is_signed ? number_at<int8_t> : number_at<uint8_t>;
    case 2:
      return is_signed ? number_at<int16_t> : number_at<uint16_t>;
    case 4:
      return is_signed ? number_at<int32_t> : number_at<uint32_t>;
    default:
      return is_signed ? number_at<int64_t> : number_at<uint64_t>;
  }
}

}  // namespace

GenericIoFile::GenericIoFile(const std::filesystem::path& path) : file_(path), header_(read_header(file_)) {}

size_t GenericIoFile::variable(std::string_view name) const {
  const auto found = std::ranges::find(header_.variables, name, &GenericIoVariable::name);
  if (found != header_.variables.end()) return static_cast<size_t>(found - header_.variables.begin());
  std::vector<std::string> names;
  for (const auto& candidate : header_.variables) names.push_back(candidate.name);
  throw DataError("data", cat("no such variable: path=", file_.path().string(), ", variable=", name),
                  cat("There are: ", join(names, ", ")));
}

size_t GenericIoFile::coordinate(int axis) const {
  const auto flagged = std::ranges::find(header_.variables, axis, &GenericIoVariable::axis);
  if (flagged != header_.variables.end()) return static_cast<size_t>(flagged - header_.variables.begin());
  return variable(std::string_view("xyz").substr(static_cast<size_t>(axis), 1));
}

GenericIoColumn::GenericIoColumn(const GenericIoFile& file, size_t variable, size_t rank)
    : file_(file), variable_(file.header().variables.at(variable)) {
  if (variable_.per_element != 1) {
    throw DataError("data",
                    cat("several values per particle are not read: path=", file.file().path().string(),
                        ", variable=", variable_.name, ", values=", variable_.per_element),
                    "Write it again with one value per particle");
  }
  const GenericIoRank& block = file.header().ranks.at(rank);
  offset_ = block.offsets.at(variable);
  left_ = block.elements;
  is_compressed_ = block.compressed.at(variable) > 0;
  if (is_compressed_) {
    decompress(block.compressed.at(variable));
  } else if (left_ == 0) {
    check_sum();
  }
}

// A block holds the CRC-64 of the plain values, a frame of blosc, and the bytes that close the sum of both.
void GenericIoColumn::decompress(uint64_t stored_bytes) {
  ByteBuffer stored(static_cast<size_t>(stored_bytes));
  file_.file().read(offset_, stored.span());
  offset_ += stored_bytes;
  sum_.add(stored.span());
  check_sum();
  std::array<std::byte, sizeof(uint64_t)> plain_sum{};
  std::copy_n(stored.data(), plain_sum.size(), plain_sum.begin());
  if (file_.header().big_endian) std::ranges::reverse(plain_sum);
  decoded_ = ByteBuffer(static_cast<size_t>(left_) * static_cast<size_t>(variable_.bytes));
  Crc64 sum;
  try {
    const size_t bytes = decode_into({.kind = CodecKind::Blosc}, stored.span().subspan(plain_sum.size()), decoded_.span());
    if (bytes != decoded_.size()) throw CodecFailure{cat("it holds ", bytes, " bytes and not ", decoded_.size())};
    sum.add(decoded_.span());
  } catch (const CodecFailure& failure) {
    throw DataError("data",
                    cat("values cannot be decompressed: path=", file_.file().path().string(), ", variable=", variable_.name,
                        ", codec=blosc, ", failure.reason),
                    "The file is damaged: copy it again");
  }
  if (sum.sum() != std::bit_cast<uint64_t>(plain_sum)) refuse_sum();
}

void GenericIoColumn::read(std::span<double> out) {
  WELKIN_CHECK(out.size() <= left_, "more values than there are");
  const auto bytes = static_cast<size_t>(variable_.bytes);
  const std::byte* values = decoded_.data() + taken_;
  if (is_compressed_) {
    taken_ += out.size() * bytes;
  } else {
    raw_.resize(out.size() * bytes);
    file_.file().read(offset_, raw_);
    sum_.add(raw_);
    offset_ += raw_.size();
    values = raw_.data();
  }
  const NumberAt number = number_reader(variable_);
  for (size_t i = 0; i < out.size(); ++i) out[i] = number(values + i * bytes, file_.header().big_endian);
  left_ -= out.size();
  if (!is_compressed_ && left_ == 0 && !out.empty()) check_sum();
}

void GenericIoColumn::check_sum() {
  std::array<std::byte, 8> stored{};
  file_.file().read(offset_, stored);
  sum_.add(stored);
  if (!sum_.is_closed()) refuse_sum();
}

void GenericIoColumn::refuse_sum() const {
  throw DataError("data",
                  cat("the checksum of values is wrong: path=", file_.file().path().string(), ", variable=", variable_.name,
                      ", ends_at=", offset_),
                  "The file is damaged: copy it again");
}

}  // namespace welkin::data
