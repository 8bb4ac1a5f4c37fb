// SPDX-License-Identifier: Apache-2.0
// Classic netCDF (CDF-1, CDF-2 and CDF-5) as stored arrays. Arrays along the unlimited dimension are
// left to welkin data ingest.
#include <algorithm>
#include <bit>
#include <optional>

#include "core/checked.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/formats/file_values.h"
#include "data/formats/formats.h"

namespace welkin::data {
namespace {

constexpr uint64_t kMostHeaderBytes = uint64_t{16} << 20, kMostEntries = 1 << 16;

[[noreturn]] void refuse_netcdf(const std::filesystem::path& path, std::string_view reason) {
  throw DataError("data", cat("the file is damaged: path=", path.string(), ", format=netCDF, reason=", reason), "Write it anew");
}

std::optional<Dtype> dtype_of_netcdf(uint64_t type) {
  switch (type) {
    case 1:
      return Dtype::I8;
    case 3:
      return Dtype::I16;
    case 4:
      return Dtype::I32;
    case 5:
      return Dtype::F32;
    case 6:
      return Dtype::F64;
    case 7:
      return Dtype::U8;
    case 8:
      return Dtype::U16;
    case 9:
      return Dtype::U32;
    case 10:
      return Dtype::I64;
    case 11:
      return Dtype::U64;
    default:
      return std::nullopt;  // 2: characters
  }
}

// Reads a header from its beginning to its end; every number is checked against the rest of the file.
class NetcdfParser {
 public:
  explicit NetcdfParser(const std::filesystem::path& path)
      : path_(path), file_(std::make_shared<const WatchedFile>(path)), head_(std::min(file_->size(), kMostHeaderBytes)) {
    file_->read(0, head_);
  }

  ArrayFile parse() {
    if (take(3) != "CDF") refuse_netcdf(path_, "no signature");
    version_ = static_cast<unsigned char>(take(1)[0]);
    if (version_ != 1 && version_ != 2 && version_ != 5) refuse_netcdf(path_, "a version that there is not");
    count();  // records
    ArrayFile file{.path = path_, .format = "netCDF classic", .arrays = {}, .not_numbers = {}, .attributes = {}};
    for (uint64_t i = list(10); i > 0; --i) {
      std::string name = text();
      dimensions_.emplace_back(std::move(name), static_cast<int64_t>(count()));
    }
    file.attributes[""] = attributes();
    for (uint64_t i = list(11); i > 0; --i) add_array(file);
    return file;
  }

 private:
  std::string_view take(uint64_t bytes) {
    if (bytes > head_.size() - at_) refuse_netcdf(path_, "the header is cut off");
    const auto* from = reinterpret_cast<const char*>(head_.data()) + at_;
    at_ += bytes;
    return {from, static_cast<size_t>(bytes)};
  }
  uint64_t number(uint64_t bytes) {
    uint64_t value = 0;
    for (const char byte : take(bytes)) value = (value << 8) | static_cast<unsigned char>(byte);
    return value;
  }
  uint64_t count() {
    const uint64_t value = number(version_ == 5 ? 8 : 4);
    if (value > uint64_t{1} << 62) refuse_netcdf(path_, "a negative number");
    return value;
  }
  void skip_padding() { at_ = std::min<uint64_t>((at_ + 3) / 4 * 4, head_.size()); }
  std::string text() {
    std::string value(take(count()));
    skip_padding();
    return printable(value);
  }
  uint64_t list(uint64_t kind) {
    const uint64_t found = number(4), length = count();
    if (length > kMostEntries || (found != kind && (found != 0 || length != 0))) refuse_netcdf(path_, "a list of another kind");
    return length;
  }

  Attributes attributes() {
    Attributes values;
    for (uint64_t i = list(12); i > 0; --i) {
      std::string name = text();
      const uint64_t type = number(4);
      if (type == 2) {
        values[std::move(name)] = std::vector<std::string>{text()};
        continue;
      }
      const auto dtype = dtype_of_netcdf(type);
      if (!dtype) refuse_netcdf(path_, "an attribute of an unknown type");
      std::vector<double> numbers;
      for (uint64_t left = count(); left > 0; --left) numbers.push_back(value_of(*dtype));
      skip_padding();
      values[std::move(name)] = std::move(numbers);
    }
    return values;
  }
  double value_of(Dtype dtype) {
    const uint64_t bits = number(dtype_bytes(dtype));
    if (dtype == Dtype::F64) return std::bit_cast<double>(bits);
    if (dtype == Dtype::F32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    const auto shift = 64 - 8 * static_cast<int>(dtype_bytes(dtype));
    const bool has_sign = dtype == Dtype::I8 || dtype == Dtype::I16 || dtype == Dtype::I32 || dtype == Dtype::I64;
    return has_sign ? static_cast<double>(static_cast<int64_t>(bits << shift) >> shift) : static_cast<double>(bits);
  }

  void add_array(ArrayFile& file) {
    const std::string name = text();
    ArrayFacts facts{.source = cat(path_.string(), ", dataset=", name), .name = name};
    bool has_records = false;
    const uint64_t rank = count();
    if (rank > kMostArrayDims) refuse_netcdf(path_, "too many dimensions");
    for (uint64_t d = 0; d < rank; ++d) {
      const uint64_t dimension = count();
      if (dimension >= dimensions_.size()) refuse_netcdf(path_, "a dimension that there is not");
      facts.axes.push_back(dimensions_[dimension].first);
      facts.shape.push_back(dimensions_[dimension].second);
      has_records = has_records || facts.shape.back() == 0;
    }
    Attributes attributes = this->attributes();
    const auto dtype = dtype_of_netcdf(number(4));
    count();  // bytes, which the shape says, too
    const uint64_t begin = number(version_ == 1 ? 4 : 8);
    if (!dtype || has_records) {
      file.not_numbers[name] = dtype ? "along the unlimited dimension" : "texts";
    } else {
      facts.dtype = *dtype;
      facts.big_endian = true;
      check_place(facts, begin);
      add_packing(attributes, facts, netcdf_fill(*dtype));
      file.arrays[name] = std::make_shared<FileArray>(std::move(facts), file_, begin);
    }
    file.attributes[name] = std::move(attributes);
  }

  void check_place(ArrayFacts& facts, uint64_t begin) const {
    const auto too_big = [&] { refuse_netcdf(path_, "an array that no machine can hold"); };
    facts.stored_bytes = static_cast<uint64_t>(
        checked_mul(checked_product(facts.shape, too_big), static_cast<int64_t>(dtype_bytes(facts.dtype)), too_big));
    if (begin > file_->size() || facts.stored_bytes > file_->size() - begin)
      refuse_netcdf(path_, "the file ends within an array");
  }

  std::filesystem::path path_;
  std::shared_ptr<const WatchedFile> file_;
  std::vector<std::byte> head_;
  uint64_t at_ = 0;
  uint64_t version_ = 1;
  std::vector<std::pair<std::string, int64_t>> dimensions_;
};

}  // namespace

ArrayFile open_netcdf_arrays(const std::filesystem::path& path) { return NetcdfParser(path).parse(); }

}  // namespace welkin::data
