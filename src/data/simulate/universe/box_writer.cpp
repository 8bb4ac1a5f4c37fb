// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/box_writer.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/file.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/formats/npy_file.h"

namespace welkin::data::simulate {
namespace {

namespace fs = std::filesystem;

Hdf5File create_box(const fs::path& path, int64_t edge, const BoxScaling& scaling, const Provenance& provenance) {
  Hdf5File file = Hdf5File::create(path);
  file.create_dataset("Nbody", {.type = Hdf5Type::Float32, .shape = {kNbodyChannels, edge, edge, edge}, .chunk = {}});
  file.create_dataset("Hydro", {.type = Hdf5Type::Float32, .shape = {kHydroChannels, edge, edge, edge}, .chunk = {}});
  file.set_strings("Nbody", "channels", nbody_channel_names());
  file.set_strings("Nbody", "units", nbody_channel_units(scaling));
  file.set_strings("Hydro", "channels", hydro_channel_names());
  file.set_strings("Hydro", "units", hydro_channel_units(scaling));
  write_provenance(file, provenance);
  return file;
}

// (channel, cells) -> (cells, channel), one plane at a time.
void append_channel_last(NpyWriter& writer, std::span<const float> values, int64_t channels, int64_t planes) {
  const int64_t cells = static_cast<int64_t>(values.size()) / channels, area = cells / planes;
  std::vector<float> interleaved(static_cast<size_t>(area * channels));
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t i = 0; i < area; ++i) {
      for (int64_t c = 0; c < channels; ++c)
        interleaved[static_cast<size_t>(i * channels + c)] = values[static_cast<size_t>(c * cells + p * area + i)];
    }
    writer.append(std::span<const float>(interleaved));
  }
}

void write_slabs(const BoxFields& fields, int64_t edge, Hdf5File& file, NpyWriter* data, NpyWriter* label) {
  BoxSlab slab;
  for (int64_t first = 0; first < edge; first += fields.planes_together()) {
    fields.compute(first, std::min(fields.planes_together(), edge - first), slab);
    file.write("Nbody", {0, first, 0, 0}, {kNbodyChannels, slab.planes, edge, edge}, std::span<const float>(slab.nbody));
    file.write("Hydro", {0, first, 0, 0}, {kHydroChannels, slab.planes, edge, edge}, std::span<const float>(slab.hydro));
    if (data != nullptr) append_channel_last(*data, slab.nbody, kNbodyChannels, slab.planes);
    if (label != nullptr) append_channel_last(*label, slab.hydro, kHydroChannels, slab.planes);
  }
  file.close();
}

}  // namespace

void write_box(const BoxTarget& target, const BoxFields& fields, int64_t edge, const BoxScaling& scaling,
               const Provenance& provenance) {
  const fs::path hdf5 = target.folder / (target.stem + ".h5");
  if (!target.npy) {
    write_path_atomically(hdf5, [&](const fs::path& path) {
      Hdf5File file = create_box(path, edge, scaling, provenance);
      write_slabs(fields, edge, file, nullptr, nullptr);
    });
    return;
  }
  // The three files grow together, so that each slab is computed once; the innermost is renamed first.
  write_path_atomically(hdf5, [&](const fs::path& hdf5_path) {
    write_path_atomically(target.folder / (target.stem + "_label.npy"), [&](const fs::path& label_path) {
      write_path_atomically(target.folder / (target.stem + "_data.npy"), [&](const fs::path& data_path) {
        Hdf5File file = create_box(hdf5_path, edge, scaling, provenance);
        NpyWriter data(data_path, Dtype::F32, {edge, edge, edge, kNbodyChannels});
        NpyWriter label(label_path, Dtype::F32, {edge, edge, edge, kHydroChannels});
        write_slabs(fields, edge, file, &data, &label);
        data.close();
        label.close();
      });
    });
  });
}

}  // namespace welkin::data::simulate
