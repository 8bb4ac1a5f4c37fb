// SPDX-License-Identifier: Apache-2.0
// A fixture whose tests run on one instruction set, and leave the process with the one it had.
#pragma once

#include <gtest/gtest.h>

#include "ops/base/instruction_set.h"

namespace welkin::ops {

class OnInstructionSet : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
    set_instruction_set(GetParam());
  }
  void TearDown() override { set_instruction_set(before_); }

 private:
  InstructionSet before_ = instruction_set();
};

}  // namespace welkin::ops
