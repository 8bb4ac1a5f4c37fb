// SPDX-License-Identifier: Apache-2.0
// Coordinates and groups by strides.
#include "parallel/mesh/mesh.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

// The names in an order string, in lower case.
std::vector<std::string> order_names(const std::string& order) {
  std::vector<std::string> names;
  std::istringstream stream(order);
  for (std::string name; std::getline(stream, name, '-');) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    names.push_back(name);
  }
  return names;
}

// The axes that a name of an order string stands for, and their total size.
struct OrderAxis {
  std::string name;
  std::vector<std::pair<Axis, int64_t>> axes;  // fastest first

  int64_t size() const {
    int64_t product = 1;
    for (const auto& axis : axes) product *= axis.second;
    return product;
  }
};

// In the order in which axes are appended that an order string does not name.
std::vector<OrderAxis> known_axes(const MeshSizes& s) {
  return {{"tp", {{Axis::Tp, s.tp}}},
          {"pp", {{Axis::Pp, s.pp}}},
          {"dp", {{Axis::DpShard, s.dp_shard}, {Axis::DpReplicate, s.dp_replicate}}},
          {"cp", {{Axis::Cp, s.cp}}},
          {"w", {{Axis::W, s.w}}},
          {"h", {{Axis::H, s.h}}},
          {"d", {{Axis::D, s.d}}}};
}

bool is_spatial(const OrderAxis& axis) { return axis.name.size() == 1; }

[[noreturn]] void refuse_order(const std::string& order, const std::string& what) {
  throw ConfigError("parallel", cat("the rank order does not describe the mesh: order=", order, ", ", what),
                    "Name every axis larger than one exactly once: tp, cp, dp, pp, h, w, d joined by '-'");
}

}  // namespace

Mesh::Mesh(const std::string& order, const MeshSizes& sizes) {
  std::vector<OrderAxis> left = known_axes(sizes);
  for (const OrderAxis& axis : left) {
    for (const auto& part : axis.axes) {
      if (part.second < 1) refuse_order(order, cat(axis.name, "=", part.second));
    }
  }
  std::vector<std::string> used;
  for (const std::string& name : order_names(order)) {
    const auto found = std::find_if(left.begin(), left.end(), [&](const OrderAxis& axis) { return axis.name == name; });
    if (found == left.end()) refuse_order(order, cat("unknown or repeated axis=", name));
    for (const auto& [axis, size] : found->axes) append(axis, size);
    used.push_back(name);
    left.erase(found);
  }
  for (const OrderAxis& axis : left) {
    if (axis.size() != 1) refuse_order(order, cat("not named although larger than one: ", axis.name, "=", axis.size()));
    for (const auto& part : axis.axes) append(part.first, part.second);
    if (!is_spatial(axis)) used.push_back(axis.name);
  }
  order_ = join(used, "-");
}

void Mesh::append(Axis axis, int64_t size) {
  places_.push_back({axis, size, world_size_});
  world_size_ *= size;
}

int64_t Mesh::size(AxisSet axes) const {
  int64_t product = 1;
  for (const Place& place : places_) {
    if (axes.contains(place.axis)) product *= place.size;
  }
  return product;
}

int64_t Mesh::coordinate(int64_t rank, Axis axis) const {
  const auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.axis == axis; });
  return rank / place->stride % place->size;
}

std::string Mesh::coordinates_text(int64_t rank) const {
  std::vector<std::string> parts;
  for (const Place& place : places_) {
    if (place.size > 1) parts.push_back(cat(axis_name(place.axis), " ", coordinate(rank, place.axis)));
  }
  return join(parts, ", ");
}

GroupMembers Mesh::group_of(int64_t rank, AxisSet axes) const {
  int64_t base = rank;
  for (const Place& place : places_) {
    if (axes.contains(place.axis)) base -= coordinate(rank, place.axis) * place.stride;
  }
  GroupMembers group{{base}, 0};
  for (const Place& place : places_) {  // each axis repeats the list of the faster ones
    if (!axes.contains(place.axis)) continue;
    const std::vector<int64_t> faster = group.ranks;
    for (int64_t i = 1; i < place.size; ++i) {
      for (const int64_t member : faster) group.ranks.push_back(member + i * place.stride);
    }
  }
  group.place = std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin();
  return group;
}

std::vector<std::vector<int64_t>> Mesh::groups(AxisSet axes) const {
  std::vector<std::vector<int64_t>> all;
  for (int64_t rank = 0; rank < world_size_; ++rank) {
    // the first member has the smallest rank, and ranks run fastest axis first
    const bool is_first = std::ranges::all_of(
        places_, [&](const Place& place) { return !axes.contains(place.axis) || rank / place.stride % place.size == 0; });
    if (is_first) all.push_back(group_of(rank, axes).ranks);
  }
  return all;
}

std::string axes_text(AxisSet axes) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kNumAxes; ++i) {
    if (axes.contains(static_cast<Axis>(i))) names.push_back(kAxisNames[i]);
  }
  return join(names, " x ");
}

}  // namespace welkin::parallel
