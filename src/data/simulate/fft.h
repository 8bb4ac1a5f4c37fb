// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform over the first axis of an array (length, columns): Stockham's self-sorting form with radices 2,
// 3, 4, 5 and a plain sum for other primes (Van Loan, "Computational frameworks for the FFT", 1992, section 1.7). Columns are
// neighbours in memory, so the innermost loops are vectors; a column's result depends on nothing but the column.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace welkin::data::simulate {

enum class FftSign { Forward = -1, Inverse = 1 };  // the sign of the exponent; neither direction divides by the length

// T is float or double. Thread-safe after construction.
template <typename T>
class Fft {
 public:
  explicit Fft(int64_t length);  // at least 1

  int64_t length() const { return length_; }

  // Works in place; element i of column c stands at data[i * stride + c]. Allocates 256 * length bytes (float) or twice that.
  void transform(std::complex<T>* data, int64_t columns, int64_t stride, FftSign sign) const;

 private:
  struct Pass {
    int64_t radix = 1;
    int64_t groups = 1;                    // radix * groups = the length that is left at this pass
    int64_t step = 1;                      // product of the radices so far
    std::vector<std::complex<T>> twiddle;  // (groups, radix): exp(-2 pi i g k / (radix groups))
    std::vector<std::complex<T>> roots;    // (radix): exp(-2 pi i k / radix)
  };
  void transform_block(T* re, T* im, T* re_next, T* im_next) const;

  int64_t length_;
  std::vector<Pass> passes_;
};

extern template class Fft<float>;
extern template class Fft<double>;

// The smallest length >= n whose prime factors are 2, 3 and 5. The transform is fast at such lengths.
int64_t next_fast_length(int64_t n);

}  // namespace welkin::data::simulate
