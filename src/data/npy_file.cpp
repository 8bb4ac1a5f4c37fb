// SPDX-License-Identifier: Apache-2.0
#include "data/npy_file.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/checked.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::data {
namespace {

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

template <typename T>
double value_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return static_cast<double>(value);
}

double npy_value(Dtype dtype, const std::byte* bytes) {
  switch (dtype) {
    case Dtype::F64:
      return value_as<double>(bytes);
    case Dtype::F32:
      return value_as<float>(bytes);
    case Dtype::F16:
      return half_to_double(std::bit_cast<uint16_t>(std::array{bytes[0], bytes[1]}));
    case Dtype::I64:
      return value_as<int64_t>(bytes);
    case Dtype::I32:
      return value_as<int32_t>(bytes);
    case Dtype::I16:
      return value_as<int16_t>(bytes);
    case Dtype::I8:
      return value_as<int8_t>(bytes);
    case Dtype::U64:
      return value_as<uint64_t>(bytes);
    case Dtype::U32:
      return value_as<uint32_t>(bytes);
    case Dtype::U16:
      return value_as<uint16_t>(bytes);
    default:
      return value_as<uint8_t>(bytes);
  }
}

// Where the value at a place counted in C order stands in a Fortran-order file.
int64_t fortran_place(int64_t place, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; place /= shape[d]) index[d] = place % shape[d];
  int64_t result = 0;
  for (size_t d = shape.size(); d-- > 0;) result = result * shape[d] + index[d];
  return result;
}

std::string npy_header_text(Dtype dtype, const std::vector<int64_t>& shape) {
  const std::string_view code = dtype == Dtype::F64 ? "<f8" : "<f4";
  std::string text = cat("{'descr': '", code, "', 'fortran_order': False, 'shape': (");
  for (const int64_t size : shape) text += cat(size, ", ");
  text += "), }";
  constexpr size_t kPrefix = 10;
  text.append(63 - (kPrefix + text.size()) % 64, ' ');  // numpy aligns the data to 64 bytes
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

NpyFile::NpyFile(const std::filesystem::path& path) : file_(std::make_shared<WatchedFile>(path)) {
  std::vector<std::byte> head(static_cast<size_t>(std::min<uint64_t>(file_->size(), kNpyHeadBytes)));
  file_->read(0, head);
  header_ = parse_npy_header(head, file_->size(), path.string());
}

std::vector<double> NpyFile::read_doubles(int64_t most) const {
  const int64_t count = header_.num_values();
  if (count > most) {
    throw DataError("npy",
                    cat("the array is too large for its purpose: path=", file_->path().string(), ", shape=(",
                        join(header_.shape, ", "), "), most=", most),
                    "Check that the right file is named");
  }
  std::vector<double> values = read_run(0, count);
  if (!header_.fortran_order) return values;
  std::vector<double> ordered(values.size());
  for (int64_t i = 0; i < count; ++i) {
    ordered[static_cast<size_t>(i)] = values[static_cast<size_t>(fortran_place(i, header_.shape))];
  }
  return ordered;
}

std::vector<double> NpyFile::read_run(int64_t first, int64_t count) const {
  WELKIN_CHECK(first >= 0 && count >= 0 && first + count <= header_.num_values(), "a run outside the array");
  const auto width = static_cast<size_t>(dtype_bytes(header_.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
  file_->read(header_.data_offset + static_cast<uint64_t>(first) * width, bytes);
  std::vector<double> values;
  for (auto value = bytes.begin(); value != bytes.end(); value += static_cast<std::ptrdiff_t>(width)) {
    if (header_.big_endian) std::reverse(value, value + static_cast<std::ptrdiff_t>(width));
    values.push_back(npy_value(header_.dtype, &*value));
  }
  return values;
}

NpyWriter::NpyWriter(const std::filesystem::path& path, Dtype dtype, const std::vector<int64_t>& shape)
    : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_TRUNC)), dtype_(dtype) {
  WELKIN_CHECK(dtype == Dtype::F32 || dtype == Dtype::F64, "npy files are written as float32 or float64");
  const auto too_big = [] { throw InternalError("an npy shape that does not fit"); };
  bytes_left_ =
      static_cast<uint64_t>(checked_mul(checked_product(shape, too_big), static_cast<int64_t>(dtype_bytes(dtype)), too_big));
  write_fully(file_, path_, npy_header_text(dtype, shape));
}

void NpyWriter::append(std::span<const float> values) { append_bytes(std::as_bytes(values), Dtype::F32); }
void NpyWriter::append(std::span<const double> values) { append_bytes(std::as_bytes(values), Dtype::F64); }

void NpyWriter::append_bytes(std::span<const std::byte> bytes, Dtype dtype) {
  WELKIN_CHECK(dtype == dtype_ && bytes.size() <= bytes_left_, "more or other values than the npy file's shape");
  write_fully(file_, path_, as_text(bytes));
  bytes_left_ -= bytes.size();
}

void NpyWriter::close() {
  WELKIN_CHECK(bytes_left_ == 0, "fewer values than the npy file's shape");
  sync_file(file_, path_);
  file_ = FileDescriptor();
}

void write_npy(const std::filesystem::path& path, const std::vector<int64_t>& shape, std::span<const float> values) {
  write_path_atomically(path, [&](const std::filesystem::path& temporary) {
    NpyWriter writer(temporary, Dtype::F32, shape);
    writer.append(values);
    writer.close();
  });
}

}  // namespace welkin::data
