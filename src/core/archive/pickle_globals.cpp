// SPDX-License-Identifier: Apache-2.0
#include "core/archive/pickle_globals.h"

#include <algorithm>
#include <array>

namespace welkin::archive {
namespace {

struct CallRow {
  std::string_view global;
  PickleCall call;
};

constexpr std::array kCalls = std::to_array<CallRow>({
    {"collections OrderedDict", PickleCall::Dict},
    {"collections defaultdict", PickleCall::Dict},
    {"collections Counter", PickleCall::Dict},
    {"builtins dict", PickleCall::Dict},
    {"__builtin__ dict", PickleCall::Dict},
    {"builtins set", PickleCall::List},
    {"__builtin__ set", PickleCall::List},
    {"builtins frozenset", PickleCall::List},
    {"__builtin__ frozenset", PickleCall::List},
    {"builtins list", PickleCall::List},
    {"__builtin__ list", PickleCall::List},
    {"builtins int", PickleCall::Value},
    {"__builtin__ int", PickleCall::Value},
    {"torch Size", PickleCall::Tuple},
    {"torch device", PickleCall::Text},
    {"torch._utils _rebuild_tensor", PickleCall::RebuildTensor},
    {"torch._utils _rebuild_tensor_v2", PickleCall::RebuildTensor},
    {"torch._utils _rebuild_tensor_v3", PickleCall::RebuildTensorV3},
    {"torch._utils _rebuild_parameter", PickleCall::RebuildParameter},
    {"torch._utils _rebuild_parameter_with_state", PickleCall::RebuildParameter},
    {"torch.storage UntypedStorage", PickleCall::Value},
    {"numpy dtype", PickleCall::NumpyType},
    {"numpy.core.multiarray scalar", PickleCall::NumpyScalar},
    {"numpy._core.multiarray scalar", PickleCall::NumpyScalar},
    {"_codecs encode", PickleCall::Encode},
});

struct TypeRow {
  std::string_view storage;  // class in the module torch (or torch.cuda, in files of old versions)
  std::string_view name;     // torch.<name>
  Dtype dtype;
};

constexpr std::array kTypes = std::to_array<TypeRow>({{"DoubleStorage", "float64", Dtype::F64},
                                                      {"FloatStorage", "float32", Dtype::F32},
                                                      {"HalfStorage", "float16", Dtype::F16},
                                                      {"BFloat16Storage", "bfloat16", Dtype::BF16},
                                                      {"LongStorage", "int64", Dtype::I64},
                                                      {"IntStorage", "int32", Dtype::I32},
                                                      {"ShortStorage", "int16", Dtype::I16},
                                                      {"CharStorage", "int8", Dtype::I8},
                                                      {"ByteStorage", "uint8", Dtype::U8},
                                                      {"BoolStorage", "bool", Dtype::Bool},
                                                      {"", "uint16", Dtype::U16},
                                                      {"", "uint32", Dtype::U32},
                                                      {"", "uint64", Dtype::U64}});

// The name behind one of the modules and a blank; empty when it is in none of them.
std::string_view name_in(std::string_view global, std::string_view module) {
  if (!global.starts_with(module) || global.size() <= module.size() || global[module.size()] != ' ') return {};
  return global.substr(module.size() + 1);
}

}  // namespace

std::optional<Dtype> storage_dtype(std::string_view global) {
  for (const std::string_view module : {"torch", "torch.cuda"}) {
    const std::string_view name = name_in(global, module);
    const auto row = std::ranges::find(kTypes, name, &TypeRow::storage);
    if (!name.empty() && row != kTypes.end()) return row->dtype;
  }
  return {};
}

std::optional<Dtype> torch_dtype(std::string_view global) {
  const std::string_view name = name_in(global, "torch");
  const auto row = std::ranges::find(kTypes, name, &TypeRow::name);
  return row == kTypes.end() ? std::nullopt : std::optional(row->dtype);
}

std::optional<PickleCall> allowed_call(std::string_view global) {
  const auto row = std::ranges::find(kCalls, global, &CallRow::global);
  if (row != kCalls.end()) return row->call;
  return storage_dtype(global) || torch_dtype(global) ? std::optional(PickleCall::Value) : std::nullopt;
}

}  // namespace welkin::archive
