// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/universe/nbody.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/simulate/universe/box_writer.h"
#include "data/simulate/universe/particle_mesh.h"

namespace welkin::data::simulate {
namespace {

struct Box {
  std::string split;  // names the random stream
  std::string stem;   // the tutorials' file name
  int64_t edge = 0;
};

std::vector<Box> boxes_of(const NbodyOptions& options) {
  return {{"train", "downsamp_2048crop_train", options.edge}, {"valid", "downsamp_1024crop_valid", options.edge_valid}};
}

Provenance provenance_of(const NbodyOptions& o) {
  Provenance p;
  p.add("simulation", std::string("nbody"));
  // Compared with the manifests of folders that exist already, so it keeps its wording. The page: docs/reference/simulate.md.
  p.add("method", cat(o.start == StartOrder::Second ? "2LPT" : "Zel'dovich",
                      " start, particle-mesh gravity, gas by a closure (docs/simulate.md)"));
  p.add("seed", static_cast<int64_t>(o.seed));
  p.add("edge_train", o.edge);
  p.add("edge_valid", o.edge_valid);
  p.add("cell_mpc_h", o.cell_mpc_h);
  p.add("redshift_start", o.redshift_start);
  p.add("redshift", o.redshift);
  p.add("steps", o.steps);
  p.add("deconvolve", static_cast<int64_t>(o.deconvolve));
  p.add("npy", static_cast<int64_t>(o.npy));
  p.add("omega_matter", o.cosmology.omega_matter);
  p.add("omega_baryon", o.cosmology.omega_baryon);
  p.add("hubble", o.cosmology.hubble);
  p.add("spectral_index", o.cosmology.spectral_index);
  p.add("sigma8", o.cosmology.sigma8);
  p.add("gas_filter_mpc_h", o.gas.filter_mpc_h);
  p.add("gas_temperature_kelvin", o.gas.temperature_kelvin);
  p.add("gas_gamma", o.gas.gamma);
  p.add("gas_ionised_density", o.gas.ionised_density);
  p.add("gas_shock_density", o.gas.shock_density);
  p.add("velocity_scale_km_s", o.scaling.velocity_km_s);
  p.add("log_density_scale", o.scaling.log_density);
  return p;
}

void simulate_box(const NbodyOptions& options, const Box& box, const Provenance& provenance, ThreadPool& pool,
                  const SimulationProgress& progress) {
  const auto scratch = options.scratch.empty() ? options.out : options.scratch;
  ParticleMesh particles({.edge = box.edge,
                          .cosmology = options.cosmology,
                          .deconvolve = options.deconvolve,
                          .memory_bytes = static_cast<int64_t>(options.max_memory_gib * 0x1.0p30),
                          .scratch = scratch},
                         pool);
  const InitialField field{.power = LinearPower(options.cosmology),
                           .key = stream_key(options.seed, cat("simulate/nbody/", box.split)),
                           .edge = box.edge,
                           .box_mpc_h = options.cell_mpc_h * static_cast<double>(box.edge)};
  particles.start(field, 1.0 / (1.0 + options.redshift_start), options.start);
  particles.evolve(1.0 / (1.0 + options.redshift), options.steps,
                   [&](int64_t step) { progress(cat(box.split, " box"), step, options.steps); });
  const BoxFields fields(particles, options.cell_mpc_h, options.gas, options.scaling);
  write_box({.folder = options.out, .stem = box.stem, .npy = options.npy}, fields, box.edge, options.scaling, provenance);
}

int64_t scaled_edge(int64_t full, double scale) {
  return std::max<int64_t>(16, 2 * std::llround(0.5 * scale * static_cast<double>(full)));
}

}  // namespace

void set_scale(NbodyOptions& options, double scale) {
  options.edge = scaled_edge(1024, scale);
  options.edge_valid = scaled_edge(512, scale);
}

void validate(const NbodyOptions& o) {
  std::vector<std::string> problems;
  const auto need = [&](bool good, const std::string& text) {
    if (!good) problems.push_back(text);
  };
  for (const int64_t edge : {o.edge, o.edge_valid})
    need(edge >= 8 && edge <= 4096 && edge % 2 == 0, cat("edge=", edge, " (even, 8 to 4096)"));
  need(o.cell_mpc_h >= 0.01 && o.cell_mpc_h <= 100.0, cat("cell_mpc_h=", o.cell_mpc_h, " (0.01 to 100)"));
  need(o.redshift >= 0.0 && o.redshift < o.redshift_start && o.redshift_start <= 1000.0,
       cat("redshift=", o.redshift, ", redshift_start=", o.redshift_start, " (0 <= redshift < redshift_start <= 1000)"));
  need(o.steps >= 1 && o.steps <= 10000, cat("steps=", o.steps, " (1 to 10000)"));
  need(o.max_memory_gib > 0.0 && o.max_memory_gib < 1e6, cat("max_memory_gib=", o.max_memory_gib, " (above 0)"));
  need(!o.out.empty(), "out is empty");
  if (!problems.empty())
    throw ConfigError("simulate nbody", join(problems, "; "), "Change these flags: welkin data simulate nbody --help");
}

bool simulate_nbody(const NbodyOptions& options, ThreadPool& pool, const SimulationProgress& progress) {
  validate(options);
  const Provenance provenance = provenance_of(options);
  if (already_simulated(options.out, provenance, options.overwrite)) return false;
  make_folders(options.out);
  for (const Box& box : boxes_of(options)) simulate_box(options, box, provenance, pool, progress);
  write_manifest(options.out, provenance);
  return true;
}

}  // namespace welkin::data::simulate
