// SPDX-License-Identifier: Apache-2.0
#include "core/archive/safetensors_header.h"

#include <limits>
#include <utility>

#include "core/text.h"

namespace welkin {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";
constexpr size_t kMostDims = 32;

std::string in_quotes(const std::string& text) { return cat("'", text.substr(0, 80), text.size() > 80 ? "..." : "", "'"); }

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const DtypeRow& row : kDtypes) names.emplace_back(row.name);
  return names;
}

}  // namespace

bool SafetensorsHeaderEvents::refuse(std::string why) {
  problem_ = name_.empty() ? std::move(why) : cat(why, ", tensor=", in_quotes(name_));
  return false;
}

bool SafetensorsHeaderEvents::number_integer(number_integer_t value) { return refuse(cat("negative number: ", value)); }

bool SafetensorsHeaderEvents::number_unsigned(number_unsigned_t value) {
  if (place_ != Place::Numbers) return refuse("a number where none belongs");
  if (numbers_.size() == kMostDims) return refuse(cat("more than ", kMostDims, " numbers in ", field_));
  numbers_.push_back(value);
  return true;
}

bool SafetensorsHeaderEvents::string(string_t& value) {
  if (place_ == Place::Metadata) {
    if (!header_.metadata.emplace(field_, value).second) return refuse("key given twice: " + in_quotes(field_));
    return true;
  }
  if (place_ != Place::Tensor || field_ != "dtype") return refuse("a string where none belongs");
  const auto dtype = dtype_of_name(value);
  if (!dtype) return refuse(cat("dtype ", in_quotes(value), " is not one of ", join(known_names(), " ")));
  tensor_.dtype = *dtype;
  return true;
}

bool SafetensorsHeaderEvents::start_object(size_t) {
  if (place_ == Place::Before) {
    place_ = Place::Top;
  } else if (place_ == Place::Top) {
    place_ = name_ == kMetadataName ? Place::Metadata : Place::Tensor;
    tensor_ = {};
    seen_.clear();
  } else {
    return refuse("an object where none belongs");
  }
  return true;
}

bool SafetensorsHeaderEvents::key(string_t& value) {
  if (place_ == Place::Top) {
    name_ = value;
    const bool again = name_ == kMetadataName ? std::exchange(seen_metadata_, true) : header_.tensors.contains(name_);
    return again ? refuse("name given twice") : true;
  }
  field_ = value;
  if (place_ == Place::Metadata) return true;
  if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets") return refuse("unknown key " + in_quotes(field_));
  if (!seen_.insert(field_).second) return refuse("key given twice: " + field_);
  return true;
}

bool SafetensorsHeaderEvents::end_object() {
  if (place_ == Place::Tensor) {
    if (!finish_tensor()) return false;
    place_ = Place::Top;
  } else if (place_ == Place::Metadata) {
    place_ = Place::Top;
  } else {
    place_ = Place::After;
  }
  name_.clear();
  return true;
}

bool SafetensorsHeaderEvents::start_array(size_t) {
  if (place_ != Place::Tensor || field_ == "dtype") return refuse("an array where none belongs");
  place_ = Place::Numbers;
  numbers_.clear();
  return true;
}

bool SafetensorsHeaderEvents::end_array() {
  place_ = Place::Tensor;
  if (field_ == "data_offsets") {
    if (numbers_.size() != 2) return refuse(cat("data_offsets has ", numbers_.size(), " numbers instead of 2"));
    tensor_.begin = numbers_[0];
    tensor_.end = numbers_[1];
    return true;
  }
  for (const uint64_t extent : numbers_) {
    if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return refuse(cat("extent too large: ", extent));
    tensor_.shape.push_back(static_cast<int64_t>(extent));
  }
  return true;
}

bool SafetensorsHeaderEvents::finish_tensor() {
  for (const char* field : {"dtype", "shape", "data_offsets"}) {
    if (!seen_.contains(field)) return refuse(cat("key missing: ", field));
  }
  header_.tensors.emplace(name_, std::move(tensor_));
  return true;
}

bool SafetensorsHeaderEvents::parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
  name_.clear();
  return refuse(cat("not valid JSON at header byte ", position));
}

}  // namespace welkin
