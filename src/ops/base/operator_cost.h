// SPDX-License-Identifier: Apache-2.0
// Cost of one call of an operator; torch-free. FLOPs count 2 per multiply-add, of matmuls only. Bytes count the
// operands read once and the result written once.
#pragma once

namespace welkin::ops {

struct OperatorCost {
  double flops = 0;
  double bytes = 0;
  double results = 0;  // values of the result

  OperatorCost& operator+=(const OperatorCost& other) {
    flops += other.flops;
    bytes += other.bytes;
    results += other.results;
    return *this;
  }
  friend OperatorCost operator+(OperatorCost a, const OperatorCost& b) { return a += b; }
  friend OperatorCost operator*(double n, const OperatorCost& c) { return {n * c.flops, n * c.bytes, n * c.results}; }
};

}  // namespace welkin::ops
