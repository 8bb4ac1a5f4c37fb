// SPDX-License-Identifier: Apache-2.0
// The current set is a property of the process, like its affinity mask: one atomic.
#include "ops/base/instruction_set.h"

#include <array>
#include <atomic>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "ops/base/instruction_support.h"
#include "ops/base/processor_override.h"

namespace welkin::ops {
namespace {

constexpr std::array<std::string_view, 4> kSetNames{"portable", "avx2", "avx512", "amx"};

std::atomic<InstructionSet>& set_in_use() {
  static std::atomic<InstructionSet> set{best_instruction_set()};
  return set;
}

}  // namespace

std::string_view name_of(InstructionSet set) { return kSetNames.at(static_cast<size_t>(set)); }

std::optional<InstructionSet> parse_instruction_set(std::string_view name) {
  for (size_t i = 0; i < kSetNames.size(); ++i) {
    if (kSetNames[i] == name) return static_cast<InstructionSet>(i);
  }
  return std::nullopt;
}

bool is_supported(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return true;
    case InstructionSet::Avx2:
      return cpu_has_avx2();
    case InstructionSet::Avx512:
      return cpu_has_avx512();
    case InstructionSet::Amx:
      return cpu_has_amx_bf16();
  }
  return false;
}

InstructionSet best_instruction_set() {
  InstructionSet best = InstructionSet::Portable;
  for (const auto set : {InstructionSet::Avx2, InstructionSet::Avx512, InstructionSet::Amx}) {
    if (is_supported(set)) best = set;
  }
  if (const auto& said = processor_override().best_set; said && *said != best) {
    throw ConfigError("ops", cat("this CPU does not have the instruction set: WELKIN_INSTRUCTION_SET=", name_of(*said)),
                      cat("Name one that it has (at most ", name_of(best), "), or unset it"));
  }
  return best;
}

InstructionSet instruction_set() { return set_in_use().load(std::memory_order_relaxed); }

void set_instruction_set(InstructionSet set) {
  if (!is_supported(set)) {
    throw ConfigError("ops", cat("this CPU does not have the instruction set: instruction_set=", name_of(set)),
                      "Name one that it has (amx, avx512, avx2, portable), or none for the best");
  }
  set_in_use().store(set, std::memory_order_relaxed);
}

}  // namespace welkin::ops
