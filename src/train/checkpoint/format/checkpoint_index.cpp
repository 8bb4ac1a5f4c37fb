// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/format/checkpoint_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/archive/json_integers.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::train {
namespace {

using nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr int kDeepest = 16;       // levels of index.json, of which five are used
constexpr int kPiecesVersion = 2;  // version of a checkpoint with tensors in pieces, which earlier readers must refuse

[[noreturn]] void refuse(const std::string& source, const std::string& why) {
  throw CheckpointError("checkpoint", cat("index.json cannot be used: path=", source, ", reason=", why),
                        "The files were damaged or belong to another program; use an older checkpoint");
}

std::string hash_of(const json& body) { return hex_digits(xxh3_64(as_byte_span(body.dump()))); }

json file_json(const StoredFile& file) { return {{"bytes", file.bytes}, {"xxh3", hex_digits(file.xxh3)}}; }

json tensor_json(const TensorRecord& tensor) {
  json object = {{"file", tensor.file},
                 {"dtype", tensor.dtype},
                 {"shape", tensor.shape},
                 {"offset", tensor.offset},
                 {"placement", tensor.placement}};
  if (tensor.pieces.empty()) return object;
  const PieceLayout& layout = tensor.layout;
  object["order"] = layout.order;
  if (layout.ranks > 1) object["split"] = {{"dim", layout.dim}, {"blocks", layout.blocks}, {"ranks", layout.ranks}};
  for (const TensorPiece& piece : tensor.pieces) {
    object["pieces"].push_back({{"file", piece.file}, {"part", piece.part}, {"begin", piece.begin}, {"count", piece.count}});
  }
  return object;
}

bool has_pieces(const CheckpointIndex& index) {
  return std::ranges::any_of(index.tensors, [](const auto& row) { return !row.second.pieces.empty(); });
}

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

// Reads keys of one object; a missing or mistyped one is refused by name.
class Keys {
 public:
  Keys(const json& object, std::string source) : object_(object), source_(std::move(source)) {
    if (!object_.is_object()) refuse(source_, "an object was expected");
  }

  template <typename T>
  T at(const char* key) const {
    try {
      const json& value = object_.at(key);
      if (!has_integers_of<T>(value)) refuse(source_, cat("key ", key, ": an integer was expected"));
      return value.get<T>();
    } catch (const json::exception& error) {
      refuse(source_, cat("key ", key, ": ", error.what()));
    }
  }

  // A key that checkpoints of earlier versions do not have.
  template <typename T>
  T later_at(const char* key) const {
    return object_.contains(key) ? at<T>(key) : T{};
  }

  std::optional<double> optional_later_at(const char* key) const {
    return object_.contains(key) ? optional_at(key) : std::nullopt;
  }

  std::optional<double> optional_at(const char* key) const {
    return at<json>(key).is_null() ? std::nullopt : std::optional<double>(at<double>(key));
  }

  uint64_t hash_at(const char* key) const {
    const auto digits = at<std::string>(key);
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
      refuse(source_, cat("key ", key, " is no hash"));
    }
    return std::stoull(digits, nullptr, 16);
  }

 private:
  const json& object_;
  std::string source_;
};

StoredFile parse_file(const json& object, const std::string& source) {
  const Keys keys(object, source);
  return {.bytes = keys.at<uint64_t>("bytes"), .xxh3 = keys.hash_at("xxh3")};
}

TensorRecord parse_tensor(const json& object, const std::string& source) {
  const Keys keys(object, source);
  TensorRecord record{.file = keys.at<std::string>("file"),
                      .dtype = keys.at<std::string>("dtype"),
                      .shape = keys.at<std::vector<int64_t>>("shape"),
                      .offset = keys.at<std::vector<int64_t>>("offset"),
                      .placement = keys.at<std::string>("placement")};
  for (const json& piece : keys.later_at<std::vector<json>>("pieces")) {
    const Keys own(piece, source);
    record.pieces.push_back({.file = own.at<std::string>("file"),
                             .part = own.at<int64_t>("part"),
                             .begin = own.at<int64_t>("begin"),
                             .count = own.at<int64_t>("count")});
  }
  if (record.pieces.empty()) return record;
  record.layout.order = keys.at<std::vector<int64_t>>("order");
  if (!object.contains("split")) return record;
  const Keys split(object["split"], source);
  record.layout.dim = split.at<int64_t>("dim");
  record.layout.blocks = split.at<int64_t>("blocks");
  record.layout.ranks = split.at<int64_t>("ranks");
  return record;
}

LoaderState parse_loader(const json& object, const std::string& source) {
  if (object.is_null()) return {};
  const Keys keys(object, source);
  return {.global_batch_size = keys.at<int64_t>("global_batch_size"), .samples_in_epoch = keys.at<int64_t>("samples_in_epoch")};
}

StoppingCount parse_stopping(const json& object, const std::string& source) {
  if (object.is_null()) return {};
  const Keys keys(object, source);
  return {.metric = keys.at<std::string>("metric"),
          .best = keys.optional_at("best"),
          .best_step = keys.at<int64_t>("best_step"),
          .waited = keys.at<int64_t>("waited")};
}

json stopping_json(const StoppingCount& count) {
  return {
      {"metric", count.metric}, {"best", optional_json(count.best)}, {"best_step", count.best_step}, {"waited", count.waited}};
}

// Keys that later versions added.
void parse_later_keys(const Keys& keys, CheckpointIndex& index, const std::string& source) {
  index.learning_rate = keys.optional_later_at("learning_rate");
  index.parameters = keys.later_at<std::vector<std::string>>("parameters");
  index.mesh = keys.later_at<std::map<std::string, int64_t>>("mesh");
  if (const json step = keys.later_at<json>("best_step"); !step.is_null()) index.best_step = keys.at<int64_t>("best_step");
  index.best_metric = keys.later_at<std::string>("best_metric");
  index.stopping = parse_stopping(keys.later_at<json>("early_stopping"), source);
  index.loader = parse_loader(keys.later_at<json>("loader"), source);
  index.facts = keys.later_at<std::map<std::string, std::string>>("facts");
  index.origin = keys.later_at<std::string>("origin");
}

void check_names(const CheckpointIndex& index, const std::string& source) {
  for (const auto& [name, file] : index.files) {
    if (name.find('/') != std::string::npos || name.starts_with(".")) refuse(source, cat("a file outside the folder: ", name));
  }
  for (const auto& [name, tensor] : index.tensors) {
    if (!index.files.contains(tensor.file)) refuse(source, cat("tensor ", name, " stands in an unknown file: ", tensor.file));
    for (const TensorPiece& piece : tensor.pieces) {
      if (!index.files.contains(piece.file)) refuse(source, cat("tensor ", name, " stands in an unknown file: ", piece.file));
    }
  }
}

// Values are copied and written by functions that recurse once per level.
json::parser_callback_t level_limit(const std::string& source) {
  return [&source](int depth, json::parse_event_t /*event*/, const json& /*value*/) {
    if (depth > kDeepest) refuse(source, cat("nested too deeply: limit=", kDeepest));
    return true;
  };
}

json verified_body(const std::string& text, const std::string& source) {
  json body = json::parse(text, level_limit(source), /*allow_exceptions=*/false);
  if (!body.is_object() || !body.contains("xxh3") || !body["xxh3"].is_string())
    refuse(source, "it is no JSON object with a hash");
  const auto expected = body["xxh3"].get<std::string>();
  body.erase("xxh3");
  if (hash_of(body) != expected) refuse(source, "its hash does not fit its content");
  return body;
}

}  // namespace

std::string to_json(const CheckpointIndex& index) {
  json body = {
      {"format_version", has_pieces(index) ? kPiecesVersion : kFormatVersion},
      {"iteration", index.position.iteration},
      {"epoch", index.position.epoch},
      {"step_in_epoch", index.position.step_in_epoch},
      {"seed", index.seed},
      {"config", index.config},
      {"validation_loss", optional_json(index.validation_loss)},
      {"best_loss", optional_json(index.best_loss)},
      {"learning_rate", optional_json(index.learning_rate)},
      {"parameters", index.parameters},
      {"mesh", index.mesh},
      {"loader", {{"global_batch_size", index.loader.global_batch_size}, {"samples_in_epoch", index.loader.samples_in_epoch}}},
      {"facts", index.facts},
      {"origin", index.origin},
      {"files", json::object()},
      {"tensors", json::object()}};
  if (index.best_step) body["best_step"] = *index.best_step;
  if (!index.best_metric.empty()) body["best_metric"] = index.best_metric;
  if (!index.stopping.metric.empty()) body["early_stopping"] = stopping_json(index.stopping);
  for (const auto& [name, file] : index.files) body["files"][name] = file_json(file);
  for (const auto& [name, file] : index.data) body["data"][name] = file_json(file);
  for (const auto& [name, tensor] : index.tensors) body["tensors"][name] = tensor_json(tensor);
  body["xxh3"] = hash_of(body);
  return body.dump(1) + "\n";
}

CheckpointIndex parse_checkpoint_index(const std::string& text, const std::string& source) {
  const json body = verified_body(text, source);
  const Keys keys(body, source);
  if (const int version = keys.at<int>("format_version"); version != kFormatVersion && version != kPiecesVersion) {
    refuse(source, cat("format_version=", version, ", known=", kFormatVersion, " and ", kPiecesVersion));
  }
  CheckpointIndex index;
  index.position = {.iteration = keys.at<int64_t>("iteration"),
                    .epoch = keys.at<int64_t>("epoch"),
                    .step_in_epoch = keys.at<int64_t>("step_in_epoch")};
  index.seed = keys.at<uint64_t>("seed");
  index.config = keys.at<std::string>("config");
  index.validation_loss = keys.optional_at("validation_loss");
  index.best_loss = keys.optional_at("best_loss");
  parse_later_keys(keys, index, source);
  for (const auto& [name, file] : keys.at<std::map<std::string, json>>("files")) index.files[name] = parse_file(file, source);
  if (body.contains("data")) {  // earlier versions did not write it
    for (const auto& [name, file] : keys.at<std::map<std::string, json>>("data")) index.data[name] = parse_file(file, source);
  }
  for (const auto& [name, tensor] : keys.at<std::map<std::string, json>>("tensors")) {
    index.tensors[name] = parse_tensor(tensor, source);
  }
  check_names(index, source);
  return index;
}

}  // namespace welkin::train
