// SPDX-License-Identifier: Apache-2.0
#include "data/cf/composed_fields.h"

#include <algorithm>
#include <array>
#include <set>

namespace welkin::data {
namespace {

// Chunks of the whole: a plane, and as many levels as a chunk of the arrays holds at once.
Extents chunk_of(const Extents& shape, const std::vector<std::vector<ComposedSteps>>& variables) {
  int64_t levels = 0;
  for (const auto& variable : variables) {
    const ComposedSteps& steps = variable.front();
    const Extents& chunk = steps.array->facts().chunk;
    if (!chunk.empty()) levels = std::max(levels, steps.has_level ? chunk[chunk.size() - 3] : 1);
  }
  return levels == 0 ? Extents{} : Extents{1, std::min(levels, shape[1]), shape[2], shape[3]};
}

ArrayFacts composed_facts(const std::string& source, const Extents& shape,
                          const std::vector<std::vector<ComposedSteps>>& variables) {
  ArrayFacts facts{
      .source = source, .name = "fields", .shape = shape, .chunk = chunk_of(shape, variables), .axes = {}, .packing = {}};
  for (const auto& variable : variables) {
    for (const ComposedSteps& steps : variable) {
      facts.missing = std::max(facts.missing, steps.array->facts().missing);
    }
  }
  return facts;
}

}  // namespace

ComposedFields::ComposedFields(const std::string& source, const Extents& shape, std::vector<std::vector<ComposedSteps>> variables,
                               std::vector<ComposedChannel> channels)
    : StoredArray(composed_facts(source, shape, variables)), variables_(std::move(variables)), channels_(std::move(channels)) {}

uint64_t ComposedFields::bytes_requested() const {
  std::set<const StoredArray*> arrays;
  for (const auto& variable : variables_) {
    for (const ComposedSteps& steps : variable) arrays.insert(steps.array.get());
  }
  uint64_t bytes = 0;
  for (const StoredArray* array : arrays) bytes += array->bytes_requested();
  return bytes;
}

int64_t ComposedFields::end_of_run(int64_t first, int64_t end) const {
  const ComposedChannel& begin = channels_[static_cast<size_t>(first)];
  int64_t channel = first + 1;
  while (channel < end) {
    const ComposedChannel& next = channels_[static_cast<size_t>(channel)];
    if (next.variable != begin.variable || next.level != begin.level + channel - first) break;
    ++channel;
  }
  return channel;
}

void ComposedFields::read_stored(const ArrayRegion& region, const ValueTarget& target) const {
  for (int64_t channel = region.begin[1]; channel < region.end[1];) {
    ArrayRegion run = region;
    run.begin[1] = channel;
    run.end[1] = channel = end_of_run(channel, region.end[1]);
    for (const ComposedSteps& steps : variables_[channels_[static_cast<size_t>(run.begin[1])].variable]) {
      ArrayRegion part = run;
      part.begin[0] = std::max(run.begin[0], steps.begin);
      part.end[0] = std::min(run.end[0], steps.end);
      if (part.begin[0] < part.end[0]) read_run(steps, region, part, target);
    }
  }
}

// `part` of `region` lies within the steps and has levels that follow each other. Rows from the south are written backwards.
void ComposedFields::read_run(const ComposedSteps& steps, const ArrayRegion& region, const ArrayRegion& part,
                              const ValueTarget& target) const {
  ArrayRegion inner;
  Extents stride;
  const auto add_axis = [&](int64_t begin, int64_t end, int64_t step) {
    inner.begin.push_back(begin), inner.end.push_back(end), stride.push_back(step);
  };
  const int64_t height = facts().shape[2];
  int64_t offset = (part.begin[0] - region.begin[0]) * target.stride[0] + (part.begin[1] - region.begin[1]) * target.stride[1];
  if (steps.has_time)
    add_axis(part.begin[0] - steps.begin + steps.first, part.end[0] - steps.begin + steps.first, target.stride[0]);
  const int64_t level = channels_[static_cast<size_t>(part.begin[1])].level;
  if (steps.has_level) add_axis(level, level + part.end[1] - part.begin[1], target.stride[1]);
  if (steps.south_first) {
    offset += (part.end[2] - part.begin[2] - 1) * target.stride[2];
    add_axis(height - part.end[2], height - part.begin[2], -target.stride[2]);
  } else {
    add_axis(part.begin[2], part.end[2], target.stride[2]);
  }
  add_axis(part.begin[3], part.end[3], target.stride[3]);
  if (target.is_double) return steps.array->read(inner, static_cast<double*>(target.to) + offset, stride);
  steps.array->read(inner, static_cast<float*>(target.to) + offset, stride);
}

}  // namespace welkin::data
