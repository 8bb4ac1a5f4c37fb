// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/source/netcdf3_header.h"

#include <array>
#include <stdexcept>
#include <vector>

namespace welkin::data::ingest {
namespace {

constexpr uint64_t kDimensionList = 10, kVariableList = 11, kAttributeList = 12;
constexpr std::array<uint64_t, 12> kTypeBytes{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};  // by nc_type, from NC_BYTE = 1

// Walks the header; throws std::runtime_error at the first thing that does not fit.
class HeaderWalk {
 public:
  HeaderWalk(std::span<const std::byte> head, uint64_t file_bytes) : head_(head), file_bytes_(file_bytes) {}

  void walk() {
    number(3);  // "CDF"
    version_ = number(1);
    const uint64_t records = number(wide());
    const uint64_t streaming = wide() == 8 ? ~uint64_t{0} : 0xffffffffu;
    num_records_ = records == streaming ? 0 : records;
    for (uint64_t i = list(kDimensionList); i > 0; --i) {
      skip(name_bytes());
      lengths_.push_back(number(wide()));
    }
    attributes();
    for (uint64_t i = list(kVariableList); i > 0; --i) variable();
    for (const Values& values : values_) require_room(values);
  }

 private:
  // The values of one variable: all of them, or those in one record.
  struct Values {
    uint64_t begin = 0, bytes = 0;
    bool is_record = false;
  };

  size_t wide() const { return version_ == 5 ? 8 : 4; }

  uint64_t number(size_t bytes) {
    if (bytes > head_.size() - place_) throw std::runtime_error("the header goes beyond the end of the file");
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<uint64_t>(head_[place_++]);
    return value;
  }

  // Bytes, padded to a multiple of four.
  void skip(uint64_t bytes) {
    const uint64_t left = head_.size() - place_;
    if (bytes > left || (4 - bytes % 4) % 4 > left - bytes)
      throw std::runtime_error("a name or attribute goes beyond the end of the file");
    place_ += static_cast<size_t>(bytes + (4 - bytes % 4) % 4);
  }

  uint64_t name_bytes() { return number(wide()); }

  // Elements of a list; 0 when it is absent. Each takes at least eight bytes of the header.
  uint64_t list(uint64_t tag) {
    const uint64_t found = number(4), count = number(wide());
    if (found != tag && (found != 0 || count != 0)) throw std::runtime_error("a list has the wrong tag");
    if (count > (head_.size() - place_) / 8) throw std::runtime_error("a list is longer than the file");
    return count;
  }

  uint64_t type_bytes() {
    const uint64_t type = number(4);
    if (type == 0 || type >= kTypeBytes.size()) throw std::runtime_error("an unknown type of values");
    return kTypeBytes[type];
  }

  void attributes() {
    for (uint64_t i = list(kAttributeList); i > 0; --i) {
      skip(name_bytes());
      const uint64_t bytes = type_bytes(), count = number(wide());
      if (count > head_.size()) throw std::runtime_error("an attribute goes beyond the end of the file");
      skip(bytes * count);
    }
  }

  void variable() {
    skip(name_bytes());
    const uint64_t rank = number(wide());
    if (rank > lengths_.size()) throw std::runtime_error("a variable with more dimensions than there are");
    Values values;
    std::vector<uint64_t> extents;
    for (uint64_t i = 0; i < rank; ++i) {
      const uint64_t dimension = number(wide());
      if (dimension >= lengths_.size()) throw std::runtime_error("a variable with an unknown dimension");
      const bool is_record = i == 0 && lengths_[dimension] == 0;
      values.is_record = values.is_record || is_record;
      if (!is_record) extents.push_back(lengths_[dimension]);
    }
    attributes();
    values.bytes = type_bytes();
    for (const uint64_t extent : extents) values.bytes = product(values.bytes, extent);
    number(wide());  // the size of the values, which netCDF-C computes itself
    values.begin = number(version_ == 1 ? 4 : 8);
    values_.push_back(values);
  }

  // Records follow each other: in each, every record variable has its bytes, padded unless it is the only one.
  uint64_t record_bytes() const {
    uint64_t bytes = 0, last = 0, count = 0;
    for (const Values& values : values_) {
      if (!values.is_record) continue;
      last = values.bytes;
      bytes = sum(bytes, last + (4 - last % 4) % 4);
      ++count;
    }
    return count == 1 ? last : bytes;
  }

  // netCDF-C reads zeros where a file was cut off.
  void require_room(const Values& values) const {
    if (values.is_record && num_records_ == 0) return;
    const uint64_t before = values.is_record ? product(record_bytes(), num_records_ - 1) : 0;
    sum(sum(values.begin, before), values.bytes);
  }

  // No number of values or place is beyond the end of the file.
  uint64_t product(uint64_t a, uint64_t b) const {
    uint64_t result = 0;
    const bool fits = !__builtin_mul_overflow(a, b, &result);
    return within(fits, result);
  }
  uint64_t sum(uint64_t a, uint64_t b) const {
    uint64_t result = 0;
    const bool fits = !__builtin_add_overflow(a, b, &result);
    return within(fits, result);
  }
  uint64_t within(bool fits, uint64_t bytes) const {
    if (!fits || bytes > file_bytes_) throw std::runtime_error("a variable has more values than the file holds");
    return bytes;
  }

  std::span<const std::byte> head_;
  uint64_t file_bytes_;
  size_t place_ = 0;
  uint64_t version_ = 0, num_records_ = 0;
  std::vector<uint64_t> lengths_;
  std::vector<Values> values_;
};

}  // namespace

std::string netcdf3_problem(std::span<const std::byte> head, uint64_t file_bytes) {
  try {
    HeaderWalk(head, file_bytes).walk();
    return {};
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
}

}  // namespace welkin::data::ingest
