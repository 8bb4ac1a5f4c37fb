// SPDX-License-Identifier: Apache-2.0
// The time of the recorded operators by class. The time of an operator is its own: without that of the operators that it
// calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::train {

enum class OperatorKind { Contraction, Normalisation, ElementWise, Movement, Communication, Other };

// The class of "aten::addmm", "welkin::attention", "autograd::engine::evaluate_function: ..." or of a GPU kernel's name.
OperatorKind kind_of_operator(std::string_view name);
std::string_view name_of(OperatorKind kind);

// True for GPU kernels that use tensor cores, by their names.
bool uses_matrix_units(std::string_view kernel);

// One call; the calls of one thread nest.
struct OperatorCall {
  std::string name;
  uint64_t thread = 0;
  uint64_t begin_ns = 0, end_ns = 0;
  bool on_gpu = false;
};

struct OperatorRow {
  std::string name;
  OperatorKind kind = OperatorKind::Other;
  int64_t calls = 0;
  double own_ms = 0;
};

struct OperatorSummary {
  std::vector<OperatorRow> rows;  // by own time, most first
  double total_ms = 0;            // of all rows
  double matrix_unit_ms = 0;      // of GPU kernels that use them
  bool on_gpu = false;            // the rows are kernels of a GPU, not operators of a CPU
};

// Summarises the kernels if there are any, else the operators.
OperatorSummary summarise(std::vector<OperatorCall> calls);

// A row per class with calls, milliseconds and share, a line about matrix units, and the `most` slowest operators.
std::string operator_table(const OperatorSummary& summary, size_t most = 12);

}  // namespace welkin::train
