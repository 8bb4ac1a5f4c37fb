// SPDX-License-Identifier: Apache-2.0
// Chooses the chunks: recommended by the shape of a read, and measured where the output goes.
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/tools/convert_plan.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kCropEdge = 64;
constexpr int64_t kChunkTarget = int64_t{4} << 20;   // bytes of a chunk, at most
constexpr int64_t kSampleValues = int64_t{4} << 20;  // converted for each candidate
constexpr auto kReadTime = std::chrono::milliseconds(200);

int64_t product(const Extents& extents) {
  int64_t result = 1;
  for (const int64_t extent : extents) result *= extent;
  return result;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A corner of the array of about kSampleValues: whole trailing axes, few of the leading one.
ArrayRegion corner_of(const Extents& shape) {
  ArrayRegion region = whole_region(shape);
  for (size_t d = 0; d < shape.size() && region.num_values() > kSampleValues; ++d) {
    const int64_t rest = region.num_values() / region.end[d];
    region.end[d] = std::clamp<int64_t>(kSampleValues / std::max<int64_t>(1, rest), std::min<int64_t>(shape[d], 2), shape[d]);
  }
  return region;
}

std::vector<Extents> candidates_for(const ArrayFacts& facts, Dtype dtype) {
  const Extents base = recommended_chunk(facts, dtype);
  std::vector<Extents> candidates{base};
  for (const int64_t factor : {2, -2}) {
    Extents other = base;
    for (size_t d = 0; d < other.size(); ++d) {
      if (other[d] < 4) continue;  // single times and few channels stay together
      other[d] = std::clamp<int64_t>(factor > 0 ? other[d] * 2 : other[d] / 2, 1, facts.shape[d]);
    }
    if (std::ranges::count(candidates, other) == 0 &&
        product(other) * static_cast<int64_t>(dtype_bytes(dtype)) <= 4 * kChunkTarget) {
      candidates.push_back(other);
    }
  }
  return candidates;
}

// Reads of the shape of `extent` at drawn places, until the time is over. Values per second, and values decoded per value wanted.
void measure_reads(const StoredArray& array, Extents extent, ProbeRow& row) {
  const Extents& shape = array.facts().shape;
  for (size_t d = 0; d < shape.size(); ++d) extent[d] = std::min(extent[d], shape[d]);
  std::vector<float> values(static_cast<size_t>(product(extent)));
  double wanted = 0, decoded = 0;
  const auto start = Clock::now();
  for (uint64_t i = 0; i == 0 || Clock::now() - start < kReadTime; ++i) {
    ArrayRegion region{Extents(shape.size()), Extents(shape.size())};
    for (size_t d = 0; d < shape.size(); ++d) {
      const PhiloxBlock words = philox(i, d, 0);
      region.begin[d] = static_cast<int64_t>(bounded(words[0], words[1], static_cast<uint64_t>(shape[d] - extent[d] + 1)));
      region.end[d] = region.begin[d] + extent[d];
    }
    array.read(region, values);
    wanted += static_cast<double>(values.size());
    decoded += static_cast<double>(array.pieces(region).size()) * static_cast<double>(product(array.facts().chunk));
  }
  row.read_mb_s = wanted * 4e-6 / seconds_since(start);
  row.amplification = decoded / wanted;
}

ProbeRow probe_one(const StoredArray& from, OutputArray array, const ConvertOptions& options, const fs::path& folder) {
  ProbeRow row{.array = array.name, .chunk = array.chunk};
  const Conversion conversion{StoredArrayPtr(StoredArrayPtr(), &from), corner_of(from.facts().shape), {}};
  array.shape = conversion.region.extent();
  if (array.dtype == Dtype::I16) array.dtype = Dtype::F32;  // unpacked values: the scale is not needed to compare chunks
  for (size_t d = 0; d < array.chunk.size(); ++d) array.chunk[d] = std::min(array.chunk[d], array.shape[d]);
  array.attributes.clear();
  OutputFile output{.arrays = {array}, .attributes = {}, .small = {}};
  const fs::path path = folder / "probe";
  fs::remove_all(path);
  const auto start = Clock::now();
  const auto writer = make_writer(path, options.format, output);
  write_array(conversion, 0, array, options.block_bytes, *writer);
  writer->finish();
  row.write_mb_s = static_cast<double>(stored_bytes(array)) * 1e-6 / seconds_since(start);
  const ArrayFile file = open_array_file(path);
  uint64_t bytes = 0;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path)) bytes += entry.is_regular_file() ? entry.file_size() : 0;
  } else {
    bytes = fs::file_size(path);
  }
  row.ratio = static_cast<double>(stored_bytes(array)) / static_cast<double>(std::max<uint64_t>(1, bytes));
  measure_reads(*file.array(array.name), read_shape(from.facts()), row);
  return row;
}

}  // namespace

Extents read_shape(const ArrayFacts& facts) {
  Extents shape = facts.shape;
  const auto channel = channel_axis(facts);
  if (facts.shape.size() == 4 && channel == 1) {
    shape[0] = 1;
  } else if (facts.shape.size() == 4 && channel) {
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = d == *channel ? shape[d] : std::min(shape[d], kCropEdge);
  } else if (shape.size() > 1) {
    shape[0] = 1;
  }
  return shape;
}

Extents recommended_chunk(const ArrayFacts& facts, Dtype dtype) {
  Extents chunk = read_shape(facts);
  const auto channel = channel_axis(facts);
  const bool is_box = facts.shape.size() == 4 && channel && *channel != 1;
  // A crop starts anywhere: half its edge wastes least between too many chunks and too much of each.
  if (is_box) {
    for (size_t d = 0; d < chunk.size(); ++d) chunk[d] = d == *channel ? chunk[d] : std::min(chunk[d], kCropEdge / 2);
  }
  const int64_t width = static_cast<int64_t>(dtype_bytes(dtype));
  for (size_t d = 0; d < chunk.size(); ++d) {
    while (product(chunk) * width > kChunkTarget && chunk[d] > 1) chunk[d] = (chunk[d] + 1) / 2;
  }
  return chunk;
}

Extents probe_chunks(const StoredArray& from, const OutputArray& array, const ConvertOptions& options, const fs::path& to,
                     ConvertReport& report) {
  std::string pattern = (to.parent_path() / ".welkin-probe.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw file_error("create a folder beside", to, errno);
  const fs::path folder = pattern;
  std::vector<ProbeRow> rows;
  try {
    for (const Extents& chunk : candidates_for(from.facts(), array.dtype)) {
      OutputArray candidate = array;
      candidate.chunk = chunk;
      rows.push_back(probe_one(from, std::move(candidate), options, folder));
    }
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  fs::remove_all(folder);
  const auto best = std::ranges::max_element(rows, {}, &ProbeRow::read_mb_s);
  best->chosen = true;
  Extents chunk = best->chunk;
  report.probes.insert(report.probes.end(), rows.begin(), rows.end());
  return chunk;
}

}  // namespace welkin::data
