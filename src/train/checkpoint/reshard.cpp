// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/reshard.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "parallel/shard/memory_split.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/format/stored_tensor.h"
#include "train/checkpoint/format/tensor_pieces.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// The groups with values per parameter: the others hold a run's scalars and pictures.
constexpr std::array<std::string_view, 3> kGroupsToCut{"model", "optimizer", kAverageGroup};

struct Source {
  std::string group, name, stored;  // `name` within its group
  at::ScalarType type;
  std::vector<int64_t> shape;
  bool is_cut;
};

// A tensor of shape and type alone.
at::Tensor described(const std::vector<int64_t>& shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).device(at::kMeta));
}

std::vector<Source> sources_in(const CheckpointIndex& index, int64_t shards) {
  std::vector<Source> sources;
  for (const auto& [stored, record] : index.tensors) {
    const std::string group = group_of_file(record.file);
    const auto dtype = dtype_of_name(record.dtype);
    if (!dtype) {
      throw CheckpointError("checkpoint", cat("unknown element type: tensor=", stored, ", dtype=", record.dtype),
                            "Use a newer version of welkin");
    }
    const std::string prefix = group == "model" ? "" : group + ".";
    const bool is_of_parameter = std::ranges::find(kGroupsToCut, group) != kGroupsToCut.end() && !record.shape.empty();
    sources.push_back({.group = group,
                       .name = stored.starts_with(prefix) ? stored.substr(prefix.size()) : stored,
                       .stored = stored,
                       .type = tensor_dtype(*dtype),
                       .shape = record.shape,
                       .is_cut = shards > 1 && is_of_parameter});
  }
  return sources;
}

PieceLayout row_major(size_t dims) {
  PieceLayout layout{.order = std::vector<int64_t>(dims)};
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

using Groups = std::map<std::string, CheckpointGroup>;

void add(Groups& groups, const Source& source, CheckpointTensor tensor) {
  CheckpointGroup& group = groups[source.group];
  group.name = source.group;
  group.tensors.push_back(std::move(tensor));
}

std::vector<CheckpointGroup> listed(Groups groups) {
  std::vector<CheckpointGroup> all;
  for (auto& [name, group] : groups) all.push_back(std::move(group));
  return all;
}

// Tensors that are written whole. A group keeps its file if all of its tensors are cut, as in a run.
std::vector<CheckpointGroup> whole_groups(const Checkpoint& checkpoint, const std::vector<Source>& sources) {
  Groups groups;
  for (const Source& source : sources) {
    groups[source.group].name = source.group;
    if (source.is_cut) continue;
    add(groups, source, {.name = source.name, .value = described(source.shape, source.type), .fetch = [&checkpoint, &source] {
                           return checkpoint.read(source.stored);
                         }});
  }
  return listed(std::move(groups));
}

std::vector<CheckpointGroup> groups_of_rank(const Checkpoint& checkpoint, const std::vector<Source>& sources, int64_t shards,
                                            int64_t rank) {
  Groups groups;
  for (const Source& source : sources) {
    if (!source.is_cut) continue;
    const parallel::MemorySplit split(described(source.shape, source.type), shards);
    const int64_t count = split.numel(rank);
    if (count == 0) continue;
    const PiecePlace place{.whole_shape = source.shape, .layout = row_major(source.shape.size()), .begin = split.offset(rank)};
    add(groups, source,
        {.name = source.name,
         .value = described({count}, source.type),
         .placement = "pieces",
         .piece = place,
         .fetch = [&checkpoint, &source, place, count] {
           return checkpoint.read_piece(source.stored, place, count, source.type);
         }});
  }
  return listed(std::move(groups));
}

}  // namespace

ReshardReport reshard(const Checkpoint& source, int64_t shards, const fs::path& target) {
  if (fs::exists(target)) {
    throw CheckpointError("checkpoint", cat("the path exists already: path=", target.string()),
                          "Name a folder that does not exist");
  }
  CheckpointIndex index = source.index();
  index.files.clear();
  index.tensors.clear();
  const std::vector<Source> sources = sources_in(source.index(), shards);
  try {
    make_folders(fs::absolute(target).parent_path());
    const AsideFolder aside(target);
    write_files(aside.path(), index, whole_groups(source, sources));
    for (int64_t rank = 0; rank < shards && shards > 1; ++rank) {
      CheckpointIndex part;
      write_files(aside.path(), part, groups_of_rank(source, sources, shards, rank), rank);
      add_records(index, part);
    }
    finish_records(index);
    write_file_atomically(aside.path() / "index.json", to_json(index));
    publish_folder(aside.path(), target);
  } catch (const DataError& error) {
    throw cannot_be_saved(target, index.position.iteration, error.what());
  }
  return {.tensors = static_cast<int64_t>(sources.size()), .cut = std::ranges::count(sources, true, &Source::is_cut)};
}

}  // namespace welkin::train
