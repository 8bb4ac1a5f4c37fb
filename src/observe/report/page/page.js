// SPDX-License-Identifier: Apache-2.0
"use strict";
// The page: its sections, plots that follow the reader's choices, and new data while runs go on.

const kSections = [["curves", "Curves", curves_section], ["runs", "Runs", runs_section], ["configuration", "Configuration differences", configuration_section], ["timeline", "Timeline", timeline_section],
  ["scores", "Scores of forecasts", scores_section], ["pictures", "Pictures", pictures_section], ["events", "Events", events_section], ["environment", "Surroundings", environment_section]];
const plots = new Map(); // tag to Plot

function is_score(tag) {
  return tag === data.score || tag.startsWith("Loss/") || tag.startsWith("RMSE");
}

function all_tags() {
  const tags = [...new Set(data.runs.flatMap((run) => Object.keys(run.curves)))];
  return tags.sort((a, b) => (b === data.score) - (a === data.score) || is_score(b) - is_score(a) || (a < b ? -1 : 1));
}

function axis_unit() {
  return time_unit(Math.max(...data.runs.map((run) => run.seconds), 0));
}

function axis_name() {
  return state.axis === "time" ? `${axis_unit().name} since the first event` : state.axis === "samples" ? "samples" : "steps";
}

// The curves of a tag for the shown runs along the chosen axis.
function series_of(tag) {
  const unit = axis_unit();
  return data.runs.flatMap((run, i) => {
    const curve = is_shown(run) && run.curves[tag];
    const line = curve ? along(run, curve, state.axis, unit) : null;
    return line ? [{name: run.label, ...line, ...look(i)}] : [];
  });
}

function is_log(tag, series) {
  if (series.length === 0 || state.scale === "linear") return false;
  if (state.scale === "log") return all_positive(series);
  return is_score(tag) && wants_log(series);
}

// Says how many of the points this page holds.
function thinned_note(tag) {
  let all = 0, held = 0;
  for (const run of data.runs) {
    if (!run.curves[tag]) continue;
    all += run.curves[tag].n;
    held += run.curves[tag].value.length;
  }
  return held < all ? `${held} of ${all} points, extremes kept` : "";
}

function link(from, window) {
  if (!state.linked) return;
  for (const plot of plots.values()) {
    if (plot === from) continue;
    plot.window = window;
    plot.is_stale = true;
    if (plot.is_visible && plot.graph) plot.look_at(window, false);
  }
}

function update_plots(keeps_window = true) {
  for (const [tag, plot] of plots) {
    const series = series_of(tag);
    plot.x_name = axis_name();
    const note = thinned_note(tag);
    plot.card.querySelector(".x-name").textContent = note ? `${plot.x_name} \u00b7 ${note}` : plot.x_name;
    if (!keeps_window) plot.window = null;
    plot.cursor = null;
    plot.card.hidden = !tag.toLowerCase().includes(state.filter.toLowerCase());
    const graph = plot.graph;
    if (!plot.is_visible) plot.graph = null; // drawn when it comes into view
    plot.set(series, is_log(tag, series));
    plot.graph = graph;
  }
}

function curves_section() {
  plots.clear();
  const choose = (name, keeps_window) => (value) => {
    state[name] = value;
    update_plots(keeps_window);
  };
  const filter = element("input", {type: "search", value: state.filter, oninput: () => choose("filter", true)(filter.value)});
  const linked = element("input", {type: "checkbox", checked: state.linked, onchange: () => { state.linked = linked.checked; }});
  const controls = element("p", {class: "controls"}, select("By", [["step", "steps"], ["time", "relative wall time"], ["samples", "samples"]], state.axis, choose("axis", false)),
    select("Values", [["auto", "linear, wide scores logarithmic"], ["linear", "linear"], ["log", "logarithmic"]], state.scale, choose("scale", true)),
    element("label", {}, "Only ", filter), element("label", {}, linked, " zoom all together"));
  const cards = all_tags().map((tag) => {
    const series = series_of(tag);
    const plot = new Plot(tag, axis_name(), thinned_note(tag), series, {log: is_log(tag, series), on_window: link});
    plots.set(tag, plot);
    plot.card.hidden = !tag.toLowerCase().includes(state.filter.toLowerCase());
    return watch(plot);
  });
  return [controls, element("p", {class: "quiet"}, "Drag to zoom, Shift and drag to move, double click for all; with the keyboard: arrows, +, \u2212, 0."), element("div", {class: "cards"}, ...cards)];
}

function rebuild(id) {
  const [, title, make] = kSections.find(([name]) => name === id);
  document.getElementById(id).replaceChildren(element("h2", {}, title), ...make());
}

function head_words() {
  return `${data.runs.length} run${data.runs.length === 1 ? "" : "s"}, ${data.made}`;
}

// Tags and names are arbitrary: a tag "constructor" must be a curve of the runs that have it, and undefined for the others.
function received(fresh) {
  for (const run of fresh.runs) {
    for (const named of [run.curves, run.pictures, run.environment]) Object.setPrototypeOf(named, null);
  }
  return fresh;
}

function build() {
  const page = document.getElementById("page");
  page.replaceChildren(element("header", {}, element("h1", {}, "Runs"), element("p", {id: "head"}, head_words()), element("p", {id: "live", role: "status"}),
    element("nav", {"aria-label": "Sections"}, ...kSections.map(([id, title]) => element("a", {href: `#${id}`}, title)))),
  ...kSections.map(([id]) => element("section", {id})));
  rebuild("curves");
  // Curves are seen first; the sections below them follow right after.
  requestAnimationFrame(() => setTimeout(() => kSections.forEach(([id]) => id === "curves" || rebuild(id))));
}

// New data of running runs; the reader's choices, scroll position and zoom stay.
function welkinUpdate(fresh) {
  const had = data.runs.map((run) => run.label).join("\n") + all_tags().join("\n");
  data = received(fresh);
  document.getElementById("head").textContent = head_words();
  if (data.runs.map((run) => run.label).join("\n") + all_tags().join("\n") === had) update_plots();
  else rebuild("curves");
  const focused = document.activeElement;
  for (const [id] of kSections) {
    if (id !== "curves" && !document.getElementById(id).contains(focused)) rebuild(id);
  }
  say_live();
}
window.welkinUpdate = welkinUpdate;

// Names the runs that ended without saying so.
function lost_words() {
  const lost = data.runs.filter((run) => run.state === "killed" || run.state === "silent").map((run) => run.label);
  return lost.length > 0 ? ` Ended without a word, or write no more: ${lost.join(", ")}.` : "";
}

function say_live(trouble = "") {
  document.getElementById("live").textContent = trouble || (data.live ? "Runs go on; this page follows them." : live_file ? "The runs have ended." : "") + lost_words();
}

// A page from a file may load scripts beside it, but nothing else.
function load_live() {
  const script = element("script", {src: `${live_file}?${Date.now()}`, nonce: own_nonce});
  script.onload = script.onerror = (event) => {
    script.remove();
    if (event.type === "error") say_live("The new data cannot be read: this page stays as it is until it can.");
    if (data.live) setTimeout(load_live, kLiveMilliseconds);
  };
  document.head.append(script);
}

const kLiveMilliseconds = 2000;
const own_nonce = document.currentScript.nonce;
const holder = document.getElementById("data");
const live_file = holder.dataset.live;
data = received(JSON.parse(holder.textContent));
holder.textContent = "";
build();
say_live();
if (data.live && live_file) setTimeout(load_live, kLiveMilliseconds);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  known_colors = null;
  kSections.forEach(([id]) => rebuild(id));
});
