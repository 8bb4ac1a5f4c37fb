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
  }

 private:
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
    std::vector<uint64_t> shape;
    for (uint64_t i = 0; i < rank; ++i) {
      const uint64_t dimension = number(wide());
      if (dimension >= lengths_.size()) throw std::runtime_error("a variable with an unknown dimension");
      shape.push_back(lengths_[dimension] == 0 ? num_records_ : lengths_[dimension]);
    }
    attributes();
    const uint64_t bytes = type_bytes();
    number(wide());  // the size of the values, which netCDF-C computes itself
    const uint64_t begin = number(version_ == 1 ? 4 : 8);
    require_room(bytes, shape, begin);
  }

  void require_room(uint64_t bytes, const std::vector<uint64_t>& shape, uint64_t begin) const {
    bool fits = begin <= file_bytes_;
    for (const uint64_t extent : shape) fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= file_bytes_;
    if (!fits) throw std::runtime_error("a variable has more values than the file holds");
  }

  std::span<const std::byte> head_;
  uint64_t file_bytes_;
  size_t place_ = 0;
  uint64_t version_ = 0, num_records_ = 0;
  std::vector<uint64_t> lengths_;
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
