// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/gathered_checkpoint.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/format/checkpoint_index.h"
#include "train/checkpoint/staged_tensors.h"
#include "train/nodes/folder_stream.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "index.json";
constexpr uint64_t kLargestGatheredIndex = uint64_t{256} << 20;

// The files of a checkpoint on a node's disk.
struct Inventory {
  std::string index_hash;                 // empty: no usable checkpoint
  std::map<std::string, int64_t> wanted;  // bytes of each file that belongs to it
  std::set<std::string> good;             // of these, with the index
  std::vector<std::string> damage;        // texts of errors
};

// `is_shared`: a missing file is no damage.
void look_at(const fs::path& folder, const std::string& name, const StoredFile& file, bool is_shared, Inventory& found) {
  found.wanted[name] = static_cast<int64_t>(file.bytes);
  std::error_code missing;
  const uint64_t bytes = fs::file_size(folder / name, missing);
  if (missing) {
    if (is_shared) return;
    found.damage.push_back(cat("a file is missing: path=", (folder / name).string()));
  } else if (bytes != file.bytes) {
    found.damage.push_back(
        cat("a file has the wrong size: path=", (folder / name).string(), ", bytes=", bytes, ", expected=", file.bytes));
  } else if (xxh3_64_of_file(folder / name) != file.xxh3) {
    found.damage.push_back(cat("a file is damaged: path=", (folder / name).string()));
  } else {
    found.good.insert(name);
  }
}

Inventory inventory_of(const fs::path& folder) {
  Inventory found;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return found;
  try {
    const std::string text = read_file(folder / kIndex, kLargestGatheredIndex);
    const CheckpointIndex index = parse_checkpoint_index(text, (folder / kIndex).string());
    const bool is_shared = std::ranges::any_of(index.files, [](const auto& file) { return is_of_one_rank(file.first); });
    for (const auto& [name, file] : index.files) look_at(folder, name, file, is_shared, found);
    found.wanted[kIndex] = static_cast<int64_t>(text.size());
    found.good.insert(kIndex);
    found.index_hash = hex_digits(xxh3_64(as_byte_span(text)));
  } catch (const Error& error) {
    found = {};
    found.damage.emplace_back(error.what());
  }
  return found;
}

std::string to_text(const Inventory& found) {
  return json{{"index", found.index_hash}, {"wanted", found.wanted}, {"good", found.good}, {"damage", found.damage}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

[[noreturn]] void refuse_inventory() {
  throw CommError("parallel", "a node sent an invalid list of its checkpoints", "Start the run again");
}

Inventory inventory_in(const std::string& text) {
  try {
    const json told = json::parse(text);
    const auto wanted = told.at("wanted").get<std::map<std::string, int64_t>>();
    if (!std::ranges::all_of(wanted, [](const auto& file) { return is_plain_name(file.first) && file.second >= 0; }))
      refuse_inventory();
    return {.index_hash = told.at("index").get<std::string>(),
            .wanted = wanted,
            .good = told.at("good").get<std::set<std::string>>(),
            .damage = told.at("damage").get<std::vector<std::string>>()};
  } catch (const json::exception&) {
    refuse_inventory();
  }
}

// The inventories of all nodes, in their order.
std::vector<Inventory> inventories(const parallel::Group& world, const NodeMap& map, const fs::path& folder) {
  const bool leads = map.leads(world.group_rank());
  const std::vector<std::string> told = texts_of_all(world, leads ? to_text(inventory_of(folder)) : "-");
  std::vector<Inventory> all;
  for (const int64_t leader : map.leaders) all.push_back(inventory_in(told[static_cast<size_t>(leader)]));
  return all;
}

// True if a node has the same index as the first node that has one: another index belongs to another run.
bool is_of(const Inventory& found, const Inventory& reference) {
  return !found.index_hash.empty() && found.index_hash == reference.index_hash;
}

// Broadcasts a file's blocks from one rank to all. Ranks with a target write it.
void pass_on(const parallel::Group& world, int64_t from, const fs::path& source, const std::optional<fs::path>& target,
             int64_t bytes) {
  std::ifstream in;
  std::ofstream out;
  if (world.group_rank() == from) in.open(source, std::ios::binary);
  if (target) out.open(*target, std::ios::binary | std::ios::trunc);
  for (int64_t done = 0; done < bytes;) {
    at::Tensor block = at::empty({std::min(kStreamBlockBytes, bytes - done)}, at::kByte);
    if (in.is_open()) in.read(static_cast<char*>(block.mutable_data_ptr()), block.numel());
    parallel::broadcast(world, block, from);
    if (target) out.write(static_cast<const char*>(block.const_data_ptr()), block.numel());
    done += block.numel();
  }
}

// This node's new folder with its good files; nothing if the disk refuses.
std::unique_ptr<AsideFolder> begin_folder(const fs::path& folder, const Inventory& own) {
  try {
    auto aside = std::make_unique<AsideFolder>(folder);
    for (const std::string& name : own.good) fs::copy_file(folder / name, aside->path() / name);
    return aside;
  } catch (const std::exception&) {
    return nullptr;
  }
}

// A checkpoint that differs from what was sent is removed, so that nobody opens it.
void publish_brought(const AsideFolder& aside, const fs::path& folder) {
  try {
    const Checkpoint arrived(aside.path());  // every hash
    publish_over(aside.path(), folder);
  } catch (const std::exception&) {
    remove_folder(folder);
  }
}

}  // namespace

std::vector<int64_t> steps_on_nodes(const parallel::Group& world, const NodeMap& map, const CheckpointStore& store) {
  const bool leads = map.leads(world.group_rank());
  std::set<int64_t, std::greater<>> all;
  for (const std::string& text : texts_of_all(world, leads ? json(store.steps()).dump() : "-")) {
    if (text == "-") continue;
    for (const auto& step : json::parse(text)) all.insert(step.get<int64_t>());
  }
  return {all.begin(), all.end()};
}

bool bring_to_all_nodes(const parallel::Group& world, const NodeMap& map, const fs::path& folder,
                        const std::function<void(const std::string&)>& say) {
  std::vector<Inventory> nodes = inventories(world, map, folder);
  const auto first = std::ranges::find_if(nodes, [](const Inventory& found) { return !found.index_hash.empty(); });
  const Inventory reference = first == nodes.end() ? Inventory{} : *first;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& damage : nodes[node].damage) say(cat("On node ", node, " ", damage));
    if (!is_of(nodes[node], reference)) nodes[node] = {};
  }
  const auto holder_of = [&](const std::string& name) {
    return std::ranges::find_if(nodes, [&](const Inventory& found) { return found.good.contains(name); }) - nodes.begin();
  };
  for (const auto& [name, bytes] : reference.wanted) {
    if (holder_of(name) < map.num_nodes()) continue;
    throw CheckpointError("checkpoint", cat("no node has a whole copy of a file: path=", folder.string(), ", file=", name),
                          "Use another checkpoint of the run; a resume takes the newest good one by itself");
  }
  if (reference.wanted.empty()) {
    throw CheckpointError("checkpoint", cat("no node has a whole copy: path=", folder.string()),
                          "Use another checkpoint of the run; a resume takes the newest good one by itself");
  }
  const Inventory& own = nodes[static_cast<size_t>(map.node)];
  const bool is_short = map.leads(world.group_rank()) && own.good.size() < reference.wanted.size();
  const std::unique_ptr<AsideFolder> aside = is_short ? begin_folder(folder, own) : nullptr;
  std::set<std::string> sources, targets;
  for (const auto& [name, bytes] : reference.wanted) {
    bool is_lacking = false;
    for (int64_t node = 0; node < map.num_nodes(); ++node) {
      if (nodes[static_cast<size_t>(node)].good.contains(name)) continue;
      is_lacking = true;
      targets.insert(std::to_string(node));
    }
    if (!is_lacking) continue;
    const auto holder = holder_of(name);
    sources.insert(std::to_string(holder));
    const bool takes = aside && !own.good.contains(name);
    pass_on(world, map.leaders[static_cast<size_t>(holder)], folder / name,
            takes ? std::optional(aside->path() / name) : std::nullopt, bytes);
  }
  if (targets.empty()) return false;
  if (aside) publish_brought(*aside, folder);
  parallel::barrier(world);  // a node's other ranks open the folder that their leader publishes
  say(cat("Checkpoint ", folder.filename().string(), " was brought from the disk of node ",
          join(std::vector(sources.begin(), sources.end()), ", "), " to node ",
          join(std::vector(targets.begin(), targets.end()), ", ")));
  return aside != nullptr;
}

}  // namespace welkin::train
