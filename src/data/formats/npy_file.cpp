// SPDX-License-Identifier: Apache-2.0
#include "data/formats/npy_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "core/checked.h"
#include "core/file.h"
#include "core/text.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

// Index in a Fortran-order file of the value that has index `place` in C order.
int64_t fortran_place(int64_t place, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; place /= shape[d]) index[d] = place % shape[d];
  int64_t result = 0;
  for (size_t d = shape.size(); d-- > 0;) result = result * shape[d] + index[d];
  return result;
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
  std::vector<double> values(static_cast<size_t>(count));
  const std::array<int64_t, 1> extent{count}, from_stride{static_cast<int64_t>(width)}, to_stride{1};
  copy_values({.from = bytes.data(),
               .type = {header_.dtype, header_.big_endian},
               .extent = extent,
               .from_stride = from_stride,
               .to = values.data(),
               .to_double = true,
               .to_stride = to_stride});
  return values;
}

NpyWriter::NpyWriter(const std::filesystem::path& path, Dtype dtype, const std::vector<int64_t>& shape)
    : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_TRUNC)), dtype_(dtype) {
  WELKIN_CHECK(dtype == Dtype::F32 || dtype == Dtype::F64, "npy files are written as float32 or float64");
  const auto too_big = [] { throw InternalError("an npy shape that does not fit"); };
  bytes_left_ =
      static_cast<uint64_t>(checked_mul(checked_product(shape, too_big), static_cast<int64_t>(dtype_bytes(dtype)), too_big));
  write_fully(file_, path_, npy_header_of(shape, dtype));
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
