// SPDX-License-Identifier: Apache-2.0
#include "core/archive/torch_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "core/checked.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::archive {
namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The class that names an element type in PyTorch's pickles.
std::string_view storage_class(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64:
      return "DoubleStorage";
    case Dtype::F32:
      return "FloatStorage";
    case Dtype::F16:
      return "HalfStorage";
    case Dtype::BF16:
      return "BFloat16Storage";
    case Dtype::I64:
      return "LongStorage";
    case Dtype::I32:
      return "IntStorage";
    case Dtype::I16:
      return "ShortStorage";
    case Dtype::I8:
      return "CharStorage";
    case Dtype::U8:
      return "ByteStorage";
    case Dtype::Bool:
      return "BoolStorage";
    default:
      break;
  }
  throw DataError("torch file",
                  cat("an element type that .pt files of PyTorch hold only as raw bytes: dtype=", dtype_name(dtype)),
                  "Write safetensors instead");
}

}  // namespace

TorchWriter::TorchWriter() : pickle_("\x80\x02") {}

void TorchWriter::integer(int64_t value) {
  if (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) {
    pickle_ += 'J';
    put(pickle_, static_cast<int32_t>(value));
  } else {
    pickle_ += "\x8a\x08";
    put(pickle_, value);
  }
}

void TorchWriter::number(double value) {
  pickle_ += 'G';
  put(pickle_, __builtin_bswap64(std::bit_cast<uint64_t>(value)));
}

void TorchWriter::text(std::string_view value) {
  const auto too_long = [] { throw DataError("torch file", "a text is too long", "Shorten it"); };
  pickle_ += 'X';
  put(pickle_, checked_cast<uint32_t>(value.size(), too_long));
  pickle_ += value;
}

void TorchWriter::global(std::string_view module, std::string_view name) { pickle_ += cat('c', module, '\n', name, '\n'); }

void TorchWriter::tensor(Dtype dtype, const std::vector<int64_t>& shape, ZipWriter::Producer produce) {
  const auto overflow = [] { throw DataError("torch file", "a tensor is too large", "Split it"); };
  const int64_t elements = checked_product(shape, overflow);
  global("torch._utils", "_rebuild_tensor_v2");
  begin_tuple();
  begin_tuple();
  text("storage");
  global("torch", storage_class(dtype));
  text(std::to_string(storages_.size()));
  text("cpu");
  integer(elements);
  end_tuple();
  pickle_ += 'Q';
  integer(0);
  begin_tuple();
  for (const int64_t extent : shape) integer(extent);
  end_tuple();
  begin_tuple();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t stride = 1;
    for (size_t inner = dim + 1; inner < shape.size(); ++inner) stride *= std::max<int64_t>(1, shape[inner]);
    integer(stride);
  }
  end_tuple();
  boolean(false);
  global("collections", "OrderedDict");
  pickle_ += ")R";  // no hooks
  end_tuple();
  pickle_ += 'R';
  storages_.push_back({static_cast<uint64_t>(elements) * dtype_bytes(dtype), std::move(produce)});
}

void TorchWriter::write(const std::filesystem::path& path) const {
  const std::string root = "archive/";
  write_path_atomically(path, [&](const std::filesystem::path& temporary) {
    const FileDescriptor file = open_file(temporary, O_WRONLY);
    ZipWriter zip(file, path);
    zip.add(root + "data.pkl", as_byte_span(pickle_ + '.'));
    zip.add(root + "byteorder", as_byte_span("little"));
    for (size_t i = 0; i < storages_.size(); ++i) {
      zip.add(cat(root, "data/", i), storages_[i].bytes, storages_[i].produce);
    }
    for (const auto& [name, text] : extras_) zip.add(cat(root, "extra/", name), as_byte_span(text));
    zip.add(root + "version", as_byte_span("3\n"));
    zip.finish();
  });
}

void TorchWriter::write_pickle(const std::filesystem::path& path) const {
  WELKIN_CHECK(storages_.empty(), "a pickle alone holds no tensors");
  write_file_atomically(path, pickle_ + '.');
}

}  // namespace welkin::archive
