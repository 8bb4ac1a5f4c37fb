// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file as a stream of events. Internal to safetensors.cpp; here so that it can be read on its
// own.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/archive/safetensors.h"

namespace welkin {

// Accepts exactly {"__metadata__": {string: string}, name: {"dtype": string, "shape": [uint], "data_offsets": [uint, uint]}}.
// Events instead of a document: a document would hide duplicate keys and allow nesting that costs memory. On refusal the parse
// stops and problem() says why.
class SafetensorsHeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SafetensorsHeaderEvents(SafetensorsHeader& header) : header_(header) {}

  const std::string& problem() const { return problem_; }
  bool finished() const { return place_ == Place::After; }

  bool null() override { return refuse("null is no value of the format"); }
  bool boolean(bool) override { return refuse("a boolean is no value of the format"); }
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t& text) override {
    return refuse("not an unsigned integer: " + text.substr(0, 40));
  }
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return refuse("binary is no value of the format"); }
  bool start_object(size_t) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override;

 private:
  enum class Place { Before, Top, Metadata, Tensor, Numbers, After };

  bool refuse(std::string why);
  bool finish_tensor();

  SafetensorsHeader& header_;
  std::string problem_;
  Place place_ = Place::Before;
  std::string name_;            // of the tensor, or "__metadata__"
  std::string field_;           // the last key inside it
  std::set<std::string> seen_;  // keys of this tensor so far
  bool seen_metadata_ = false;
  TensorInfo tensor_;
  std::vector<uint64_t> numbers_;
};

}  // namespace welkin
