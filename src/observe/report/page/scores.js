// SPDX-License-Identifier: Apache-2.0
"use strict";
// Scores of forecasts by channel and lead: a plot of one score of one channel, and a table of all channels and leads.

const score_choice = {score: null, channel: null, place: null};

function chosen(values, wanted) {
  return values.includes(wanted) ? wanted : values[0];
}

function scores_section() {
  if (data.scores.length === 0) return [element("p", {class: "quiet"}, "No scores: give files of welkin evaluate --json with --scores.")];
  const distinct = (rows, name) => [...new Set(rows.map((row) => row[name]))];
  const base = (row) => row.score.split(" [")[0];
  const kinds = [...new Set(data.scores.map(base))], kind = chosen(kinds, score_choice.score);
  const of_kind = data.scores.filter((row) => base(row) === kind);
  const places = distinct(of_kind, "place"), place = chosen(places, score_choice.place);
  const here = of_kind.filter((row) => row.place === place);
  const channels = distinct(here, "channel"), channel = chosen(channels, score_choice.channel);
  const change = (name) => (value) => {
    score_choice[name] = value;
    rebuild("scores");
  };
  const pairs = (values) => values.map((value) => [value, value || "everything"]);
  const controls = element("p", {class: "controls"}, select("Score", pairs(kinds), kind, change("score")), select("Channel", pairs(channels), channel, change("channel")),
    places.length > 1 ? select("Of", pairs(places), place, change("place")) : "");
  const name_of = (row) => distinct(data.scores, "source").length > 1 ? `${row.source}: ${row.forecast}` : row.forecast;
  const lines = here.filter((row) => row.channel === channel);
  const parts = [controls];
  if (lines.some((row) => row.leads.length > 1)) {
    const plot = new Plot(`${channel}, ${lines[0].score}`, `lead in ${lines[0].unit}`, "", lines.map((row, i) => ({name: name_of(row), x: row.leads, y: row.values, ...look(i)})));
    const names = element("ul", {class: "names"}, ...lines.map((row, i) => element("li", {}, swatch(i), " ", name_of(row))));
    parts.push(element("div", {class: "cards"}, watch(plot), names));
  }
  parts.push(score_table(here, channels, name_of));
  return parts;
}

// A row per channel and forecast, a column per lead.
function score_table(here, channels, name_of) {
  const leads = [...new Set(here.flatMap((row) => row.leads))].sort((a, b) => a - b);
  const shown = leads.length > 12 ? leads.filter((_, i) => i % Math.ceil(leads.length / 12) === 0 || i === leads.length - 1) : leads;
  const rows = channels.flatMap((channel) => here.filter((row) => row.channel === channel).map((row) => element("tr", {}, element("th", {scope: "row"}, `${channel}`), element("td", {}, name_of(row)),
    element("td", {}, row.score),
    ...shown.map((lead) => {
      const at = row.leads.indexOf(lead), value = at < 0 ? null : row.values[at];
      const interval = value !== null && row.low[at] !== undefined && row.low[at] !== null ? `${short_number(row.low[at])} to ${short_number(row.high[at])}` : null;
      return element("td", {class: "number", title: interval}, value === null ? "-" : short_number(value));
    }))));
  const unit = here.length > 0 ? here[0].unit : "";
  return table("Scores by channel and lead", [...["channel", "forecast", "score"].map((name) => element("th", {scope: "col"}, name)),
    ...shown.map((lead) => element("th", {scope: "col", class: "number"}, `${lead} ${unit === "hours" ? "h" : lead === 1 ? "step" : "steps"}`))], rows);
}
