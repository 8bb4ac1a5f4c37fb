// SPDX-License-Identifier: Apache-2.0
// The type of a plain scalar by the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#1032-tag-resolution), in which 5E-4 is
// a number and `yes` a string.
#pragma once

#include <string>
#include <string_view>

#include "config/yaml/yaml_document.h"

namespace welkin::config {

// A node of kind Null, Bool, Int, Float or String. An integer beyond int64 is a Float, a number beyond double infinite.
YamlNode type_scalar(std::string_view text);

// A plain scalar that type_scalar would not read as a string again, or that is no plain scalar at all, comes back in single or
// double quotes.
std::string quote_if_needed(std::string_view text);

// The shortest text that reads back as the same number and as a Float: 0.0005, 1e-08, 2.0, .inf, .nan.
std::string float_text(double value);

}  // namespace welkin::config
