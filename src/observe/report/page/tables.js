// SPDX-License-Identifier: Apache-2.0
"use strict";
// Tables: the results of runs, differences of configuration, events, and machines.

function table(caption, head, rows, attributes = {}) {
  return element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    element("table", attributes, element("caption", {class: "unseen"}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

function sort_key(text) {
  const number = Number(text);
  return text === "-" || text === "" ? Infinity : Number.isNaN(number) ? text : number;
}

function ordered_runs() {
  const order = data.runs.map((_, i) => i), {column, down} = state.sort;
  if (column < 0) return order;
  const key = (i) => sort_key(data.rows[i][column]);
  order.sort((a, b) => {
    const left = key(a), right = key(b);
    const before = typeof left === typeof right ? (left < right ? -1 : left > right ? 1 : a - b) : typeof left === "number" ? -1 : 1;
    return down ? -before : before;
  });
  return order;
}

function column_head(name, column) {
  const chosen = state.sort.column === column;
  const sort = () => {
    state.sort = {column, down: chosen && !state.sort.down};
    rebuild("runs");
    document.querySelector(`[data-sort="${column}"]`).focus();
  };
  return element("th", {scope: "col", "aria-sort": chosen ? (state.sort.down ? "descending" : "ascending") : "none", class: column > 0 ? "number" : null},
    name ? element("button", {type: "button", class: "sort", "data-sort": column, onclick: sort}, name + (chosen ? (state.sort.down ? " \u25be" : " \u25b4") : "")) : element("span", {class: "unseen"}, "notes"));
}

function run_name(i) {
  const run = data.runs[i];
  const toggle = () => {
    if (is_shown(run)) state.hidden.add(run.label);
    else state.hidden.delete(run.label);
    update_plots();
  };
  return element("label", {class: "run"}, element("input", {type: "checkbox", checked: is_shown(run), onchange: toggle, "aria-label": `show ${run.label}`}), swatch(i), " ", run.label,
    run.state && run.state !== "finished" ? element("span", {class: `state ${run.state === "failed" ? "bad" : ""}`}, run.state) : "");
}

function runs_section() {
  const show_all = (shown) => {
    state.hidden = new Set(shown ? [] : data.runs.map((run) => run.label));
    rebuild("runs");
    update_plots();
  };
  const rows = ordered_runs().map((i) => element("tr", {}, element("th", {scope: "row"}, run_name(i)),
    ...data.rows[i].slice(1).map((cell, c) => element("td", {class: c + 2 < data.columns.length ? "number" : null}, cell))));
  return [element("p", {}, data.target_line + ". ", element("button", {type: "button", onclick: () => show_all(true)}, "Show all"), " ",
    element("button", {type: "button", onclick: () => show_all(false)}, "Hide all")),
  table("Runs", data.columns.map(column_head), rows)];
}

function configuration_section() {
  if (data.keys.length === 0) return [element("p", {class: "quiet"}, data.runs.length > 1 ? "No key differs between runs that say their configuration." : "One run: there is nothing to compare.")];
  const most = {}; // the most frequent value, which is printed in a quiet colour
  data.keys.forEach((_, k) => {
    const count = new Map();
    for (const run of data.runs) count.set(run.configuration[k], (count.get(run.configuration[k]) || 0) + 1);
    most[k] = [...count.entries()].sort((a, b) => b[1] - a[1])[0][0];
  });
  const rows = data.runs.map((run, i) => element("tr", {}, element("th", {scope: "row"}, swatch(i), " ", run.label),
    ...run.configuration.map((value, k) => element("td", {class: value === most[k] ? "quiet" : null}, value === null ? "not said" : value))));
  return [element("p", {}, `${data.keys.length} keys differ; values that most runs share are pale.`),
    table("Configuration differences", [element("th", {scope: "col"}, "run"), ...data.keys.map((key) => element("th", {scope: "col"}, key))], rows)];
}

const kMostEventRows = 300;
const kTrouble = new Set(["spike", "rollback", "fault", "failed", "slow_rank", "interrupted", "nonfinite"]);

function events_section() {
  const all = data.runs.flatMap((run, i) => run.events.map(([wall, seconds, name, step, rank, text]) => ({run, i, wall, seconds, name, step, rank, text})));
  if (all.length === 0) return [element("p", {class: "quiet"}, "No run has an events.jsonl.")];
  const total = data.runs.reduce((sum, run) => sum + run.num_events, 0);
  const names = [...new Set(all.map((event) => event.name))].sort();
  const shown = all.filter((event) => !state.event || event.name === state.event).sort((a, b) => a.wall - b.wall);
  const rows = shown.slice(-kMostEventRows).map((event) => element("tr", {}, element("td", {}, event.wall ? new Date(event.wall * 1000).toISOString().replace("T", " ").slice(0, 19) : "-"),
    element("td", {}, swatch(event.i), " ", event.run.label), element("td", {}, element("span", {class: kTrouble.has(event.name) ? "state bad" : "state"}, event.name)),
    element("td", {class: "number"}, String(event.step)), element("td", {class: "number"}, String(event.rank)), element("td", {class: "words"}, event.text)));
  const choice = select("Kind", [["", `all (${all.length})`], ...names.map((name) => [name, `${name} (${all.filter((event) => event.name === name).length})`])], state.event, (value) => {
    state.event = value;
    rebuild("events");
  });
  const left_out = total > all.length ? ` ${total - all.length} between the first and the last of a run are not in this page.` : "";
  return [element("p", {}, choice, ` ${shown.length > kMostEventRows ? `the latest ${kMostEventRows} of ${shown.length}.` : ""}${left_out}`),
    table("Events", ["time (UTC)", "run", "event", "step", "rank", "what"].map((name) => element("th", {scope: "col", class: name === "step" || name === "rank" ? "number" : null}, name)), rows)];
}

function environment_section() {
  const names = [...new Set(data.runs.flatMap((run) => Object.keys(run.environment)))];
  if (names.length === 0) return [element("p", {class: "quiet"}, "No run folder says on what it ran.")];
  const rows = data.runs.map((run, i) => element("tr", {}, element("th", {scope: "row"}, swatch(i), " ", run.label),
    ...names.map((name) => element("td", {class: "words"}, run.environment[name] ?? "-"))));
  return [table("Surroundings", [element("th", {scope: "col"}, "run"), ...names.map((name) => element("th", {scope: "col"}, name))], rows)];
}
