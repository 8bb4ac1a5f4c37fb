// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/field_source.h"

#include "core/error.h"
#include "core/text.h"
#include "data/cf/archive.h"
#include "data/formats/check_arrays.h"

namespace welkin::data {
namespace {

void check_no_choice(const FieldSource& source) {
  if (source.times.empty() && source.levels.empty()) return;
  throw ConfigError("data",
                    cat("levels and times are chosen of an archive of variables: folder=", source.folder.string(), ", levels=[",
                        join(source.levels, ", "), "], ", source.times_key, "=[", join(source.times, ", "), "]"),
                    "Name its variables as well, or leave these out");
}

FieldFiles open_archive_files(const FieldSource& source, const std::shared_ptr<ChunkCache>& cache) {
  Archive archive = open_archive({.path = source.folder,
                                  .variables = source.variables,
                                  .levels = source.levels,
                                  .times = source.times,
                                  .times_key = source.times_key,
                                  .time_keys = source.time_keys},
                                 cache);
  FieldFiles result{.files = {}, .paths = std::move(archive.files)};
  for (const ArrayFile& part : archive.parts) result.files.push_back(std::make_unique<FieldFile>(part, source.time_keys));
  return result;
}

}  // namespace

FieldFiles open_field_files(const FieldSource& source) {
  const auto cache = std::make_shared<ChunkCache>(kChunkCacheBytes);
  if (!source.variables.empty()) return open_archive_files(source, cache);
  check_no_choice(source);
  FieldFiles result{.files = {}, .paths = list_field_files(source.folder)};
  check_array_files(result.paths);
  for (const auto& path : result.paths) result.files.push_back(std::make_unique<FieldFile>(path, cache, source.time_keys));
  return result;
}

std::unique_ptr<FieldFile> open_first_field_file(const FieldSource& source) {
  if (!source.variables.empty()) return std::move(open_field_files(source).files.front());
  return std::make_unique<FieldFile>(list_field_files(source.folder).front(), nullptr, source.time_keys);
}

}  // namespace welkin::data
