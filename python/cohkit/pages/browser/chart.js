// Step-by-step view of message sequences, with the state of every agent.

// Height of a row, and position of the first row, in pixels.
const ROW = 30, TOP = 44;
// Minimum and maximum width of a lane, in pixels.
const MIN_LANE_WIDTH = 160, MAX_LANE_WIDTH = 420;

// Row of each step. A step that receives a message immediately after it was sent shares the row of the sending step.
function stepRows(steps) {
  const rows = [];
  let row = -1;
  steps.forEach((step, index) => {
    const previous = steps[index - 1];
    const same = step.action.kind === "receive" && previous && previous.action.kind === "send" && previous.action.flight === step.action.flight;
    if (!same) row += 1;
    rows.push(row);
  });
  return { rows, count: row + 1 };
}

// Describes a step in one sentence, with its line if the step belongs to one.
function stepSentence(sequence, step) {
  const agents = sequence.agents, action = step.action, who = agents[step.agent];
  const line = step.line === undefined ? "" : `line ${step.line}: `;
  switch (action.kind) {
    case "send": return `${line}${who} sends ${action.message} to ${agents[action.to]}`;
    case "receive": return `${line}${who} receives ${action.message} from ${agents[action.from]}`;
    case "becomes": return `${line}${who} enters ${action.state}`;
    default: return `${line}${who}: ${action.what}`;
  }
}

// States of all agents and messages in flight, after `count` steps.
function stateAfter(sequence, count, initial) {
  const states = new Map(), flights = new Map();
  const lines = [...new Set(sequence.steps.map((step) => step.line))].sort();
  const become = new Set(sequence.steps.filter((step) => step.action.kind === "becomes").map((step) => step.agent));
  for (const line of lines.length ? lines : [undefined]) {
    sequence.agents.forEach((agent, index) => {
      // Memory and devices have no states.
      const state = initial(agent);
      if (state !== null || become.has(index)) states.set(`${index} ${line}`, { agent, line, state: state ?? "initial state", changed: false });
    });
  }
  sequence.steps.slice(0, count).forEach((step, number) => {
    const action = step.action;
    if (action.kind === "becomes") {
      const key = `${step.agent} ${step.line}`;
      states.set(key, { ...states.get(key), state: action.state, changed: number === count - 1 });
    }
    if (action.kind === "send") flights.set(action.flight, `${action.message}: ${sequence.agents[step.agent]} \u2192 ${sequence.agents[action.to]}`);
    if (action.kind === "receive") flights.delete(action.flight);
  });
  return { states: [...states.values()], flights: [...flights.values()], lines };
}

// Returns a line with an arrowhead at its second end.
function arrow(x1, y1, x2, y2) {
  const turn = Math.atan2(y2 - y1, x2 - x1), size = 8;
  const corner = (side) => `${x2 - size * Math.cos(turn + side * 0.45)},${y2 - size * Math.sin(turn + side * 0.45)}`;
  return [
    drawing("line", { class: "arrow", x1, y1, x2, y2 }),
    drawing("polygon", { class: "head", points: `${x2},${y2} ${corner(1)} ${corner(-1)}` }),
  ];
}

// One drawing per step. A message belongs to its sending step, and is drawn up to its receiver.
function stepGroups(sequence, lane) {
  const { rows, count } = stepRows(sequence.steps);
  const x = (agent) => lane / 2 + agent * lane;
  const y = (row) => TOP + (row + 0.7) * ROW;
  const receiveSteps = new Map();
  sequence.steps.forEach((step, index) => { if (step.action.kind === "receive") receiveSteps.set(step.action.flight, index); });
  const line = (step) => (step.line === undefined ? "" : ` [${step.line}]`);
  const groups = sequence.steps.map((step, index) => {
    const action = step.action, from = x(step.agent), high = y(rows[index]);
    const group = drawing("g", { "data-step": index });
    if (action.kind === "send") {
      const end = receiveSteps.has(action.flight) ? rows[receiveSteps.get(action.flight)] : rows[index];
      const to = x(action.to), right = to >= from;
      const words = drawing("text", { x: from + (right ? 10 : -10), y: high - 5, "text-anchor": right ? "start" : "end" }, action.message + line(step));
      if (to === from) group.append(drawing("circle", { class: "arrow", cx: from, cy: high, r: 5 }), words);
      else group.append(...arrow(from, high, to, y(end)), words);
      if (!receiveSteps.has(action.flight)) group.append(drawing("circle", { class: "arrow", cx: to, cy: high, r: 4 }));
    } else if (action.kind === "receive") {
      group.append(drawing("circle", { class: "head", cx: from, cy: high, r: 3.5 }));
    } else {
      const becomes = action.kind === "becomes", words = (becomes ? action.state : action.what) + line(step);
      const wide = words.length * 7.9 + 12;
      // Keep text at the edge of a lane inside the drawing.
      const left = becomes ? Math.max(2, from - wide / 2) : from + 8;
      if (becomes) group.append(drawing("rect", { class: "box", x: left, y: high - 11, width: wide, height: 22, rx: 11 }));
      else group.append(drawing("circle", { class: "head", cx: from, cy: high, r: step.visible ? 4 : 2.5 }));
      group.append(drawing("text", { x: left + (becomes ? 6 : 2), y: high + 4 }, words));
    }
    return group;
  });
  return { groups, count, x, y, rows };
}

// Draws a whole sequence for a frame of this width. Returns the picture, the groups of the steps, and a function from
// the number of a step to its vertical position.
function sequencePicture(sequence, width) {
  const lane = Math.max(MIN_LANE_WIDTH, Math.min(MAX_LANE_WIDTH, (width - 60) / sequence.agents.length));
  const { groups, count, x, y, rows } = stepGroups(sequence, lane);
  const wide = sequence.agents.length * lane + 60, high = TOP + count * ROW + 16;
  const picture = drawing("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "message sequence chart" });
  sequence.agents.forEach((agent, index) => {
    picture.append(drawing("line", { class: "line", x1: x(index), y1: TOP - 8, x2: x(index), y2: high - 8 }));
    picture.append(drawing("text", { x: x(index), y: 22, "text-anchor": "middle", "font-weight": "bold" }, agent));
  });
  picture.append(...groups);
  return { picture, groups, height: (step) => y(rows[step]) };
}

// A chart with buttons, a slider and arrow keys, and one sentence per step. `initial` returns the initial state of an
// agent.
function player(sequence, initial) {
  const stepCount = sequence.steps.length;
  let groups = [], height = () => 0, current = stepCount;
  const frame = fittedFrame({ class: "drawn", tabindex: 0, role: "group", "aria-label": "message sequence chart; arrow keys step" }, (wide, container) => {
    const chart = sequencePicture(sequence, wide);
    ({ groups, height } = chart);
    container.replaceChildren(chart.picture);
    go(current);
  });
  const sentence = element("p", { class: "said", "aria-live": "polite" });
  const statePanel = element("div", {});
  const stepItems = sequence.steps.map((step, index) => element("li", {},
    element("button", { type: "button", class: "plain", click: () => go(index + 1) }, stepSentence(sequence, step))));
  const story = element("ol", { class: "story", "aria-label": "story" }, stepItems);
  const go = (to) => {
    current = Math.max(0, Math.min(stepCount, to));
    const kind = (index) => (index >= current ? "later" : index === current - 1 ? "now" : "");
    groups.forEach((group, index) => group.setAttribute("class", kind(index)));
    stepItems.forEach((item, index) => item.setAttribute("class", kind(index)));
    sentence.textContent = current === 0 ? "At the start." : `${current} of ${stepCount}: ${stepSentence(sequence, sequence.steps[current - 1])}`;
    slider.value = current;
    first.disabled = back.disabled = current === 0;
    last.disabled = next.disabled = current === stepCount;
    const { states, flights, lines } = stateAfter(sequence, current, initial);
    const rows = states.map((item) => element("tr", { class: item.changed ? "changed" : null },
      element("td", {}, item.agent), lines.length > 1 ? element("td", {}, `line ${item.line}`) : null, element("td", { class: "mono" }, item.state)));
    statePanel.replaceChildren(
      element("table", { class: "states" }, element("tbody", {}, rows)),
      element("h3", {}, "In flight"),
      flights.length ? element("ul", { class: "mono" }, flights.map((flight) => element("li", {}, flight))) : element("p", { class: "faint" }, "No message."));
    if (current === 0) return;
    reveal(frame, height(current - 1), 40);
    reveal(story, stepItems[current - 1].offsetTop, 24);
  };
  const button = (text, label, to) => element("button", { type: "button", "aria-label": label, title: label, click: () => go(to()) }, text);
  const first = button("\u00ab", "to the start", () => 0), back = button("\u2039", "a step back", () => current - 1);
  const next = button("\u203a", "a step on", () => current + 1), last = button("\u00bb", "to the end", () => stepCount);
  const slider = element("input", { type: "range", min: 0, max: stepCount, "aria-label": "step", input: () => go(Number(slider.value)) });
  const keys = { ArrowRight: () => current + 1, ArrowDown: () => current + 1, ArrowLeft: () => current - 1, ArrowUp: () => current - 1, Home: () => 0, End: () => stepCount };
  frame.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(keys[event.key]());
  });
  const chart = element("section", { class: "player-frame" },
    element("div", { class: "bar" }, first, back, next, last, slider), sentence,
    element("div", { class: "player" }, frame,
      element("aside", { class: "beside", "aria-label": "state of every agent" }, element("h3", {}, "Agents"), statePanel),
      element("section", { class: "told" }, element("h3", {}, "Story"), story)));
  go(stepCount);
  return chart;
}

// Scrolls only a frame, to a vertical position in it.
function reveal(frame, position, margin) {
  if (position < frame.scrollTop + margin || position > frame.scrollTop + frame.clientHeight - margin) frame.scrollTop = position - frame.clientHeight / 2;
}
