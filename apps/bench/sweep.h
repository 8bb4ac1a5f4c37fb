// SPDX-License-Identifier: Apache-2.0
// Parses `--sweep key=value,value` of welkin bench.
#pragma once

#include <string>
#include <vector>

namespace welkin::apps {

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

// Parses "threads=1,2,4". Commas within a list, a mapping or quotes belong to a value. ConfigError without a key or a value.
Sweep parse_sweep(const std::string& text);

// The values as numbers, if all are numbers and no two are equal; else empty.
std::vector<double> numbers_of(const Sweep& sweep);

}  // namespace welkin::apps
