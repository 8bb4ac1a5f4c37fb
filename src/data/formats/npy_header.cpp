// SPDX-License-Identifier: Apache-2.0
// The header of an .npy file: magic, version, and a Python dictionary of exactly three keys, read without recursion.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/checked.h"
#include "core/text.h"
#include "data/formats/npy_file.h"

namespace welkin::data {
namespace {

constexpr size_t kMostNpyDims = 32;  // numpy's own limit up to version 1

class NpyDictionary {
 public:
  // `first`: where the text begins in the npy file.
  NpyDictionary(std::string_view text, std::string_view source, size_t first)
      : rest_(text), source_(source), end_(first + text.size()) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',') && peek() != '}') refuse("a comma is missing");
    }
    skip_spaces();
    if (!rest_.empty()) refuse("there is text after the dictionary");
    if (!has_descr_ || !has_order_ || !has_shape_) refuse("descr, fortran_order or shape is missing");
    return std::move(header_);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw DataError("npy", cat("not a usable header: path=", source_, ", npy_byte=", end_ - rest_.size(), ", reason=", why),
                    "Write the array again with numpy.save(path, array.astype('float32'))");
  }

 private:
  void read_entry() {
    const std::string key = quoted();
    expect(':');
    bool& seen = key == "descr" ? has_descr_ : key == "fortran_order" ? has_order_ : has_shape_;
    if (key != "descr" && key != "fortran_order" && key != "shape") refuse("an unknown key");
    if (seen) refuse("a key occurs twice");
    seen = true;
    if (key == "descr") {
      read_descr();
    } else if (key == "fortran_order") {
      header_.fortran_order = boolean();
    } else {
      read_shape();
    }
  }

  void read_descr() {
    skip_spaces();
    if (peek() == '[') refuse("a structured array (several fields per element)");
    std::string descr = quoted();
    const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
    header_.big_endian = has_order && descr[0] == '>';
    if (has_order) descr.erase(0, 1);
    const auto dtype = dtype_of(descr);
    if (!dtype) refuse(cat("unsupported type ", descr.substr(0, 32)));
    header_.dtype = *dtype;
  }

  static std::optional<Dtype> dtype_of(std::string_view code) {
    struct Row {
      std::string_view code;
      Dtype dtype;
    };
    static constexpr Row kRows[] = {{"f8", Dtype::F64}, {"f4", Dtype::F32}, {"f2", Dtype::F16}, {"i8", Dtype::I64},
                                    {"i4", Dtype::I32}, {"i2", Dtype::I16}, {"i1", Dtype::I8},  {"u8", Dtype::U64},
                                    {"u4", Dtype::U32}, {"u2", Dtype::U16}, {"u1", Dtype::U8},  {"b1", Dtype::Bool},
                                    {"V2", Dtype::BF16}};  // numpy.save writes this for an array of ml_dtypes.bfloat16
    for (const Row& row : kRows) {
      if (row.code == code) return row.dtype;
    }
    return std::nullopt;
  }

  void read_shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.size() == kMostNpyDims) refuse("more than 32 dimensions");
      header_.shape.push_back(integer());
      if (!accept(',') && peek() != ')') refuse("a comma is missing in shape");
    }
  }

  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc{} || value < 0) refuse("shape holds something that is no size");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // Python 2 wrote 3L
    return value;
  }

  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    refuse("fortran_order is neither True nor False");
  }

  std::string quoted() {
    skip_spaces();
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("a text in quotes is missing");
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) refuse("a text does not end");
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void skip_spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }
  char peek() {
    skip_spaces();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(cat("'", c, "' is missing"));
  }

  std::string_view rest_;
  std::string_view source_;
  size_t end_;  // of the text, in the npy file
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

std::string_view npy_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::F64:
      return "<f8";
    case Dtype::F32:
      return "<f4";
    case Dtype::F16:
      return "<f2";
    case Dtype::BF16:
      return "<V2";  // numpy's name for ml_dtypes.bfloat16
    case Dtype::I64:
      return "<i8";
    case Dtype::I32:
      return "<i4";
    case Dtype::I16:
      return "<i2";
    case Dtype::I8:
      return "|i1";
    case Dtype::U64:
      return "<u8";
    case Dtype::U32:
      return "<u4";
    case Dtype::U16:
      return "<u2";
    case Dtype::U8:
      return "|u1";
    case Dtype::Bool:
      return "|b1";
  }
  return "";
}

}  // namespace

int64_t NpyHeader::num_values() const {
  return checked_product(shape, [] { throw InternalError("an npy shape that was not checked"); });
}

NpyHeader parse_npy_header(std::span<const std::byte> head, uint64_t file_bytes, std::string_view source) {
  const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(head[i]); };
  const NpyDictionary problem("", source, 0);
  if (head.size() < 12 || std::memcmp(head.data(), "\x93NUMPY", 6) != 0) problem.refuse("it does not start like an .npy file");
  const uint32_t version = byte(6);
  if (version < 1 || version > 3) problem.refuse(cat("unknown version ", version));
  const size_t begin = version == 1 ? 10 : 12;
  const size_t length = byte(8) | (byte(9) << 8) | (version == 1 ? 0 : (byte(10) << 16) | (byte(11) << 24));
  if (length > head.size() - begin) problem.refuse(cat("it ends inside the header, which has ", length, " bytes"));
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + begin, length);
  NpyHeader header = NpyDictionary(text, source, begin).parse();
  header.data_offset = begin + length;
  const auto too_big = [&] { problem.refuse("a shape that no machine can hold"); };
  const int64_t values = checked_product(header.shape, too_big);
  const int64_t bytes = checked_mul(values, static_cast<int64_t>(dtype_bytes(header.dtype)), too_big);
  if (static_cast<uint64_t>(bytes) != file_bytes - header.data_offset) {
    throw DataError(
        "npy",
        cat("the file does not have the size of its array: path=", source, ", shape=(", join(header.shape, ", "),
            "), npy_byte=", header.data_offset, ", bytes_expected=", bytes, ", bytes_found=", file_bytes - header.data_offset),
        "The file is truncated or was written to: make it again");
  }
  return header;
}

std::string npy_header_of(const std::vector<int64_t>& shape, Dtype dtype) {
  std::string text = cat("{'descr': '", npy_code(dtype), "', 'fortran_order': False, 'shape': (");
  // numpy writes it so. Other readers (DALI's) take no comma before the bracket but that of a single number.
  text += cat(join(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  constexpr size_t kPrefix = 10;
  text.append(63 - (kPrefix + text.size()) % 64, ' ');  // numpy aligns the data to 64 bytes
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace welkin::data
