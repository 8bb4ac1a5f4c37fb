// SPDX-License-Identifier: Apache-2.0
#include "data_files.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/formats/npy_file.h"

namespace welkin::bench {
namespace {

using data::Extents;
using data::Hdf5File;

// One row of a smooth field with noise in its last bits.
void fill_row(int64_t channel, int64_t plane, int64_t row, std::vector<float>& values) {
  const double phase = 0.7 * static_cast<double>(channel) + 0.05 * static_cast<double>(plane) + 0.03 * static_cast<double>(row);
  uint32_t noise = static_cast<uint32_t>(channel * 7919 + plane * 104729 + row * 1299709);
  for (size_t i = 0; i < values.size(); ++i) {
    noise = noise * 1664525u + 1013904223u;
    values[i] = static_cast<float>(std::sin(phase + 0.02 * static_cast<double>(i)) + 1e-3 * static_cast<double>(noise >> 24));
  }
}

void write_box(Hdf5File& file, const std::string& name, int64_t channels, int64_t edge, int64_t chunk, int deflate) {
  const Extents chunks = chunk == 0 ? Extents{} : Extents{1, chunk, chunk, chunk};
  file.create_dataset(name, {.shape = {channels, edge, edge, edge}, .chunk = chunks, .deflate = deflate});
  const int64_t slab = chunk == 0 ? 1 : chunk;  // whole chunks at once
  std::vector<float> row(static_cast<size_t>(edge));
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t d = 0; d < edge; d += slab) {
      const int64_t planes = std::min(slab, edge - d);
      std::vector<float> values;
      for (int64_t r = 0; r < planes * edge; ++r) {
        fill_row(c, d + r / edge, r % edge, row);
        values.insert(values.end(), row.begin(), row.end());
      }
      file.write(name, {c, d, 0, 0}, {1, planes, edge, edge}, std::span<const float>(values));
    }
  }
}

}  // namespace

void write_box_hdf5(const std::filesystem::path& path, int64_t edge, int64_t chunk, int deflate) {
  write_path_atomically(path, [&](const std::filesystem::path& temporary) {
    Hdf5File file = Hdf5File::create(temporary);
    write_box(file, "Nbody", 4, edge, chunk, deflate);
    write_box(file, "Hydro", 5, edge, chunk, deflate);
    file.close();
  });
}

void write_box_npy(const std::filesystem::path& path, int64_t edge, int64_t channels) {
  write_path_atomically(path, [&](const std::filesystem::path& temporary) {
    data::NpyWriter writer(temporary, Dtype::F32, {edge, edge, edge, channels});
    std::vector<float> row(static_cast<size_t>(edge)), cells(static_cast<size_t>(edge * channels));
    for (int64_t r = 0; r < edge * edge; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        fill_row(c, r / edge, r % edge, row);
        for (int64_t i = 0; i < edge; ++i) cells[static_cast<size_t>(i * channels + c)] = row[static_cast<size_t>(i)];
      }
      writer.append(std::span<const float>(cells));
    }
    writer.close();
  });
}

void write_years(const std::filesystem::path& folder, int64_t years, int64_t steps, int64_t channels, int64_t height,
                 int64_t width) {
  make_folders(folder);
  std::vector<float> row(static_cast<size_t>(width)), values;
  for (int64_t year = 0; year < years; ++year) {
    char name[32];
    std::snprintf(name, sizeof name, "y%04d.h5", static_cast<int>(year));
    write_path_atomically(folder / name, [&](const std::filesystem::path& temporary) {
      Hdf5File file = Hdf5File::create(temporary);
      file.create_dataset("fields", {.shape = {steps, channels, height, width}, .chunk = {}});
      for (int64_t t = 0; t < steps; ++t) {
        values.clear();
        for (int64_t r = 0; r < channels * height; ++r) {
          fill_row(r / height, year * steps + t, r % height, row);
          values.insert(values.end(), row.begin(), row.end());
        }
        file.write("fields", {t, 0, 0, 0}, {1, channels, height, width}, std::span<const float>(values));
      }
      file.close();
    });
  }
  const std::vector<float> means(static_cast<size_t>(channels), 0.1f), stds(static_cast<size_t>(channels), 0.75f);
  data::write_npy(folder / "means.npy", {1, channels, 1, 1}, means);
  data::write_npy(folder / "stds.npy", {1, channels, 1, 1}, stds);
}

}  // namespace welkin::bench
