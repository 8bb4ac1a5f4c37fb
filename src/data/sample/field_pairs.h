// SPDX-License-Identifier: Apache-2.0
// The pair of times of a sample index. Pure arithmetic on the lengths of the files.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sample/rules.h"

namespace welkin::data {

struct FieldPair {
  int64_t file = 0;
  int64_t step = 0;  // newest input step in that file; the target is `lead` later

  bool operator==(const FieldPair&) const = default;
};

struct PairOptions {
  int64_t lead = 1;     // steps
  int64_t history = 1;  // input steps, the newest at FieldPair::step
  Rules rules = Rules::Corrected;
};

class FieldPairs {
 public:
  FieldPairs(std::vector<int64_t> steps_per_file, PairOptions options);

  // Corrected: every file of T steps has T - lead - history + 1 pairs, each once. Tutorial: the first file's length for all.
  int64_t count() const;
  // Tutorial: may name a step beyond the end of its file (`exists` tells), as the tutorials' loader does before it fails.
  FieldPair at(int64_t index) const;
  bool exists(const FieldPair& pair) const;

 private:
  std::vector<int64_t> steps_;
  PairOptions options_;
  std::vector<int64_t> first_index_;  // of each file, and the count at the end (Corrected)
};

}  // namespace welkin::data
