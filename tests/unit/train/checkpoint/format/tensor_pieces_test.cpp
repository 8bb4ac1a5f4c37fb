// SPDX-License-Identifier: Apache-2.0
// Tensors that stand in pieces: hostile records of them, and files that are not what the index says.
#include "train/checkpoint/format/tensor_pieces.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "scratch_folder.h"
#include "train/checkpoint/checkpoint.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;

TensorRecord record_of(std::vector<int64_t> shape, PieceLayout layout, std::vector<TensorPiece> pieces) {
  return {.file = "model-r0.safetensors",
          .dtype = "F32",
          .shape = std::move(shape),
          .offset = {},
          .placement = "replicated",
          .layout = std::move(layout),
          .pieces = std::move(pieces)};
}

TEST(TensorPieces, ThatAreNoTensorAreRefused) {
  const PieceLayout plain{.order = {0, 1}};
  const auto problem = [](std::vector<int64_t> shape, PieceLayout layout, std::vector<TensorPiece> pieces) {
    return problem_of_pieces(record_of(std::move(shape), std::move(layout), std::move(pieces)));
  };
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, 6}}), "");
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, 4}}), "elements are missing: part 0 from 4");
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, 4}, {"b", 0, 3, 3}}), "elements are missing or there twice: part 0 from 4");
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, 7}}), "a piece is too long: part 0, count 7");
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, -6}}), "a piece is too long: part 0, count -6");
  EXPECT_EQ(problem({2, 3}, plain, {{"a", 0, 0, 6}, {"b", 1, 0, 6}}), "elements are missing: part 1 from 6");
  EXPECT_EQ(problem({2, 3}, {.order = {0, 0}}, {{"a", 0, 0, 6}}), "order is not one of its dims");
  EXPECT_EQ(problem({2, 3}, {.order = {0}}, {{"a", 0, 0, 6}}), "order is not one of its dims");
  EXPECT_EQ(problem({2, 3}, {.order = {0, 1}, .dim = 2, .ranks = 2}, {{"a", 0, 0, 3}}), "no such dim: 2");
  EXPECT_EQ(problem({2, 3}, {.order = {0, 1}, .dim = 1, .ranks = 2}, {{"a", 0, 0, 3}}), "dim 1 does not divide: 3");
  EXPECT_EQ(problem({2, 3}, {.order = {0, 1}, .ranks = 0}, {{"a", 0, 0, 6}}), "ranks or blocks is no such number: 0");
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(problem({kHuge, 3}, plain, {{"a", 0, 0, 6}}), "its shape is too large, or negative");
  EXPECT_EQ(problem({-2, 3}, plain, {{"a", 0, 0, 6}}), "its shape is too large, or negative");
}

// What a rank's file holds under a name need not be what the index says of it.
TEST(TensorPieces, ThatDifferFromTheirFileAreRefused) {
  const ScratchFolder folder;
  const at::Tensor values = at::arange(6, at::kFloat);
  const auto write = [&](const char* name, std::vector<int64_t> shape, int64_t count) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directory(path);
    CheckpointIndex index;
    CheckpointTensor tensor{.name = "w", .value = values.narrow(0, 0, count)};
    tensor.piece = PiecePlace{.whole_shape = shape, .layout = {.order = {0, 1}}};
    write_files(path, index, {{.name = "model", .tensors = {tensor}}}, /*rank=*/0);
    index.tensors.at("w").pieces.front().count = shape[0] * shape[1];
    write_file_atomically(path / "index.json", to_json(index));
    return path;
  };
  EXPECT_TRUE(at::equal(Checkpoint(write("good", {2, 3}, 6)).read("w"), values.view({2, 3})));
  try {
    Checkpoint(write("short", {2, 3}, 5)).read("w");
    ADD_FAILURE() << "no error";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a piece does not fit: path="));
    EXPECT_THAT(error.what(), HasSubstr("model-r0.safetensors, tensor=w, stored=(5) F32, wanted=(6) F32"));
  }
}

TEST(TensorPieces, AreReadFromTheIndexAsTheyWereWritten) {
  CheckpointIndex index;
  index.files["model-r0.safetensors"] = {};
  index.files["b"] = {};
  index.tensors["w"] = record_of({12, 4}, {.order = {1, 0}, .dim = 0, .blocks = 3, .ranks = 2},
                                 {{"model-r0.safetensors", 0, 0, 24}, {"b", 1, 0, 24}});
  index.tensors["w"].offset = {0, 0};
  const std::string text = to_json(index);
  EXPECT_THAT(text, HasSubstr("\"format_version\": 2"));
  const CheckpointIndex again = parse_checkpoint_index(text, "index.json");
  const TensorRecord& record = again.tensors.at("w");
  EXPECT_EQ(record.layout, index.tensors["w"].layout);
  ASSERT_EQ(record.pieces.size(), 2u);
  EXPECT_EQ(record.pieces[1].part, 1);
  index.files.erase("b");
  EXPECT_THROW(parse_checkpoint_index(to_json(index), "index.json"), CheckpointError);
  index.tensors.clear();
  EXPECT_THAT(to_json(index), HasSubstr("\"format_version\": 1"));
}

}  // namespace
}  // namespace welkin::train
