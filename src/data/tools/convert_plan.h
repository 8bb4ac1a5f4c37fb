// SPDX-License-Identifier: Apache-2.0
// Internal to convert*.cpp: the plan of a conversion, array by array. Torch-free.
#pragma once

#include <memory>
#include <vector>

#include "data/formats/array_writer.h"
#include "data/tools/convert.h"

namespace welkin::data {

// The conversion of one array: `region` of `from` becomes the output's array of the same number.
struct Conversion {
  StoredArrayPtr from;
  ArrayRegion region;
  std::optional<Packing> packing;  // of the output
};

struct ConvertPlan {
  OutputFile output;
  std::vector<Conversion> conversions;
};

ConvertPlan plan_conversion(const ArrayFile& file, const ConvertOptions& options, ConvertReport& report);

// The channel axis of an array: 1 for (time, channel, lat, lon), 0 for boxes; nullopt where there is none.
std::optional<size_t> channel_axis(const ArrayFacts& facts);

// True for the boxes of `nbody`: by their names, or by the attribute `periodic`.
bool is_box(const ArrayFile& file, const ArrayFacts& facts);

// Measures candidates for the chunks of `from` beside `to`, adds the rows and returns the one that is read fastest.
Extents probe_chunks(const StoredArray& from, const OutputArray& array, const ConvertOptions& options,
                     const std::filesystem::path& to, ConvertReport& report);

std::vector<Codec> codecs_for(const ConvertOptions& options, Dtype dtype);
bool is_chunked(OutputFormat format);
std::unique_ptr<ArrayWriter> make_writer(const std::filesystem::path& path, OutputFormat format, const OutputFile& output);

// An array cut into blocks of about that many values, in row-major order: multiples of the chunk, growing from the last axis on.
std::vector<ArrayRegion> blocks_of(const Extents& shape, const Extents& chunk, uint64_t most_values);

// All of a conversion's values, block by block into the writer.
void write_array(const Conversion& conversion, size_t index, const OutputArray& array, uint64_t block_bytes, ArrayWriter& writer);
void write_samples(const ConvertPlan& plan, uint64_t block_bytes, ArrayWriter& writer);

}  // namespace welkin::data
