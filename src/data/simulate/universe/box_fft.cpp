// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/box_fft.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace welkin::data::simulate {
namespace {

using FloatComplex = std::complex<float>;

int64_t fitting(int64_t window_bytes, int64_t bytes_each, int64_t most) {
  return std::clamp<int64_t>(window_bytes / bytes_each, 1, most);
}

}  // namespace

BoxFft::BoxFft(PlaneStore& mesh, ThreadPool& pool, int64_t window_bytes)
    : mesh_(mesh), pool_(pool), window_bytes_(window_bytes), edge_(mesh.planes()), fft_(mesh.planes()) {
  WELKIN_CHECK(edge_ % 2 == 0 && mesh.values_per_plane() == mesh_plane_values(edge_), "the mesh of a transform");
}

// Two real rows travel as the real and imaginary part of one complex row.
void BoxFft::forward_plane(float* plane) const {
  const int64_t n = edge_, pairs = n / 2, modes = n / 2 + 1;
  std::vector<FloatComplex> rows(static_cast<size_t>(n * pairs));
  for (int64_t p = 0; p < pairs; ++p) {
    for (int64_t x = 0; x < n; ++x) {
      rows[static_cast<size_t>(x * pairs + p)] = {plane[2 * p * n + x], plane[(2 * p + 1) * n + x]};
    }
  }
  fft_.transform(rows.data(), pairs, pairs, FftSign::Forward);
  auto* out = reinterpret_cast<FloatComplex*>(plane);
  for (int64_t p = 0; p < pairs; ++p) {
    for (int64_t k = 0; k < modes; ++k) {
      const FloatComplex a = rows[static_cast<size_t>(k * pairs + p)];
      const FloatComplex b = std::conj(rows[static_cast<size_t>(((n - k) % n) * pairs + p)]);
      const FloatComplex sum = a + b, difference = a - b;
      out[2 * p * modes + k] = 0.5f * sum;
      out[(2 * p + 1) * modes + k] = {0.5f * difference.imag(), -0.5f * difference.real()};
    }
  }
  fft_.transform(out, modes, modes, FftSign::Forward);
}

void BoxFft::inverse_plane(float* plane) const {
  const int64_t n = edge_, pairs = n / 2, modes = n / 2 + 1;
  auto* in = reinterpret_cast<FloatComplex*>(plane);
  fft_.transform(in, modes, modes, FftSign::Inverse);
  std::vector<FloatComplex> rows(static_cast<size_t>(n * pairs));
  for (int64_t p = 0; p < pairs; ++p) {
    const FloatComplex *first = in + 2 * p * modes, *second = in + (2 * p + 1) * modes;
    // Modes 0 and n/2 of a real row are real.
    for (const int64_t k : {int64_t{0}, n / 2}) rows[static_cast<size_t>(k * pairs + p)] = {first[k].real(), second[k].real()};
    for (int64_t k = 1; k < n / 2; ++k) {
      const FloatComplex a = first[k], b = second[k];
      rows[static_cast<size_t>(k * pairs + p)] = {a.real() - b.imag(), a.imag() + b.real()};
      rows[static_cast<size_t>((n - k) * pairs + p)] = {a.real() + b.imag(), b.real() - a.imag()};
    }
  }
  fft_.transform(rows.data(), pairs, pairs, FftSign::Inverse);
  for (int64_t p = 0; p < pairs; ++p) {
    for (int64_t x = 0; x < n; ++x) {
      const FloatComplex value = rows[static_cast<size_t>(x * pairs + p)];
      plane[2 * p * n + x] = value.real();
      plane[(2 * p + 1) * n + x] = value.imag();
    }
  }
}

void BoxFft::for_planes(const std::function<void(float*)>& change) {
  const int64_t values = mesh_.values_per_plane();
  // A plane under work takes twice its size (the rows), so half of the window is buffers.
  const int64_t together = fitting(window_bytes_, 2 * values * static_cast<int64_t>(sizeof(float)), pool_.num_threads() + 1);
  for (int64_t begin = 0; begin < edge_; begin += together * 8) {
    const int64_t count = std::min(together * 8, edge_ - begin);
    pool_.parallel_for(std::min(together, count), [&](int64_t lane) {
      std::vector<float> plane(static_cast<size_t>(values));
      for (int64_t z = begin + lane; z < begin + count; z += together) {
        mesh_.read(z, 0, values, plane.data());
        change(plane.data());
        mesh_.write(z, 0, values, plane.data());
      }
    });
  }
}

void BoxFft::forward_planes() {
  for_planes([this](float* plane) { forward_plane(plane); });
}

void BoxFft::inverse_planes() {
  for_planes([this](float* plane) { inverse_plane(plane); });
}

void BoxFft::along_first_axis(const EditRow& edit, bool from_mesh) {
  const int64_t n = edge_, modes = n / 2 + 1;
  const int64_t rows_together = fitting(window_bytes_, n * modes * static_cast<int64_t>(sizeof(FloatComplex)), n);
  constexpr int64_t kColumns = 64;
  for (int64_t begin = 0; begin < n; begin += rows_together) {
    const int64_t rows = std::min(rows_together, n - begin), columns = rows * modes;
    std::vector<FloatComplex> block(static_cast<size_t>(n * columns));
    auto* floats = reinterpret_cast<float*>(block.data());
    const auto transform = [&](FftSign sign) {
      pool_.parallel_for((columns + kColumns - 1) / kColumns, [&](int64_t i) {
        fft_.transform(block.data() + i * kColumns, std::min(kColumns, columns - i * kColumns), columns, sign);
      });
    };
    if (from_mesh) {
      pool_.parallel_for(n, [&](int64_t z) { mesh_.read(z, begin * modes * 2, columns * 2, floats + z * columns * 2); });
      transform(FftSign::Forward);
    }
    pool_.parallel_for(n, [&](int64_t z) {
      for (int64_t row = 0; row < rows; ++row) {
        edit(signed_wave(z, n), signed_wave(begin + row, n), block.data() + z * columns + row * modes);
      }
    });
    transform(FftSign::Inverse);
    pool_.parallel_for(n, [&](int64_t z) { mesh_.write(z, begin * modes * 2, columns * 2, floats + z * columns * 2); });
  }
}

void BoxFft::filter(const EditRow& edit) { along_first_axis(edit, true); }

void BoxFft::synthesise(const EditRow& fill) { along_first_axis(fill, false); }

}  // namespace welkin::data::simulate
