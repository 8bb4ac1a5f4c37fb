# SPDX-License-Identifier: Apache-2.0
# The main job of quickstart.sh, which sources this: simulate, train, evaluate, predict; then a table with what to look at next.
# A step whose result is there already is passed over; a run that was interrupted goes on.
out="$root/quickstart-out"
welkin="$release/welkin"
config="$root/config/quickstart.yaml"

# train NAME DATA: the preset NAME on quickstart-out/data/DATA, unless it has been trained to its end with this configuration.
train() {
  local name=$1 run="$out/logs/$1/1GPU/00" mark="$out/logs/$1.trained" resume=()
  if cmp -s "$config" "$mark"; then
    say "$name is trained already"
    return
  fi
  if [ -e "$mark" ]; then
    rm -rf "$out/logs/$name" "$mark"  # the configuration has changed since
  elif [ -d "$run/checkpoints" ]; then
    resume=(--resume)
  fi
  say "training $name"
  "$welkin" train --yaml_config "$config" --config "$name" --data_root "$out/data/$2" --log_root "$out/logs" "${resume[@]}" \
    >"$out/train-$name.log" 2>&1 || { tail -n 20 "$out/train-$name.log"; fail "training failed; the whole log is ${out#"$root"/}/train-$name.log"; }
  grep -E 'Avg (train|val) loss' "$out/train-$name.log" | tail -n 2 | sed 's/.*INFO - */  /'
  cp "$config" "$mark"
}

# judge NAME: scores on the validation data and pictures of a few samples.
judge() {
  local name=$1 run="$out/logs/$1/1GPU/00"
  say "scores and pictures of $name"
  "$welkin" evaluate "$run" --json "$out/scores-$name.json" >"$out/scores-$name.txt"
  "$welkin" predict "$run" --output "$out/pictures/$name" "${@:2}" >"$out/predict-$name.txt"
}

# rmse NAME FORECAST: the normalised RMSE over all channels, or a dash.
rmse() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))["rmse"].get(sys.argv[2])
print("-" if value is None else f"{value:.3f}")' "$out/scores-$1.json" "$2"
}

mkdir -p "$out/data" "$out/logs" "$out/pictures"
say "simulating a box of the universe (dark matter and gas, 64^3 cells)"
"$welkin" data simulate nbody --out "$out/data/nbody" --edge 64 --quiet
say "simulating a globe (two-layer atmosphere, 20 channels of 48 x 96 points every six hours)"
"$welkin" data simulate weather --out "$out/data/weather" --quiet
train unet nbody
train vit weather
judge unet --channels gas_density,gas_temperature
judge vit --channels t2m,v10m,tcwv  # no map of them shows the edges of patches

shown=${out#"$root"/}
say "done"
cat <<TEXT

RMSE on data kept apart, in standard deviations (smaller is better)
  model  task                                    model   persistence  time mean
  unet   dark matter -> gas, 64^3 box            $(printf '%-7s %-12s %s' "$(rmse unet model)" "$(rmse unet persistence)" "$(rmse unet 'time mean')")
  vit    20 fields of the globe, 6 hours ahead   $(printf '%-7s %-12s %s' "$(rmse vit model)" "$(rmse vit persistence)" "$(rmse vit 'time mean')")

Look at next
  $shown/pictures/             input, target, prediction and difference of some samples (PNG), and all fields (HDF5)
  $shown/scores-vit.txt        scores channel by channel
  $shown/logs/                 run folders: logs, checkpoints, TensorBoard events
  config/quickstart.yaml               what was trained; change a value and run ./quickstart.sh again
  docs/results/real-data.md            the same on real fields: reanalysis, climate, a cosmology box
TEXT
