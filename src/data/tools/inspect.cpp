// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/archive/safetensors.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/formats/npy_file.h"
#include "data/formats/sidecar.h"
#include "data/storage/watched_file.h"
#include "data/tools/inspect_fields.h"
#include "data/tools/inspect_genericio.h"
#include "data/tools/inspect_hdf5.h"
#include "observe/log/table.h"

namespace welkin::data {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return cat("(", join(shape, ", "), ")"); }

std::string inspect_npy(const std::filesystem::path& path, const InspectOptions& options) {
  const NpyFile file(path);
  const NpyHeader& header = file.header();
  const int64_t values = header.num_values();
  std::string text =
      cat("npy, ", format_bytes(file.file().size()), "\n", shape_text(header.shape), "  ", dtype_name(header.dtype),
          header.big_endian ? " big-endian" : "", header.fortran_order ? "  Fortran order" : "  C order", "\n");
  constexpr int64_t kPieces = 16;
  const int64_t piece = std::min(values, std::max<int64_t>(1, options.most_sampled_values / kPieces));
  RunningMoments moments;
  const int64_t num_pieces = values <= options.most_sampled_values ? (piece == 0 ? 0 : (values + piece - 1) / piece) : kPieces;
  for (int64_t i = 0; i < num_pieces; ++i) {
    const int64_t first = num_pieces == 1 ? 0 : (values - piece) * i / (num_pieces - 1);
    const std::vector<double> run = file.read_run(first, piece);
    const std::vector<float> floats(run.begin(), run.end());
    moments.add(floats);
  }
  return text + "values" + (values > options.most_sampled_values ? " of a sample: " : ": ") + moments_text(moments) + "\n";
}

template <typename T>
void add_bytes(std::span<const std::byte> bytes, RunningMoments& moments) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  moments.add(values);
}

std::string tensor_range(const SafetensorsFile& file, const std::string& name, const InspectOptions& options) {
  const TensorInfo& info = file.info(name);
  auto bytes = file.bytes(name);
  const auto most = static_cast<size_t>(options.most_sampled_values) * dtype_bytes(info.dtype);
  bytes = bytes.first(std::min(bytes.size(), most));
  RunningMoments moments;
  if (info.dtype == Dtype::F32) {
    add_bytes<float>(bytes, moments);
  } else if (info.dtype == Dtype::F64) {
    add_bytes<double>(bytes, moments);
  } else if (info.dtype == Dtype::I64) {
    add_bytes<int64_t>(bytes, moments);
  } else {
    return "";
  }
  return moments_text(moments);
}

std::string inspect_safetensors(const std::filesystem::path& path, const InspectOptions& options) {
  const SafetensorsFile file(path);
  std::string text =
      cat("safetensors, ", format_bytes(std::filesystem::file_size(path)), ", ", file.names().size(), " tensors\n");
  for (const auto& [key, value] : file.metadata()) text += cat("  ", printable(key), " = ", printable(value), "\n");
  observe::Table table({{"tensor"}, {"shape"}, {"dtype"}, {"values"}});
  int64_t rows = 0;
  for (const std::string& name : file.names()) {
    if (rows++ == options.most_datasets) break;
    const TensorInfo& info = file.info(name);
    table.add_row(
        {printable(name), shape_text(info.shape), std::string(dtype_name(info.dtype)), tensor_range(file, name, options)});
  }
  if (rows > options.most_datasets) table.add_row({"...", "", "", ""});
  return text + table.text();
}

enum class FileFormat { Hdf5, Npy, Safetensors, Unknown };

// HDF5's signature may stand behind a user block of 512, 1024, ... bytes.
FileFormat format_of(const std::filesystem::path& path) {
  const WatchedFile file(path);
  std::array<std::byte, 16> head{};
  const auto starts_with = [&](uint64_t offset, std::string_view magic) {
    if (file.size() < offset + head.size()) return false;
    file.read(offset, head);
    return std::memcmp(head.data(), magic.data(), magic.size()) == 0;
  };
  if (starts_with(0, "\x93NUMPY")) return FileFormat::Npy;
  for (uint64_t offset = 0; offset < file.size() && offset <= (1u << 20); offset = offset == 0 ? 512 : offset * 2) {
    if (starts_with(offset, "\x89HDF\r\n\x1a\n")) return FileFormat::Hdf5;
  }
  // A little-endian header length below 100 MB, then the brace of its JSON.
  if (starts_with(0, "") && head[8] == std::byte{'{'} && head[7] == std::byte{0} && head[4] == std::byte{0}) {
    return FileFormat::Safetensors;
  }
  return FileFormat::Unknown;
}

}  // namespace

std::string moments_text(const RunningMoments& moments, Missing missing) {
  if (moments.count() == 0 && moments.num_nonfinite() == 0) return "none";
  const std::string_view others = missing != Missing::None ? "missing " : "NaN or infinite ";
  if (moments.count() == 0) return cat("none, ", others, moments.num_nonfinite());
  std::string text = cat("min ", moments.min(), ", max ", moments.max(), ", mean ", static_cast<float>(moments.mean()), ", std ",
                         static_cast<float>(moments.std()));
  if (moments.num_nonfinite() > 0) text += cat(", ", others, moments.num_nonfinite());
  return text;
}

std::string inspect_file(const std::filesystem::path& path, const InspectOptions& options) {
  const std::string head = cat(path.string(), ": ");
  switch (field_format_of(path)) {
    case FieldFormat::Fields:
      return head + inspect_fields(path, options);
    case FieldFormat::Particles:
      return head + inspect_genericio(path, options);
    case FieldFormat::Folder:
      return head + inspect_folder(path, options);
    case FieldFormat::None:
      break;
  }
  const ArrayFormat arrays = array_format_of(path);
  if (arrays == ArrayFormat::Npy && read_sidecar(path)) return head + inspect_arrays(path, options);
  if (arrays != ArrayFormat::Unknown && arrays != ArrayFormat::Hdf5 && arrays != ArrayFormat::Npy) {
    return head + inspect_arrays(path, options);
  }
  switch (format_of(path)) {
    case FileFormat::Hdf5:
      return head + inspect_hdf5(path, options);
    case FileFormat::Npy:
      return head + inspect_npy(path, options);
    case FileFormat::Safetensors:
      return head + inspect_safetensors(path, options);
    case FileFormat::Unknown:
      break;
  }
  throw DataError("data",
                  cat("not a known format: path=", path.string(),
                      ", known=HDF5, netCDF, GRIB, GenericIO, npy, Zarr, WebDataset tar, LMDB, raw with a sidecar, safetensors"),
                  "Check that the file is complete");
}

}  // namespace welkin::data
