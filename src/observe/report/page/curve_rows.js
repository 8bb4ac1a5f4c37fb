// SPDX-License-Identifier: Apache-2.0
"use strict";
// Curves of many runs as rows for dygraphs, and numbers as text. Curves are thinned to the available pixels: each interval of
// two pixels keeps the smallest and the largest value of each run.

function time_unit(longest) {
  if (longest > 2 * 3600) return {name: "hours", seconds: 3600};
  if (longest > 120) return {name: "minutes", seconds: 60};
  return {name: "seconds", seconds: 1};
}

// {x, y, name of the axis} of a run's curve along the chosen axis; null if the run's batch is not known.
function along(run, curve, axis, unit) {
  if (axis === "samples" && !run.batch) return null;
  const x = axis === "time" ? curve.time.map((t) => t / unit.seconds)
    : axis === "samples" ? curve.step.map((s) => s * run.batch) : curve.step;
  let in_order = true;
  for (let i = 1; i < x.length && in_order; ++i) in_order = x[i] >= x[i - 1];
  if (in_order) return {x, y: curve.value};
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b] || a - b);
  return {x: order.map((i) => x[i]), y: order.map((i) => curve.value[i])};
}

// The first index of x that is not below `value`.
function place_of(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Calls add(x, y) for the shown points of a curve between `low` and `high`, and for their neighbours outside.
function thin(curve, low, high, width, add) {
  const begin = Math.max(place_of(curve.x, low) - 1, 0), end = Math.min(place_of(curve.x, high) + 1, curve.x.length);
  if (end - begin <= 2 * width) {
    for (let i = begin; i < end; ++i) add(curve.x[i], curve.y[i]);
    return;
  }
  const stretch = 2 * (high - low) / width; // width of two pixels
  for (let i = begin; i < end;) {
    const cell = Math.floor((curve.x[i] - low) / stretch);
    let least = -1, most = -1, hole = -1;
    for (; i < end && Math.floor((curve.x[i] - low) / stretch) === cell; ++i) {
      if (curve.y[i] === null) hole = hole < 0 ? i : hole;
      else {
        if (least < 0 || curve.y[i] < curve.y[least]) least = i;
        if (most < 0 || curve.y[i] > curve.y[most]) most = i;
      }
    }
    const kept = [...new Set([least, most, hole])].filter((k) => k >= 0).sort((a, b) => a - b);
    // A place that all runs share, less than two pixels away: otherwise 50 runs would have 50 times the rows.
    kept.forEach((k, n) => add(low + (cell + (n + 0.5) / 3) * stretch, curve.y[k]));
  }
}

// [[x, y of curve 0, y of curve 1, ...], ...] in the order of x. null: no point; NaN: a value that is not finite.
function rows_of(curves, low, high, width) {
  const rows = new Map();
  curves.forEach((curve, c) => thin(curve, low, high, width, (x, y) => {
    let row = rows.get(x);
    if (row === undefined) {
      row = new Array(curves.length + 1).fill(null);
      row[0] = x;
      rows.set(x, row);
    }
    row[c + 1] = y === null ? NaN : y;
  }));
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

function extent_of(curves) {
  let low = Infinity, high = -Infinity;
  for (const {x} of curves) {
    if (x.length === 0) continue;
    low = Math.min(low, x[0]);
    high = Math.max(high, x[x.length - 1]);
  }
  if (low > high) return [0, 1];
  const air = (high - low) * 0.01 || 0.5;
  return [low - air, high + air];
}

// A loss that falls by more than a factor of five is clearer on a logarithmic axis.
function wants_log(curves) {
  let low = Infinity, high = 0;
  for (const {y} of curves) {
    for (const value of y) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low > 0 && high / low > 5;
}

function all_positive(curves) {
  return curves.every(({y}) => y.every((value) => value === null || value > 0));
}

function short_number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "not finite";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(3).replace(/\.?0+e/, "e");
  return Number(value.toPrecision(5)).toString();
}

// Text of an axis tick: few digits, large steps as 20k and 3M.
function tick_text(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return Number((value / 1e6).toPrecision(4)) + "M";
  if (size >= 1e4) return Number((value / 1e3).toPrecision(4)) + "k";
  return short_number(value);
}

function duration_text(seconds) {
  if (!(seconds >= 0)) return "-";
  const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Number(seconds.toPrecision(3))} s`;
}
