// SPDX-License-Identifier: Apache-2.0
// The calls of a pickle that are accepted, each as plain data.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/archive/pickle_reader.h"
#include "core/archive/unpickler.h"
#include "core/checked.h"

namespace welkin::archive {
namespace {

constexpr std::string_view kSaveAnew =
    "Nothing of it was run. Save tensors, numbers and text only: torch.save(model.state_dict(), FILE), or safetensors";

// The first 100 characters, with ? for those that cannot be printed.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 100));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

// Numbers as numpy stores them, by numpy's name.
template <typename T>
PickleNode number_of(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  if constexpr (std::is_floating_point_v<T>) return {.kind = PickleKind::Float, .number = value};
  return {.kind = PickleKind::Int, .integer = static_cast<int64_t>(value)};
}

struct NumpyRow {
  std::string_view name;
  size_t bytes;
  PickleNode (*read)(const std::string&);
};

constexpr std::array kNumpyTypes = std::to_array<NumpyRow>({{"f8", 8, number_of<double>},
                                                            {"f4", 4, number_of<float>},
                                                            {"i8", 8, number_of<int64_t>},
                                                            {"i4", 4, number_of<int32_t>},
                                                            {"i2", 2, number_of<int16_t>},
                                                            {"i1", 1, number_of<int8_t>},
                                                            {"u4", 4, number_of<uint32_t>},
                                                            {"u2", 2, number_of<uint16_t>},
                                                            {"u1", 1, number_of<uint8_t>},
                                                            {"b1", 1, number_of<uint8_t>}});

}  // namespace

void Unpickler::push_global(std::string_view module, std::string_view name) {
  std::string global = cat(module, " ", name);
  if (!allowed_call(global)) {
    const bool script = module.starts_with("__torch__");
    refuse(cat("the file calls something that is not allowed: name=", shown(module), ".", shown(name)),
           script ? "This is a TorchScript file: save the state_dict() of the model instead" : kSaveAnew);
  }
  push({.kind = PickleKind::Global, .text = std::move(global)});
}

// ("storage", class, key, location, number of elements), in old files also a view, which no current writer stores.
void Unpickler::push_storage() {
  const PickleNode parts = nodes_[pop()];
  if (parts.kind != PickleKind::Tuple || parts.items.size() < 5 || argument(parts, 0, PickleKind::Text).text != "storage") {
    refuse("it refers to something that is no storage of a tensor", kSaveAnew);
  }
  const std::string type = argument(parts, 1, PickleKind::Global).text;
  const bool untyped = type == kUntypedStorage;
  const auto dtype = untyped ? std::optional(Dtype::U8) : storage_dtype(type);
  if (!dtype) refuse(cat("it refers to a storage of unknown type: type=", shown(type)), kSaveAnew);
  if (parts.items.size() > 5 && nodes_[parts.items[5]].kind != PickleKind::None) {
    refuse("a storage is a view of another one", "Load and save it in PyTorch 1.0 or later");
  }
  const int64_t elements = argument(parts, 4, PickleKind::Int).integer;
  if (elements < 0) refuse(cat("a storage has a negative size: elements=", elements));
  push({.kind = PickleKind::Storage, .dtype = *dtype, .integer = elements, .text = argument(parts, 2, PickleKind::Text).text});
}

void Unpickler::call() {
  const PickleId arguments = pop();
  const PickleNode& callee = nodes_[pop()];
  if (callee.kind != PickleKind::Global) refuse("it calls something that is no function", kSaveAnew);
  if (nodes_[arguments].kind != PickleKind::Tuple) refuse("it calls a function without a tuple of arguments");
  push(called(*allowed_call(callee.text), nodes_[arguments]));
}

PickleNode Unpickler::called(PickleCall callee, const PickleNode& arguments) {
  switch (callee) {
    case PickleCall::Dict:
      return dict_of(arguments);
    case PickleCall::List:
      return list_of(arguments);
    case PickleCall::Tuple: {
      PickleNode tuple = list_of(arguments);
      tuple.kind = PickleKind::Tuple;
      return tuple;
    }
    case PickleCall::Text:
      return argument(arguments, 0, PickleKind::Text);
    case PickleCall::RebuildTensor:
      return rebuilt_tensor(arguments, /*has_dtype=*/false);
    case PickleCall::RebuildTensorV3:
      return rebuilt_tensor(arguments, /*has_dtype=*/true);
    case PickleCall::RebuildParameter:
      return argument(arguments, 0, PickleKind::Tensor);
    case PickleCall::NumpyType:
      return {.kind = PickleKind::NumpyType, .text = argument(arguments, 0, PickleKind::Text).text};
    case PickleCall::NumpyScalar:
      return numpy_scalar(arguments);
    case PickleCall::Encode:
      return encoded(arguments);
    case PickleCall::Value:
      break;
  }
  refuse("it calls something that is only a value", kSaveAnew);
}

// Sets the state that follows a value: attributes of an OrderedDict or a tensor, which do not affect numbers; or the byte order
// of a numpy type, which does.
void Unpickler::build() {
  const PickleNode& state = nodes_[pop()];
  const PickleNode& target = nodes_[top()];
  if (target.kind == PickleKind::Dict || target.kind == PickleKind::Tensor) return;
  if (target.kind != PickleKind::NumpyType) refuse("it sets the state of an object", kSaveAnew);
  const std::string& order = argument(state, 1, PickleKind::Text).text;
  if (order != "<" && order != "|" && order != "=") refuse(cat("numbers are big endian: order=", shown(order)));
}

PickleNode Unpickler::rebuilt_tensor(const PickleNode& arguments, bool has_dtype) {
  const PickleNode& storage = argument(arguments, 0, PickleKind::Storage);
  PickleNode tensor{.kind = PickleKind::Tensor, .dtype = storage.dtype};
  if (has_dtype) {
    const std::string& name = argument(arguments, 6, PickleKind::Global).text;
    const auto dtype = torch_dtype(name);
    if (!dtype) refuse(cat("a tensor has an element type that is not supported: type=", shown(name)), "Convert it to float32");
    tensor.dtype = *dtype;
  }
  tensor.integer = argument(arguments, 1, PickleKind::Int).integer;
  tensor.items = {arguments.items[0]};
  fill_tensor(tensor, storage, argument(arguments, 2, PickleKind::Tuple), argument(arguments, 3, PickleKind::Tuple));
  return tensor;
}

// Shape and strides, checked to stay inside the storage that is claimed (archive/torch_file.h checks that claim).
void Unpickler::fill_tensor(PickleNode& tensor, const PickleNode& storage, const PickleNode& shape,
                            const PickleNode& strides) const {
  tensor.shape = integers(shape);
  tensor.strides = integers(strides);
  const auto outside = [&] {
    refuse(cat("a tensor leaves its storage: shape=", join(tensor.shape, "x"), ", strides=", join(tensor.strides, "x"),
               ", offset=", tensor.integer, ", elements=", storage.integer));
  };
  if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > kMaxPickleDims) outside();
  if (tensor.integer < 0) outside();
  const int64_t elements = checked_product(tensor.shape, outside);
  int64_t last = tensor.integer;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.strides[dim] < 0) outside();
    if (elements == 0) continue;
    last = checked_add(last, checked_mul(tensor.shape[dim] - 1, tensor.strides[dim], outside), outside);
  }
  const auto ratio = static_cast<int64_t>(dtype_bytes(tensor.dtype) / dtype_bytes(storage.dtype));
  if (elements > 0 && last >= storage.integer / std::max<int64_t>(1, ratio)) outside();
}

PickleNode Unpickler::dict_of(const PickleNode& arguments) const {
  PickleNode dict{.kind = PickleKind::Dict};
  for (const PickleId id : arguments.items) {
    const PickleNode& value = nodes_[id];
    if (value.kind == PickleKind::Dict) dict.items = value.items;
    if (value.kind != PickleKind::List) continue;  // defaultdict's factory
    for (const PickleId pair : value.items) {
      if (nodes_[pair].items.size() != 2) refuse("a dictionary is made of something else than pairs");
      dict.items.insert(dict.items.end(), nodes_[pair].items.begin(), nodes_[pair].items.end());
    }
  }
  return dict;
}

PickleNode Unpickler::list_of(const PickleNode& arguments) const {
  PickleNode list{.kind = PickleKind::List};
  if (!arguments.items.empty()) {
    const PickleNode& items = nodes_[arguments.items[0]];
    if (items.kind != PickleKind::List && items.kind != PickleKind::Tuple) refuse("a list is made of something else than items");
    list.items = items.items;
  }
  return list;
}

PickleNode Unpickler::numpy_scalar(const PickleNode& arguments) const {
  const std::string& type = argument(arguments, 0, PickleKind::NumpyType).text;
  const std::string& bytes = argument(arguments, 1, PickleKind::Bytes).text;
  const auto row = std::ranges::find(kNumpyTypes, type, &NumpyRow::name);
  if (row == kNumpyTypes.end() || row->bytes != bytes.size()) {
    refuse(cat("a numpy number of a type that is not supported: type=", shown(type), ", bytes=", bytes.size()), kSaveAnew);
  }
  return row->read(bytes);
}

// Undoes _codecs.encode(text, "latin1"): each character is a byte.
PickleNode Unpickler::encoded(const PickleNode& arguments) const {
  const std::string& text = argument(arguments, 0, PickleKind::Text).text;
  if (argument(arguments, 1, PickleKind::Text).text != "latin1") refuse("text in an encoding other than latin1");
  PickleNode bytes{.kind = PickleKind::Bytes};
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<uint8_t>(text[i]);
    if (lead < 0x80) {
      bytes.text.push_back(text[i]);
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < text.size()) {
      bytes.text.push_back(static_cast<char>(((lead & 3) << 6) | (static_cast<uint8_t>(text[++i]) & 0x3F)));
    } else {
      refuse("text that is not latin1");
    }
  }
  return bytes;
}

const PickleNode& Unpickler::argument(const PickleNode& arguments, size_t index, PickleKind kind) const {
  if (index >= arguments.items.size()) refuse(cat("a call lacks an argument: number=", index + 1));
  const PickleNode& value = nodes_[arguments.items[index]];
  if (value.kind != kind) refuse(cat("a call has an argument of the wrong kind: number=", index + 1));
  return value;
}

std::vector<int64_t> Unpickler::integers(const PickleNode& tuple) const {
  std::vector<int64_t> values;
  for (const PickleId id : tuple.items) {
    if (nodes_[id].kind != PickleKind::Int) refuse("a shape holds something else than integers");
    values.push_back(nodes_[id].integer);
  }
  return values;
}

}  // namespace welkin::archive
