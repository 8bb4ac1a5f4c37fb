// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_genericio.h"

#include <algorithm>

#include "core/error.h"
#include "core/printable.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/formats/genericio/genericio_column.h"
#include "data/tools/inspect_hdf5.h"

namespace welkin::data {
namespace {

std::string type_text(const GenericIoVariable& variable) {
  const char* kind = variable.kind == GenericIoKind::Float ? "float" : variable.kind == GenericIoKind::Signed ? "int" : "uint";
  std::string text = cat(kind, 8 * variable.bytes);
  if (variable.per_element > 1) text += cat(" x ", variable.per_element);
  if (variable.axis >= 0) text += cat(", coordinate ", "xyz"[variable.axis]);
  return text + (variable.may_be_ghost ? ", may be of ghosts" : "");
}

// Reads whole ranks while the budget lasts, since a checksum ends each.
std::string range_text(const GenericIoFile& file, size_t variable, int64_t most_values) {
  constexpr uint64_t kPiece = uint64_t{1} << 16;
  RunningMoments moments;
  auto budget = static_cast<uint64_t>(most_values);
  bool whole = true;
  for (size_t rank = 0; rank < file.header().ranks.size(); ++rank) {
    GenericIoColumn column(file, variable, rank);
    while (column.left() > 0 && budget > 0) {
      std::vector<double> values(std::min({kPiece, column.left(), budget}));
      column.read(values);
      budget -= values.size();
      moments.add(std::vector<float>(values.begin(), values.end()));
    }
    whole = whole && column.left() == 0;
  }
  return cat(whole ? "" : "of the first: ", moments_text(moments));
}

}  // namespace

std::string inspect_genericio(const std::filesystem::path& path, const InspectOptions& options) {
  const GenericIoFile file(path);
  const GenericIoHeader& header = file.header();
  std::string text =
      cat("GenericIO, ", format_bytes(file.file().size()), header.big_endian ? ", big-endian, " : ", ", header.elements,
          " particles of ", header.ranks.size(), " ranks (", join(header.ranks_along, " x "), "), checksum of the header right\n",
          "  box from (", join(header.origin, ", "), "), extent (", join(header.extent, ", "), ")\n");
  if (!header.filter.empty()) text += cat("  compressed with ", header.filter, "\n");
  for (size_t v = 0; v < header.variables.size() && static_cast<int64_t>(v) < options.most_datasets; ++v) {
    const GenericIoVariable& variable = header.variables[v];
    text += cat("  ", printable(variable.name), "  ", type_text(variable));
    const bool is_read = variable.per_element == 1;
    text += is_read ? cat("  values ", range_text(file, v, options.most_sampled_values), "\n") : "\n";
  }
  return text;
}

}  // namespace welkin::data
