// SPDX-License-Identifier: Apache-2.0
#include "core/fault/process_age.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace welkin {

// The 22nd field of /proc/self/stat, in clock ticks since the machine was started. The second one is a name in brackets.
double process_age_s() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  constexpr int kStartTime = 20;  // after the name
  for (int i = 0; i < kStartTime; ++i) fields >> field;
  const double ticks = std::strtod(field.c_str(), nullptr);
  timespec now{};
  if (!fields || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double up_s = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  return std::max(0.0, up_s - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace welkin
