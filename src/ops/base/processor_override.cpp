// SPDX-License-Identifier: Apache-2.0
#include "ops/base/processor_override.h"

#include <cstdlib>

#include "core/error.h"
#include "core/text.h"

namespace welkin::ops {
namespace {

[[noreturn]] void refuse_override(const char* name, const char* value, const char* choices) {
  throw ConfigError("ops", cat("the environment has no such choice: ", name, "=", value),
                    cat("Choose ", choices, ", or unset it"));
}

}  // namespace

ProcessorOverride parse_processor_override(const char* instruction_set, const char* bf16_dot, const char* gemm) {
  ProcessorOverride found;
  if (instruction_set != nullptr) {
    found.best_set = parse_instruction_set(instruction_set);
    if (!found.best_set) refuse_override("WELKIN_INSTRUCTION_SET", instruction_set, "portable, avx2, avx512 or amx");
  }
  if (bf16_dot != nullptr) {
    const std::string text = bf16_dot;
    if (text != "none" && text != "slow" && text != "fast") refuse_override("WELKIN_BF16_DOT", bf16_dot, "none, slow or fast");
    found.bf16_dot = text == "none" ? Bf16Dot::None : text == "slow" ? Bf16Dot::Slow : Bf16Dot::Fast;
  }
  if (gemm != nullptr) {
    found.gemm = gemm;
    if (found.gemm != "mkl" && found.gemm != "onednn") refuse_override("WELKIN_GEMM", gemm, "mkl or onednn");
  }
  return found;
}

const ProcessorOverride& processor_override() {
  static const ProcessorOverride found =
      parse_processor_override(std::getenv("WELKIN_INSTRUCTION_SET"), std::getenv("WELKIN_BF16_DOT"), std::getenv("WELKIN_GEMM"));
  return found;
}

}  // namespace welkin::ops
