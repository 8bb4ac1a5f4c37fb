// SPDX-License-Identifier: Apache-2.0
"use strict";
// Times of training, validation and events: one lane per run, aligned at their first event.

const kMarks = {__proto__: null, checkpoint: "\u25be", resumed: "\u21bb", rollback: "\u21b6", spike: "\u25b2", fault: "\u2716", failed: "\u2716", slow_rank: "\u25c6", interrupted: "\u25a0", finished: "\u25cf"};

function timeline_section() {
  const lanes = data.runs.filter((run) => run.phases.shown.length > 0);
  if (lanes.length === 0) return [element("p", {class: "quiet"}, "No run has epochs with a duration.")];
  const longest = Math.max(...lanes.map((run) => Math.max(run.seconds, run.phases.shown[run.phases.shown.length - 1][1]))) || 1;
  const share = (seconds) => `${(100 * Math.min(Math.max(seconds / longest, 0), 1)).toFixed(3)}%`;
  const percent = (seconds, run) => run.seconds > 0 ? `${(100 * seconds / run.seconds).toFixed(0)} %` : "-";
  const rows = lanes.map((run) => {
    const lane = element("div", {class: "lane", "aria-hidden": "true"});
    for (const [begin, end, kind] of run.phases.shown) {
      const box = element("span", {class: kind === 0 ? "train" : "valid"});
      box.style.left = share(begin);
      box.style.width = share(end - begin);
      lane.append(box);
    }
    for (const [, seconds, name, step] of run.events) {
      if (!kMarks[name] || seconds < 0) continue;
      const mark = element("span", {class: kTrouble.has(name) ? "happening bad" : "happening", title: `${name}, step ${step}, after ${duration_text(seconds)}`}, kMarks[name]);
      mark.style.left = share(seconds);
      lane.append(mark);
    }
    const other = Math.max(run.seconds - run.phases.training_s - run.phases.validation_s, 0);
    return element("tr", {}, element("th", {scope: "row"}, swatch(data.runs.indexOf(run)), " ", run.label), element("td", {class: "wide"}, lane), element("td", {class: "number"}, duration_text(run.seconds)),
      ...[run.phases.training_s, run.phases.validation_s, other].map((seconds) => element("td", {class: "number"}, percent(seconds, run))));
  });
  const legend = element("p", {class: "legend"}, element("span", {class: "key train"}), " training ", element("span", {class: "key valid"}), " validation and what is written behind an epoch; ",
    Object.entries(kMarks).map(([name, mark]) => `${mark} ${name}`).join("  "));
  return [legend, table("Timeline of phases", ["run", `0 to ${duration_text(longest)}`, "from first to last event", "training", "validation", "other"].map((name, i) => element("th", {scope: "col", class: i > 1 ? "number" : null}, name)), rows)];
}
