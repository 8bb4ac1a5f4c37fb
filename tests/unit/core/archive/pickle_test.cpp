// SPDX-License-Identifier: Apache-2.0
// Pickles are written here operation by operation, as Python's pickletools names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/archive/pickle_reader.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::archive {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <size_t N>
std::string raw(const char (&bytes)[N]) {
  return {bytes, N - 1};
}

std::string text(const std::string& value) { return cat("\x8c", static_cast<char>(value.size()), value); }
std::string global(const std::string& module, const std::string& name) { return cat("c", module, "\n", name, "\n"); }
std::string number(int value) { return cat("K", static_cast<char>(value)); }
std::string storage(int elements, const std::string& type = "FloatStorage") {
  return cat("(", text("storage"), global("torch", type), text("0"), text("cpu"), number(elements), "tQ");
}
std::string tensor(const std::string& offset, const std::string& shape, const std::string& strides, int elements = 6) {
  return cat(global("torch._utils", "_rebuild_tensor_v2"), "(", storage(elements), offset, "(", shape, "t(", strides, "t\x89}tR");
}
std::string proto(const std::string& body) { return cat("\x80\x02", body, "."); }

Pickle read(const std::string& bytes) { return read_pickle(as_byte_span(bytes), "x.pt"); }

TEST(Pickle, ReadsConstants) {
  const Pickle pickle =
      read(proto(raw("(N\x88\x89J\xff\xff\xff\xffM\x01\x02\x8a\x02\x00\x80\x8a\x00G\x3f\xf8\0\0\0\0\0\0") + text("hi") +
                 raw("C\x02"
                     "ab") +
                 "t"));
  const auto at = [&](size_t i) { return pickle[pickle.top().items[i]]; };
  EXPECT_EQ(at(0).kind, PickleKind::None);
  EXPECT_EQ(at(1).integer, 1);
  EXPECT_EQ(at(2).integer, 0);
  EXPECT_EQ(at(3).integer, -1);
  EXPECT_EQ(at(4).integer, 0x201);
  EXPECT_EQ(at(5).integer, -32768);
  EXPECT_EQ(at(6).integer, 0);
  EXPECT_EQ(at(7).number, 1.5);
  EXPECT_EQ(at(8).text, "hi");
  EXPECT_EQ(at(9).kind, PickleKind::Bytes);
}

TEST(Pickle, ReadsNestedDictionariesListsAndTheMemo) {
  // {"a": [1, 2], "b": the same list}
  const Pickle pickle = read(proto(cat("}(", text("a"), "]q", '\1', "(", number(1), number(2), "e", text("b"), "h", '\1', "u")));
  const PickleNode& top = pickle.top();
  ASSERT_EQ(top.items.size(), 4u);
  EXPECT_EQ(top.items[1], top.items[3]);
  EXPECT_EQ(pickle.find(top, "b")->items.size(), 2u);
  EXPECT_EQ(pickle.find(top, "c"), nullptr);
}

TEST(Pickle, AValueThatContainsItselfIsHarmless) {
  const Pickle pickle = read(proto(cat("]q", '\1', "h", '\1', "a")));
  EXPECT_EQ(pickle.top().items, std::vector<PickleId>{pickle.root});
}

TEST(Pickle, DescribesATensorOfAnyStrides) {
  const Pickle pickle = read(proto(tensor(number(1), number(2) + number(2), number(1) + number(3))));
  const PickleNode& node = pickle.top();
  EXPECT_EQ(node.kind, PickleKind::Tensor);
  EXPECT_EQ(node.dtype, Dtype::F32);
  EXPECT_EQ(node.integer, 1);
  EXPECT_THAT(node.shape, ElementsAre(2, 2));
  EXPECT_THAT(node.strides, ElementsAre(1, 3));
  EXPECT_EQ(pickle[node.items[0]].integer, 6);
}

TEST(Pickle, OrderedDictionariesParametersAndTheirStateAreRead) {
  const std::string parameter =
      cat(global("torch._utils", "_rebuild_parameter"), "(", tensor(number(0), number(6), number(1)), "\x88}tR");
  const std::string ordered =
      cat(global("collections", "OrderedDict"), ")R(", text("w"), parameter, "u}", text("_metadata"), "}sb");
  const Pickle pickle = read(proto(ordered));
  ASSERT_NE(pickle.find(pickle.top(), "w"), nullptr);
  EXPECT_EQ(pickle.find(pickle.top(), "w")->kind, PickleKind::Tensor);
}

TEST(Pickle, ReadsNumbersOfNumpy) {
  const std::string type = cat(global("numpy", "dtype"), "(", text("f8"), "\x89\x88tR(", number(3), text("<"),
                               "NNNJ\xff\xff\xff\xffJ", "\xff\xff\xff\xff", number(0), "tb");
  const std::string bytes = cat(global("_codecs", "encode"), "(", text("\xc3\xb8?" + std::string(4, '\0')), text("latin1"), "tR");
  // 0xf8 0x3f and four zero bytes are six: a float64 takes eight
  EXPECT_THAT([&] { read(proto(cat(global("numpy.core.multiarray", "scalar"), "(", type, bytes, "tR"))); },
              ThrowsMessage<DataError>(HasSubstr("a numpy number of a type that is not supported: type=f8, bytes=6")));
  const std::string eight = cat("C", '\x08', std::string(6, '\0'), "\xf8?");
  EXPECT_EQ(read(proto(cat(global("numpy._core.multiarray", "scalar"), "(", type, eight, "tR"))).top().number, 1.5);
}

TEST(Pickle, StopsWhereItEnds) {
  const std::string bytes = proto("N") + "rest";
  EXPECT_EQ(read(bytes).bytes, bytes.size() - 4);
}

struct BadPickle {
  const char* name;
  std::string bytes;
  const char* message;
};

class BadPickles : public testing::TestWithParam<BadPickle> {};

TEST_P(BadPickles, AreRefusedWithTheirReason) {
  EXPECT_THAT([] { read(GetParam().bytes); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("[pickle] "), HasSubstr(GetParam().message), HasSubstr("file=x.pt"))));
}

std::string reduce(const std::string& module, const std::string& name) {
  return proto(cat(global(module, name), "(", text("echo harm"), "tR"));
}

INSTANTIATE_TEST_SUITE_P(
    Pickle, BadPickles,
    testing::Values(
        BadPickle{"os_system", reduce("os", "system"), "the file calls something that is not allowed: name=os.system"},
        BadPickle{"posix_system", reduce("posix", "system"), "Nothing of it was run"},
        BadPickle{"builtins_eval", reduce("builtins", "eval"), "name=builtins.eval"},
        BadPickle{"getattr", reduce("builtins", "getattr"), "name=builtins.getattr"},
        BadPickle{"torch_load", reduce("torch", "load"), "name=torch.load"},
        BadPickle{"torch_class", reduce("torch.nn.modules.linear", "Linear"), "Save tensors, numbers and text only"},
        BadPickle{"stack_global", proto(cat(text("os"), text("system"), "\x93")), "name=os.system"},
        BadPickle{"script", reduce("__torch__.Net", "Net"), "This is a TorchScript file"},
        BadPickle{"unprintable", reduce("o\x1bs", "sys"), "name=o?s.sys"},
        BadPickle{"instance", proto("ios\nsystem\n"), "an operation that is not allowed: opcode=105"},
        BadPickle{"extension", raw("\x80\x02\x82\x01."), "an operation that is not allowed: opcode=130"},
        BadPickle{"text_protocol", "I1\n.", "an operation that is not allowed: opcode=73"},
        BadPickle{"protocol", raw("\x80\x09N."), "unknown protocol of pickle: protocol=9"},
        BadPickle{"empty", "", "the bytes end too early"}, BadPickle{"no_stop", "\x80\x02N", "the bytes end too early"},
        BadPickle{"oversized_text",
                  raw("\x80\x02X\xff\xff\xff\x7f"
                      "a."),
                  "the bytes end too early: at=7, wanted=2147483647"},
        BadPickle{"oversized_text8",
                  raw("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                      "a."),
                  "the bytes end too early"},
        BadPickle{"oversized_long", raw("\x80\x02\x8b\xff\xff\xff\x7f."), "an integer is too long: bytes=2147483647"},
        BadPickle{"empty_stack", proto("0"), "a value is taken from an empty stack"},
        BadPickle{"no_mark", proto("t"), "a mark is missing"},
        BadPickle{"below_mark", proto("N(\x85"), "a value is taken from an empty stack"},
        BadPickle{"two_values", proto("NN"), "it ends with something else than one value: values=2"},
        BadPickle{"deep", proto(std::string(20'000, '(')), "values are nested too deeply: limit=10000"},
        BadPickle{"memo", proto(cat("h", '\5')), "a value is used that was not stored: memo=5"},
        BadPickle{"append_to_none", proto("NNa"), "items are added to something that is no container"},
        BadPickle{"key_without_value", proto("}(Nu"), "a key without a value"},
        BadPickle{"call_of_none", proto("N)R"), "it calls something that is no function"},
        BadPickle{"call_of_value", proto(cat(global("torch", "float32"), ")R")), "it calls something that is only a value"},
        BadPickle{"missing_argument", proto(cat(global("torch._utils", "_rebuild_tensor_v2"), ")R")),
                  "a call lacks an argument: number=1"},
        BadPickle{"state_of_text", proto(cat(text("a"), "}b")), "it sets the state of an object"},
        BadPickle{"no_storage", proto(cat("(", text("module"), "NNNNtQ")), "it refers to something that is no storage"},
        BadPickle{"complex", proto(storage(4, "ComplexFloatStorage")), "name=torch.ComplexFloatStorage"},
        BadPickle{
            "negative_elements",
            proto(cat("(", text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"), "J\xff\xff\xff\xfftQ")),
            "a storage has a negative size"},
        BadPickle{"leaves_storage", proto(tensor(number(0), number(7), number(1))), "a tensor leaves its storage: shape=7"},
        BadPickle{"leaves_by_offset", proto(tensor(number(3), number(4), number(1))), "offset=3, elements=6"},
        BadPickle{"leaves_by_stride", proto(tensor(number(0), number(2), number(9))), "a tensor leaves its storage"},
        BadPickle{"negative_stride", proto(tensor(number(0), number(2), "J\xff\xff\xff\xff")), "a tensor leaves its storage"},
        BadPickle{"negative_shape", proto(tensor(number(0), "J\xff\xff\xff\xff", number(1))), "a tensor leaves its storage"},
        BadPickle{"huge_shape",
                  proto(tensor(number(0), std::string("J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f"),
                               number(0) + number(0) + number(0))),
                  "a tensor leaves its storage"},
        BadPickle{"ranks_differ", proto(tensor(number(0), number(2) + number(2), number(1))), "a tensor leaves its storage"},
        BadPickle{"big_endian_numpy", proto(cat(global("numpy", "dtype"), "(", text("f8"), "tR(", number(3), text(">"), "tb")),
                  "numbers are big endian: order=>"}),
    [](const auto& row) { return row.param.name; });

TEST(Pickle, ManyValuesAndMemosAreBounded) {
  EXPECT_THAT([] { read(proto("(" + std::string(kMaxPickleValues + 1, 'N') + "t")); },
              ThrowsMessage<DataError>(HasSubstr("limit=")));
  // Doubling lists, each holding the last one twice: two to the power of 400 values when written out, 400 here.
  std::string lists = "]";
  for (int i = 0; i < 400; ++i)
    lists +=
        "q\x01"
        "0]h\x01"
        "ah\x01"
        "a";
  EXPECT_EQ(read(proto(lists)).nodes.size(), 401u);
}

}  // namespace
}  // namespace welkin::archive
