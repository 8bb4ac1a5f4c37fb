// SPDX-License-Identifier: Apache-2.0
"use strict";
// A plot: curves of one tag, or scores by lead. Dragging zooms, dragging with Shift moves, a double click shows everything;
// with keyboard focus, arrows read values, + and - zoom, 0 shows everything.

const kReadoutRuns = 6;

class Plot {
  // `series`: [{name, x, y, color, dashes}]; x ascending; null in y is a value that is not finite.
  constructor(title, x_name, note, series, options = {}) {
    this.x_name = x_name;
    this.on_window = options.on_window || (() => {});
    this.canvas = element("div", {class: "canvas", tabindex: 0, role: "application", "aria-label": `${title} by ${x_name}. Arrow keys read values, plus and minus zoom, 0 shows all.`, onkeydown: (event) => this.key(event)});
    this.readout = element("p", {class: "readout", "aria-live": "polite"}, "\u00a0");
    this.log_mark = element("span", {class: "mark"});
    const button = (text, name, act) => element("button", {type: "button", "aria-label": `${name}: ${title}`, title: name, onclick: act}, text);
    this.card = element("figure", {class: "card"},
      element("figcaption", {}, element("h3", {}, title), this.log_mark, element("span", {class: "tools"},
        button("+", "Zoom in", () => this.zoom(0.5)), button("\u2212", "Zoom out", () => this.zoom(2)), button("all", "Show all", () => this.reset()))),
      this.canvas, element("p", {class: "x-name"}, note ? `${x_name} \u00b7 ${note}` : x_name), this.readout);
    this.set(series, options.log === true);
  }

  set(series, log) {
    this.series = series;
    this.log = log;
    this.log_mark.textContent = log ? "log" : "";
    this.extent = extent_of(series);
    this.is_stale = true;
    if (this.graph) this.draw();
  }

  visible_window() {
    return this.window || this.extent;
  }

  draw() {
    this.is_stale = false;
    const width = Math.max(this.canvas.clientWidth, 200);
    const [low, high] = this.visible_window();
    this.rows = rows_of(this.series, low, high, width);
    if (this.rows.length === 0) this.rows = [[low, ...this.series.map(() => null)]];
    const options = {
      file: this.rows, labels: ["x", ...this.series.map((_, i) => `s${i}`)], colors: this.series.map((one) => one.color),
      dateWindow: [low, high], logscale: this.log, drawPoints: this.rows.length <= 60, pointSize: 2,
      series: Object.fromEntries(this.series.map((one, i) => [`s${i}`, {strokePattern: one.dashes}])),
      gridLineColor: style_value("--grid"), axisLineColor: style_value("--line"),
    };
    if (!this.graph) this.make(options);
    else this.graph.updateOptions(options);
    this.drawn = [low, high];
  }

  make(options) {
    const {file, ...rest} = options;
    this.graph = new Dygraph(this.canvas, file, {
      ...rest, legend: "never", connectSeparatedPoints: true, strokeWidth: this.series.length > 15 ? 1 : 1.5, highlightCircleSize: 4, animatedZooms: false, xRangePad: 0, yRangePad: 8,
      rightGap: 12, highlightSeriesOpts: this.series.length > 1 ? {strokeWidth: 3} : null, highlightSeriesBackgroundAlpha: 1,
      axes: {x: {axisLabelFormatter: tick_text, valueFormatter: short_number, axisLabelWidth: 56, pixelsPerLabel: 64}, y: {axisLabelFormatter: tick_text, axisLabelWidth: 58}},
      interactionModel: {...Dygraph.defaultInteractionModel, dblclick: () => this.reset()},
      highlightCallback: (event, x, points, row, name) => this.show(row, Number((name || "s0").slice(1))),
      unhighlightCallback: () => this.show(-1, 0),
      drawCallback: (graph, is_first) => is_first || this.moved(graph.xAxisRange()),
    });
  }

  // Redraws after zoom or move: the curves were thinned for the old range.
  moved([low, high]) {
    if (!this.drawn || (Math.abs(low - this.drawn[0]) + Math.abs(high - this.drawn[1])) < 1e-6 * (high - low)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look_at([low, high]), 60);
  }

  look_at(window, is_told = true) {
    this.window = window;
    if (this.graph) {
      this.graph.updateOptions({valueRange: null}, true);
      this.draw();
    }
    if (is_told) this.on_window(this, window);
  }

  reset() {
    this.look_at(null);
  }

  zoom(factor) {
    const [low, high] = this.visible_window(), half = (high - low) / 2 * factor, middle = this.cursor_x() ?? (low + high) / 2;
    const left = Math.max(middle - half, this.extent[0]), right = Math.min(middle + half, this.extent[1]);
    this.look_at(right - left >= this.extent[1] - this.extent[0] ? null : [left, right]);
  }

  cursor_x() {
    return this.cursor && this.rows[this.cursor.row] ? this.rows[this.cursor.row][0] : null;
  }

  // Shows the values of a row as text, the run under the mouse first. -1: none.
  show(row, chosen) {
    if (row < 0 || !this.rows[row]) {
      this.readout.textContent = "\u00a0";
      return;
    }
    const values = this.rows[row];
    const order = this.series.map((_, i) => i).filter((i) => values[i + 1] !== null).sort((a, b) => (b === chosen) - (a === chosen));
    const words = order.slice(0, kReadoutRuns).map((i) => `${this.series[i].name} ${short_number(values[i + 1])}`);
    if (order.length > kReadoutRuns) words.push(`and ${order.length - kReadoutRuns} more`);
    this.readout.textContent = `${this.x_name.split(" ")[0]} ${short_number(values[0])}: ${words.join(", ")}`;
  }

  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10};
    if (event.ctrlKey || event.altKey || event.metaKey || !this.graph) return;
    if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.reset();
    else if (event.key in steps) this.walk(steps[event.key]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.change_series(event.key === "ArrowUp" ? -1 : 1);
    else return;
    event.preventDefault();
  }

  walk(by) {
    const series = this.cursor ? this.cursor.series : 0;
    const has = (row) => this.rows[row][series + 1] !== null;
    let row = this.cursor ? this.cursor.row : by > 0 ? -1 : this.rows.length;
    for (let left = Math.abs(by); left > 0;) {
      let next = row + Math.sign(by);
      while (next >= 0 && next < this.rows.length && !has(next)) next += Math.sign(by);
      if (next < 0 || next >= this.rows.length) break;
      row = next;
      --left;
    }
    if (row >= 0 && row < this.rows.length) this.select(row, series);
  }

  change_series(by) {
    const series = (((this.cursor ? this.cursor.series : 0) + by) + this.series.length) % this.series.length;
    this.select(this.cursor ? Math.min(this.cursor.row, this.rows.length - 1) : 0, series);
  }

  select(row, series) {
    this.cursor = {row, series};
    this.graph.setSelection(row, `s${series}`);
    this.show(row, series);
  }
}

// Plots are drawn when they come into view.
const in_view = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const plot = entry.target.plot;
    plot.is_visible = entry.isIntersecting;
    if (plot.is_visible && plot.is_stale) plot.draw();
    if (plot.is_visible && !document.documentElement.dataset.firstPictureMs) requestAnimationFrame(() => {
      document.documentElement.dataset.firstPictureMs = String(Math.round(performance.now()));
    });
  }
}, {rootMargin: "150px"});

function watch(plot) {
  plot.card.plot = plot;
  in_view.observe(plot.card);
  return plot.card;
}
