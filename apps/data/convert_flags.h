// SPDX-License-Identifier: Apache-2.0
// The flags of `welkin data convert`; convert.cpp acts on them.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/tools/convert.h"

namespace welkin::apps {

// Flags as typed; converted to the library's options after parsing.
struct ConvertFlags {
  std::string from, to, format, chunk, compress = "none", dtype = "keep", region;
};

inline const std::map<std::string, data::OutputFormat>& output_formats() {
  using data::OutputFormat;
  static const std::map<std::string, OutputFormat> formats{
      {"hdf5", OutputFormat::Hdf5}, {"zarr2", OutputFormat::Zarr2},    {"zarr3", OutputFormat::Zarr3}, {"npy", OutputFormat::Npy},
      {"raw", OutputFormat::Raw},   {"webdataset", OutputFormat::Tar}, {"lmdb", OutputFormat::Lmdb}};
  return formats;
}

inline int64_t parse_size(std::string_view text, std::string_view flag) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc{} && end == text.data() + text.size() && value >= 0) return value;
  throw ConfigError("data convert", cat("not a size: ", flag, "=", text), "Give whole numbers, for example --chunk 1,20,360,720");
}

inline std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

inline data::Extents parse_chunk(const std::string& text) {
  data::Extents chunk;
  for (const std::string& part : split_at(text, ',')) {
    chunk.push_back(parse_size(part, "--chunk"));
    if (chunk.back() == 0)
      throw ConfigError("data convert", cat("a chunk of no size: --chunk=", text), "Give sizes from 1 on, or auto");
  }
  return chunk;
}

// Parses "0:4,:,10:20". An empty begin is 0, an empty end is the end of the axis.
inline data::ArrayRegion parse_region(const std::string& text) {
  data::ArrayRegion region;
  for (const std::string& part : split_at(text, ',')) {
    const auto range = split_at(part, ':');
    if (range.size() != 2)
      throw ConfigError("data convert", cat("not a region: --region=", text),
                        "Give begin:end for each axis, for example 0:4,:,10:20");
    region.begin.push_back(range[0].empty() ? 0 : parse_size(range[0], "--region"));
    region.end.push_back(range[1].empty() ? -1 : parse_size(range[1], "--region"));
  }
  return region;
}

inline void apply_convert_flags(const ConvertFlags& flags, data::ConvertOptions& options) {
  options.format = output_formats().at(flags.format);
  if (flags.chunk == "auto") options.auto_chunk = true;
  if (!flags.chunk.empty() && flags.chunk != "auto") options.chunk = parse_chunk(flags.chunk);
  if (!flags.region.empty()) options.region = parse_region(flags.region);
  const std::map<std::string, data::CodecKind> codecs{{"gzip", data::CodecKind::Gzip},
                                                      {"zstd", data::CodecKind::Zstd},
                                                      {"blosc", data::CodecKind::Blosc},
                                                      {"lz4", data::CodecKind::Lz4}};
  if (flags.compress != "none") options.compress = codecs.at(flags.compress);
  const std::map<std::string, Dtype> dtypes{
      {"float64", Dtype::F64}, {"float32", Dtype::F32}, {"float16", Dtype::F16}, {"bfloat16", Dtype::BF16}};
  if (flags.dtype == "int16") {
    options.packed = true;
  } else if (flags.dtype != "keep") {
    options.dtype = dtypes.at(flags.dtype);
  }
}

inline void add_convert_flags(CLI::App& app, ConvertFlags& flags, data::ConvertOptions& options) {
  std::vector<std::string> formats;
  for (const auto& [name, format] : output_formats()) formats.push_back(name);
  app.add_option("IN", flags.from, "file or folder to read")->required();
  app.add_option("OUT", flags.to, "file or folder to make; it must not exist")->required();
  app.add_option("--format", flags.format, "format of OUT")->required()->check(CLI::IsMember(formats));
  app.add_option("--array", options.arrays, "convert only these arrays (may be repeated)");
  app.add_option("--dtype", flags.dtype, "type of stored values; int16 is scaled, one scale per channel")
      ->capture_default_str()
      ->check(CLI::IsMember({"keep", "float64", "float32", "float16", "bfloat16", "int16"}));
  app.add_option(
      "--chunk", flags.chunk,
      "hdf5 and zarr: auto (recommended by the shape of a read and measured beside OUT) or one size per axis: 1,20,360,720");
  app.add_option("--compress", flags.compress, "compressor of the chunks")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "gzip", "zstd", "blosc", "lz4"}));
  app.add_option("--level", options.level, "level of the compressor (default: a fast one)")->check(CLI::Range(0, 22));
  app.add_option("--region", flags.region,
                 "only this part of arrays of that many axes: begin:end,...; coordinates are cut along");
}

}  // namespace welkin::apps
