// SPDX-License-Identifier: Apache-2.0
#include "apps/init/box_facts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "apps/cli/check_helper.h"
#include "core/error.h"
#include "core/text.h"
#include "data/formats/array_file.h"
#include "data/ingest/defaults.h"

namespace welkin::apps {
namespace {

constexpr int64_t kSmallestCrop = 8;  // cells

}  // namespace

std::string name_box_fields(IngestArguments& arguments) {
  in::BoxOptions& box = arguments.box;
  if (!box.input.empty() && !box.target.empty()) return "";
  const in::Component component(arguments.component, check_helper());
  const std::vector<std::string> names = in::box_fields(box.inputs, box.recursive, component);
  if (names.size() != 2 || !box.input.empty() || !box.target.empty()) {
    throw ConfigError("init", cat("which fields are the input and which the target: fields=", join(names, ",")),
                      "Choose with --input and --target, as in --input a,b --target c");
  }
  box.input = {{.source = names[0], .name = ""}};
  box.target = {{.source = names[1], .name = ""}};
  return cat("input: ", names[0], ", target: ", names[1], " (--input and --target choose)");
}

BoxFacts box_facts(const std::filesystem::path& data) {
  BoxFacts facts;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (const auto& [name, edge] : {std::pair("train.h5", &facts.train_edge), std::pair("valid.h5", &facts.valid_edge)}) {
    const data::ArrayFile file = data::open_array_file(data / name);
    const auto& shape = file.array("Nbody")->facts().shape;
    *edge = std::max({shape[1], shape[2], shape[3]});
    shortest = std::min({shortest, shape[1], shape[2], shape[3]});
    facts.input = file.texts("Nbody", "channels");
    facts.target = file.texts("Hydro", "channels");
  }
  if (shortest < kSmallestCrop) {
    throw DataError("init", cat("a box that is too thin for the U-Net: cells=", shortest, ", needed=", kSmallestCrop),
                    "Hold back another axis with --valid_axis, or less with --valid_fraction");
  }
  while (facts.crop * 2 <= std::min<int64_t>(shortest, 64)) facts.crop *= 2, ++facts.scales;
  facts.scales = std::min<int64_t>(facts.scales, 4);
  return facts;
}

}  // namespace welkin::apps
