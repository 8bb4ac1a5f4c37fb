// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/staged_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

// One line per tensor: name, type, dims.
std::string text_of(const std::vector<StagedTensor>& tensors) {
  std::string text;
  for (const StagedTensor& tensor : tensors) {
    text += cat(tensor.name, "\t", static_cast<int>(tensor.type), "\t", join(tensor.shape, " "), "\n");
  }
  return text;
}

std::vector<StagedTensor> tensors_in(const std::string& text, int64_t stage) {
  std::vector<StagedTensor> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t type = line.find('\t'), dims = line.find('\t', type + 1);
    StagedTensor tensor{.name = line.substr(0, type), .shape = {}, .stage = stage};
    tensor.type = static_cast<at::ScalarType>(std::stoi(line.substr(type + 1, dims - type - 1)));
    std::istringstream numbers(line.substr(dims + 1));
    for (int64_t extent = 0; numbers >> extent;) tensor.shape.push_back(extent);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

std::vector<std::string> texts_of_all(const parallel::Group& group, const std::string& text) {
  const auto bytes = static_cast<int64_t>(text.size());
  const parallel::Lengths ones(static_cast<size_t>(group.size()), 1);
  const at::Tensor sizes = parallel::all_gather(group, at::full({1}, bytes, at::kLong), 0, ones);
  const parallel::Lengths lengths(sizes.const_data_ptr<int64_t>(), sizes.const_data_ptr<int64_t>() + sizes.numel());
  const at::Tensor own = at::empty({bytes}, at::kByte);
  std::memcpy(own.mutable_data_ptr(), text.data(), text.size());
  const at::Tensor all = parallel::all_gather(group, own, 0, lengths);
  std::vector<std::string> texts;
  const auto* next = static_cast<const char*>(all.const_data_ptr());
  for (const int64_t length : lengths) {
    texts.emplace_back(next, static_cast<size_t>(length));
    next += length;
  }
  return texts;
}

// The text is never empty: the collective needs parts that are not empty.
std::vector<StagedTensor> tensors_of_stages(const parallel::Group& stages, const std::vector<StagedTensor>& own) {
  std::vector<StagedTensor> all;
  const std::vector<std::string> texts = texts_of_all(stages, cat("\n", text_of(own)));
  for (size_t stage = 0; stage < texts.size(); ++stage) {
    for (StagedTensor& tensor : tensors_in(texts[stage].substr(1), static_cast<int64_t>(stage))) {
      if (std::ranges::find(all, tensor.name, &StagedTensor::name) == all.end()) all.push_back(std::move(tensor));
    }
  }
  return all;
}

at::Tensor whole_on_first_stage(const TensorLayout& layout, const StagedTensor& tensor,
                                const std::function<at::Tensor()>& whole) {
  const parallel::Group& stages = layout.stages;
  const bool has_it = stages.group_rank() == tensor.stage, is_first = stages.group_rank() == 0;
  if (has_it && is_first) return whole();
  if (has_it) parallel::start_send(stages, whole().contiguous(), 0).wait();
  if (!is_first) return {};
  const c10::Device device = layout.table.rows().front().local.device();
  at::Tensor arriving = at::empty(tensor.shape, at::TensorOptions(tensor.type).device(device));
  parallel::start_receive(stages, arriving, tensor.stage).wait();
  return arriving;
}

}  // namespace welkin::train
