// SPDX-License-Identifier: Apache-2.0
"use strict";
// Shared by the sections: functions that make elements, the state of the page, and the look of a run in every plot.

// String children become text, never markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// The reader's choices; they survive an update of the data.
const state = {
  axis: "step", // or "time", "samples"
  scale: "auto", // of values: or "linear", "log"
  linked: false, // zoom all plots together
  filter: "",
  hidden: new Set(), // labels of runs
  sort: {column: -1, down: false},
  event: "",
};

let data = null;

const kDashes = [null, [7, 3], [2, 3], [9, 3, 2, 3]];

function style_value(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

let known_colors = null; // valid until the reader's colour scheme changes: reading a style makes the browser lay the page out

function colors() {
  known_colors ??= [1, 2, 3, 4, 5, 6].map((i) => style_value(`--run-${i}`));
  return known_colors;
}

// The colour and dashes of run i: 24 combinations.
function look(i) {
  const palette = colors();
  return {color: palette[i % palette.length], dashes: kDashes[Math.floor(i / palette.length) % kDashes.length]};
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A short line in the style of run i, for tables.
function swatch(i) {
  const {color, dashes} = look(i);
  const picture = svg("svg", {width: 34, height: 10, "aria-hidden": "true"});
  picture.append(svg("line", {x1: 1, y1: 5, x2: 33, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": dashes ? dashes.join(" ") : "none"}));
  return picture;
}

function is_shown(run) {
  return !state.hidden.has(run.label);
}

function select(label, options, chosen, on_change) {
  const box = element("select", {onchange: () => on_change(box.value)});
  for (const [value, text] of options) box.append(element("option", {value, selected: value === chosen}, text));
  return element("label", {}, label + " ", box);
}
