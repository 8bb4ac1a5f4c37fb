// SPDX-License-Identifier: Apache-2.0
// `--sweep key=value,value` of welkin bench, as it was typed.
#pragma once

#include <string>
#include <vector>

namespace welkin::apps {

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

// "threads=1,2,4". Commas within a list, a mapping or quotes part no values. ConfigError where there is no key or no value.
Sweep parse_sweep(const std::string& text);

// The values where all are numbers, none the same; else nothing.
std::vector<double> numbers_of(const Sweep& sweep);

}  // namespace welkin::apps
