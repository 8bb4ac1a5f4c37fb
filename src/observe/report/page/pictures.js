// SPDX-License-Identifier: Apache-2.0
"use strict";
// Pictures of fields over the steps of a run, with a slider; a second run beside it if one is chosen.

const picture_choice = {run: null, other: "", tag: null, place: null, timer: 0};

function pictures_section() {
  const runs = data.runs.filter((run) => Object.keys(run.pictures).length > 0);
  if (runs.length === 0) return [element("p", {class: "quiet"}, "No event file has pictures.")];
  const choice = picture_choice;
  const run = runs.find((one) => one.label === choice.run) || runs[0];
  const tags = Object.keys(run.pictures), tag = tags.includes(choice.tag) ? choice.tag : tags[0];
  const other = runs.find((one) => one.label === choice.other && one !== run && one.pictures[tag]);
  const steps = [...new Set([run, other].filter(Boolean).flatMap((one) => one.pictures[tag].map((picture) => picture.step)))].sort((a, b) => a - b);
  const last = steps.length - 1, place = Math.min(choice.place ?? last, last);
  const shown = [run, other].filter(Boolean).map((one) => ({one, image: element("img", {}), words: element("figcaption", {})}));
  const slider = element("input", {type: "range", min: 0, max: last, value: place, "aria-label": "step of the picture", disabled: last === 0});
  const output = element("output", {});
  const show = (at) => {
    choice.place = at === last ? null : at; // keeps following the newest as the run goes on
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${steps[at]}`);
    output.textContent = `step ${steps[at]} (${at + 1} of ${steps.length})`;
    for (const {one, image, words} of shown) {
      const picture = one.pictures[tag].filter((each) => each.step <= steps[at]).pop() || one.pictures[tag][0];
      image.src = `data:image/png;base64,${picture.png}`;
      image.alt = `${tag} of ${one.label} at step ${picture.step}`;
      words.textContent = `${one.label}, step ${picture.step}`;
    }
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  const play = element("button", {type: "button", disabled: last === 0, onclick: () => {
    clearInterval(choice.timer);
    const is_playing = play.textContent === "Play";
    play.textContent = is_playing ? "Stop" : "Play";
    if (is_playing) choice.timer = setInterval(() => show((Number(slider.value) + 1) % steps.length), 600);
  }}, "Play");
  clearInterval(choice.timer);
  const change = (name) => (value) => {
    choice[name] = value;
    rebuild("pictures");
  };
  show(place);
  return [element("p", {class: "controls"}, select("Run", runs.map((one) => [one.label, one.label]), run.label, change("run")), select("Picture", tags.map((one) => [one, one]), tag, change("tag")),
    select("Beside it", [["", "nothing"], ...runs.filter((one) => one !== run && one.pictures[tag]).map((one) => [one.label, one.label])], other ? other.label : "", change("other"))),
  element("p", {class: "controls slider"}, slider, play, output), element("div", {class: "pictures"}, ...shown.map(({image, words}) => element("figure", {}, image, words)))];
}
