// SPDX-License-Identifier: Apache-2.0
// Classic netCDF: a header, then the arrays one after the other, big-endian. Every value has its place from the start. So any
// number of processes write blocks in any order, and may continue an existing file. Format: "The NetCDF Classic Format
// Specification", versions CDF-2 (64-bit offsets) and, where an array is larger than 2 GiB, CDF-5 (64-bit data).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "core/checked.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "data/formats/array_writer.h"
#include "data/storage/stored_values.h"

namespace welkin::data {
namespace {

constexpr uint32_t kNetcdfDimension = 10, kNetcdfVariable = 11, kNetcdfAttribute = 12, kNetcdfText = 2, kNetcdfFloat = 5,
                   kNetcdfDouble = 6;
constexpr uint64_t kLargestClassicArray = uint64_t{1} << 31;

uint32_t netcdf_type(const OutputArray& array) {
  switch (array.dtype) {
    case Dtype::I8:
      return 1;
    case Dtype::I16:
      return 3;
    case Dtype::I32:
      return 4;
    case Dtype::F32:
      return kNetcdfFloat;
    case Dtype::F64:
      return kNetcdfDouble;
    default:
      throw DataError("data", cat("classic netCDF has no such type: dataset=", array.name, ", dtype=", dtype_name(array.dtype)),
                      "Use float32, float64, int8, int16 or int32");
  }
}

uint64_t padded(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

void swap_bytes(std::span<std::byte> values, size_t width) {
  for (size_t at = 0; at < values.size(); at += width) std::ranges::reverse(values.subspan(at, width));
}

// The header, whose numbers are 4 or 8 bytes long.
class NetcdfHeader {
 public:
  explicit NetcdfHeader(bool wide) : wide_(wide) { bytes_ = wide ? "CDF\x05" : "CDF\x02"; }

  void word(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes_.push_back(static_cast<char>(value >> shift));
  }
  void offset(uint64_t value) {
    word(static_cast<uint32_t>(value >> 32));
    word(static_cast<uint32_t>(value));
  }
  void count(uint64_t value) { wide_ ? offset(value) : word(static_cast<uint32_t>(value)); }
  void text(std::string_view text) {
    count(text.size());
    bytes_ += text;
    bytes_.resize(padded(bytes_.size()), '\0');
  }
  void list(uint32_t kind, size_t length) {
    word(length == 0 ? 0 : kind);
    count(length);
  }
  // With a _FillValue of NaN where `nan_is_missing`; CF wants it of the type of the values, float32.
  void attributes(const Attributes& attributes, bool nan_is_missing = false) {
    list(kNetcdfAttribute, attributes.size() + (nan_is_missing ? 1 : 0));
    if (nan_is_missing) {
      text("_FillValue");
      word(kNetcdfFloat);
      count(1);
      word(std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()));
    }
    for (const auto& [name, value] : attributes) {
      text(name);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
        word(kNetcdfText);
        text(join(*texts, ", "));
      } else {
        const auto& numbers = std::get<std::vector<double>>(value);
        word(kNetcdfDouble);
        count(numbers.size());
        for (const double number : numbers) offset(std::bit_cast<uint64_t>(number));
      }
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  bool wide_;
  std::string bytes_;
};

class NetcdfWriter : public ArrayWriter {
 public:
  NetcdfWriter(std::filesystem::path path, const OutputFile& output)
      : path_(std::move(path)), arrays_(output.arrays), file_(open_file(path_, O_RDWR | O_CREAT)) {
    for (const auto& [array, values] : output.small) arrays_.push_back(array);
    is_wide_ = std::ranges::any_of(arrays_, [](const OutputArray& array) { return stored_bytes(array) >= kLargestClassicArray; });
    find_dimensions();
    write_header(output.attributes);
    for (size_t i = 0; i < output.small.size(); ++i) {
      const auto& [array, values] = output.small[i];
      write(output.arrays.size() + i, whole_region(array.shape), stored_values(values, array.dtype));
    }
  }

  void write(size_t index, const ArrayRegion& region, StoredBlock values) override {
    const OutputArray& array = arrays_[index];
    const auto width = static_cast<size_t>(dtype_bytes(array.dtype));
    std::vector<std::byte> bytes(values.begin(), values.end());
    swap_bytes(bytes, width);
    // Axes behind `outer` are whole: together with it they are one run of the file.
    const Extents extent = region.extent(), stride = c_strides(array.shape);
    size_t outer = extent.empty() ? 0 : extent.size() - 1;
    while (outer > 0 && extent[outer] == array.shape[outer]) --outer;
    const size_t run = extent.empty() ? width : static_cast<size_t>(extent[outer] * stride[outer]) * width;
    Extents place = region.begin;
    for (size_t from = 0; from < bytes.size(); from += run) {
      int64_t first = 0;
      for (size_t d = 0; d < place.size(); ++d) first += place[d] * stride[d];
      write_at(begins_[index] + static_cast<uint64_t>(first) * width, std::span(bytes).subspan(from, run));
      for (size_t d = outer; d > 0 && ++place[d - 1] == region.end[d - 1]; --d) place[d - 1] = region.begin[d - 1];
    }
  }

  void finish() override { sync_file(file_, path_); }

 private:
  void find_dimensions() {
    for (OutputArray& array : arrays_) {
      for (size_t d = array.axes.size(); d < array.shape.size(); ++d) array.axes.push_back(cat(array.name, "_", d));
      std::vector<uint64_t> numbers;
      for (size_t d = 0; d < array.shape.size(); ++d) {
        const auto found = std::ranges::find(dimensions_, array.axes[d], &std::pair<std::string, int64_t>::first);
        numbers.push_back(static_cast<uint64_t>(found - dimensions_.begin()));
        if (found == dimensions_.end()) dimensions_.emplace_back(array.axes[d], array.shape[d]);
        WELKIN_CHECK(dimensions_[numbers.back()].second == array.shape[d], "a dimension of two lengths");
      }
      dimensions_of_.push_back(std::move(numbers));
    }
  }

  std::string header(const Attributes& attributes) const {
    NetcdfHeader header(is_wide_);
    header.count(0);  // records
    header.list(kNetcdfDimension, dimensions_.size());
    for (const auto& [name, length] : dimensions_) {
      header.text(name);
      header.count(static_cast<uint64_t>(length));
    }
    header.attributes(attributes);
    header.list(kNetcdfVariable, arrays_.size());
    for (size_t i = 0; i < arrays_.size(); ++i) {
      header.text(arrays_[i].name);
      header.count(dimensions_of_[i].size());
      for (const uint64_t dimension : dimensions_of_[i]) header.count(dimension);
      header.attributes(arrays_[i].attributes, arrays_[i].nan_is_missing);
      header.word(netcdf_type(arrays_[i]));
      header.count(padded(stored_bytes(arrays_[i])));
      header.offset(begins_.empty() ? 0 : begins_[i]);
    }
    return header.bytes();
  }

  // The header's length does not depend on the offsets in it.
  void write_header(const Attributes& attributes) {
    uint64_t place = padded(header(attributes).size());
    for (const OutputArray& array : arrays_) {
      begins_.push_back(place);
      place += padded(stored_bytes(array));
    }
    const std::string head = header(attributes);
    write_at(0, std::as_bytes(std::span(head)));
    if (::ftruncate(file_.get(), static_cast<off_t>(place)) != 0) throw file_error("make room in", path_, errno);
  }

  void write_at(uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t done = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw file_error("write", path_, errno);
      offset += static_cast<uint64_t>(done);
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
  }

  std::filesystem::path path_;
  std::vector<OutputArray> arrays_;
  FileDescriptor file_;
  bool is_wide_ = false;
  std::vector<std::pair<std::string, int64_t>> dimensions_;
  std::vector<std::vector<uint64_t>> dimensions_of_;  // numbers of the dimensions, by array
  std::vector<uint64_t> begins_;                      // bytes
};

}  // namespace

std::unique_ptr<ArrayWriter> make_netcdf_writer(const std::filesystem::path& path, const OutputFile& output) {
  return std::make_unique<NetcdfWriter>(path, output);
}

}  // namespace welkin::data
