// SPDX-License-Identifier: Apache-2.0
// The three-dimensional Fourier transform of a periodic cube of real values that may lie in a file: planes first (axes 1 and 2),
// then blocks of columns along axis 0. Memory is bounded; values do not depend on how much of it there is, nor on the threads.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>

#include "core/process/thread_pool.h"
#include "data/simulate/fft.h"
#include "data/simulate/universe/plane_store.h"

namespace welkin::data::simulate {

// Values of a plane of the cube's store: real rows (edge, edge) before forward_planes and after inverse_planes, else complex rows
// (edge, edge / 2 + 1) of the non-negative wave numbers of axis 2.
constexpr int64_t mesh_plane_values(int64_t edge) { return edge * (edge / 2 + 1) * 2; }

// Wave number of a place in a transform: 0 .. n/2, then negative.
constexpr int64_t signed_wave(int64_t index, int64_t n) { return index <= n / 2 ? index : index - n; }

class BoxFft {
 public:
  // `mesh` has `edge` planes of mesh_plane_values(edge), edge even. `window_bytes` bounds the buffers; both outlive the object.
  BoxFft(PlaneStore& mesh, ThreadPool& pool, int64_t window_bytes);

  // A row of modes: wave numbers (k0, k1) fixed, axis 2 from 0 to edge / 2.
  using EditRow = std::function<void(int64_t k0, int64_t k1, std::complex<float>* row)>;

  void forward_planes();
  void inverse_planes();
  // Along axis 0: transform, edit every row of modes, transform back. Nothing divides by edge^3: edit() does.
  void filter(const EditRow& edit);
  // Takes the modes that `fill` writes, then transforms back along axis 0.
  void synthesise(const EditRow& fill);

 private:
  void for_planes(const std::function<void(float*)>& change);
  void along_first_axis(const EditRow& edit, bool from_mesh);
  void forward_plane(float* plane) const;
  void inverse_plane(float* plane) const;

  PlaneStore& mesh_;
  ThreadPool& pool_;
  int64_t window_bytes_;
  int64_t edge_;
  Fft<float> fft_;
};

}  // namespace welkin::data::simulate
