// SPDX-License-Identifier: Apache-2.0
// What a configuration with these settings is refused for.
#pragma once

#include <string>
#include <vector>

#include "harness.h"

namespace welkin::config::test {

struct Complaint {
  std::vector<std::string> settings;
  const char* message;
};

inline void expect_complaints(const char* file, const std::vector<Complaint>& complaints) {
  for (const Complaint& complaint : complaints) {
    std::vector<std::string> arguments;
    for (const std::string& setting : complaint.settings) arguments.push_back("--set=" + setting);
    EXPECT_THAT(resolve_error(file, arguments), ::testing::HasSubstr(complaint.message));
  }
}

}  // namespace welkin::config::test
