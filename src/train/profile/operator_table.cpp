// SPDX-License-Identifier: Apache-2.0
#include "train/profile/operator_table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <map>
#include <sstream>
#include <tuple>

#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::train {
namespace {

struct KindWords {
  OperatorKind kind;
  std::vector<std::string_view> words;
};

// The first row with a word that occurs in the name decides. Communication comes first, since its names contain other rows'
// words. A word is the beginning of one of the name's words ("add": aten::addcmul_, but not "padded"). With "*" it may stand
// anywhere; with "=" it is the whole name.
const std::vector<KindWords>& kind_words() {
  static const std::vector<KindWords> rows = {
      {OperatorKind::Communication, {"*nccl", "*gloo", "c10d", "allreduce", "all_reduce", "broadcast_"}},
      {OperatorKind::Normalisation,
       {"*layer_norm", "*layernorm", "*LayerNorm", "group_norm", "*batch_norm", "rms_norm", "*softmax"}},
      {OperatorKind::Contraction,
       {"addmm", "mm", "bmm", "baddbmm", "*matmul", "linear", "*conv", "*attention", "einsum", "*gemm", "*sdpa", "*flash",
        "*fmha", "*cutlass", "dot", "*xmma", "nvjet"}},
      {OperatorKind::Movement,
       {"copy",   "clone",  "contiguous", "cat",      "to_copy",       "=aten::to", "*Memcpy", "*memcpy",   "*Memset",
        "fill",   "zero",   "empty",      "resize",   "transpose",     "permute",   "view",    "reshape",   "slice",
        "select", "narrow", "expand",     "=aten::t", "as_strided",    "unsqueeze", "squeeze", "split",     "chunk",
        "alias",  "detach", "stack",      "index",    "gather",        "scatter",   "flatten", "unflatten", "unbind",
        "roll",   "pad",    "ones",       "full",     "scalar_tensor", "*CatArray"}},
      {OperatorKind::ElementWise,
       {"add",       "mul",        "div",      "sub",       "gelu",       "relu",       "threshold",
        "tanh",      "cumsum",     "exp",      "sqrt",      "pow",        "abs",        "sgn",
        "sign",      "where",      "*dropout", "sum",       "mean",       "norm",       "linalg_vector_norm",
        "neg",       "clamp",      "maximum",  "minimum",   "eq",         "isfinite",   "*elementwise",
        "rsub",      "reciprocal", "*unscale", "=aten::ne", "=aten::gt",  "=aten::lt",  "=aten::ge",
        "=aten::le", "max",        "min",      "square",    "nan_to_num", "mse_loss",   "log",
        "sin",       "cos",        "bitwise",  "logical",   "foreach",    "fused_adam", "fused_sgd",
        "*reduce",   "upsample",   "amax",     "amin"}},
  };
  return rows;
}

bool is_letter(char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'); }

bool holds_word(std::string_view name, std::string_view word) {
  if (word.front() == '=') return name == word.substr(1);
  if (word.front() == '*') return name.find(word.substr(1)) != std::string_view::npos;
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at == 0 || !is_letter(name[at - 1])) return true;
  }
  return false;
}

double milliseconds(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::string two_decimals(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << value;
  return out.str();
}

// Own time of every call: the time of the calls inside it is subtracted. At equal begin times longer calls come first: the
// caller before the called.
std::vector<uint64_t> own_times(const std::vector<OperatorCall>& calls) {
  std::vector<uint64_t> own(calls.size());
  std::vector<size_t> stack;
  for (size_t i = 0; i < calls.size(); ++i) {
    const OperatorCall& call = calls[i];
    while (!stack.empty() && (calls[stack.back()].thread != call.thread || calls[stack.back()].end_ns <= call.begin_ns))
      stack.pop_back();
    own[i] = call.end_ns - call.begin_ns;
    if (!stack.empty())
      own[stack.back()] -= std::min(own[stack.back()], std::min(call.end_ns, calls[stack.back()].end_ns) - call.begin_ns);
    stack.push_back(i);
  }
  return own;
}

}  // namespace

OperatorKind kind_of_operator(std::string_view name) {
  for (const KindWords& row : kind_words()) {
    for (const std::string_view word : row.words) {
      if (holds_word(name, word)) return row.kind;
    }
  }
  return OperatorKind::Other;
}

std::string_view name_of(OperatorKind kind) {
  static constexpr std::array<std::string_view, 6> kNames{"contraction", "normalisation", "element-wise",
                                                          "movement",    "communication", "other"};
  return kNames.at(static_cast<size_t>(kind));
}

bool uses_matrix_units(std::string_view kernel) {
  for (const std::string_view word :
       {"tensorop", "xmma", "wgmma", "hmma", "16816", "1688", "s161", "bf16_", "flash", "nvjet", "sm90_"}) {
    if (kernel.find(word) != std::string_view::npos) return true;
  }
  return false;
}

OperatorSummary summarise(std::vector<OperatorCall> calls) {
  OperatorSummary summary;
  summary.on_gpu = std::ranges::any_of(calls, &OperatorCall::on_gpu);
  std::erase_if(calls, [&](const OperatorCall& call) { return call.on_gpu != summary.on_gpu || call.end_ns <= call.begin_ns; });
  std::ranges::sort(calls, [](const OperatorCall& a, const OperatorCall& b) {
    return std::tuple(a.thread, a.begin_ns, b.end_ns) < std::tuple(b.thread, b.begin_ns, a.end_ns);
  });
  const std::vector<uint64_t> own = own_times(calls);
  std::map<std::string, OperatorRow> rows;
  for (size_t i = 0; i < calls.size(); ++i) {
    OperatorRow& row = rows[calls[i].name];
    row.name = calls[i].name;
    row.kind = kind_of_operator(row.name);
    ++row.calls;
    row.own_ms += milliseconds(own[i]);
    summary.total_ms += milliseconds(own[i]);
    if (summary.on_gpu && uses_matrix_units(row.name)) summary.matrix_unit_ms += milliseconds(own[i]);
  }
  for (auto& [name, row] : rows) summary.rows.push_back(std::move(row));
  std::ranges::stable_sort(summary.rows, std::greater(), &OperatorRow::own_ms);
  return summary;
}

std::string operator_table(const OperatorSummary& summary, size_t most) {
  using observe::Align;
  const auto share = [&](double ms) { return cat(two_decimals(summary.total_ms > 0 ? 100 * ms / summary.total_ms : 0), " %"); };
  observe::Table classes({{"class"}, {"calls", Align::Right}, {"own time ms", Align::Right}, {"share", Align::Right}});
  for (size_t k = 0; k <= static_cast<size_t>(OperatorKind::Other); ++k) {
    int64_t calls = 0;
    double ms = 0;
    for (const OperatorRow& row : summary.rows) {
      if (row.kind == static_cast<OperatorKind>(k)) calls += row.calls, ms += row.own_ms;
    }
    classes.add_row({std::string(name_of(static_cast<OperatorKind>(k))), cat(calls), two_decimals(ms), share(ms)});
  }
  std::string text = classes.text();
  text += summary.on_gpu
              ? cat("matrix units (tensor cores): ", share(summary.matrix_unit_ms), " of the kernels' time\n")
              : std::string("matrix units: a CPU's operators do not say; the log's line Kernels names the instructions\n");
  observe::Table longest(
      {{"operator"}, {"class"}, {"calls", Align::Right}, {"own time ms", Align::Right}, {"share", Align::Right}});
  for (size_t i = 0; i < std::min(most, summary.rows.size()); ++i) {
    const OperatorRow& row = summary.rows[i];
    longest.add_row(
        {row.name.substr(0, 60), std::string(name_of(row.kind)), cat(row.calls), two_decimals(row.own_ms), share(row.own_ms)});
  }
  return text + longest.text();
}

}  // namespace welkin::train
