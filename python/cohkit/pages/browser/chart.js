// Step-by-step view of message sequences, with the state of every agent.

const ROW = 30, TOP = 44;
// Minimum and maximum width of a lane, in pixels.
const NARROW = 160, BROAD = 420;

// Row of each step. A step that receives a message immediately after it was sent shares the row of the sending step.
function placed(steps) {
  const rows = [];
  let row = -1;
  steps.forEach((step, at) => {
    const before = steps[at - 1];
    const same = step.action.kind === "receive" && before && before.action.kind === "send" && before.action.flight === step.action.flight;
    if (!same) row += 1;
    rows.push(row);
  });
  return { rows, count: row + 1 };
}

function inWords(sequence, step) {
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
function after(sequence, count, initial) {
  const states = new Map(), flights = new Map();
  const lines = [...new Set(sequence.steps.map((step) => step.line))].sort();
  const become = new Set(sequence.steps.filter((step) => step.action.kind === "becomes").map((step) => step.agent));
  for (const line of lines.length ? lines : [undefined]) {
    sequence.agents.forEach((agent, at) => {
      // Memory and devices have no states.
      const state = initial(agent);
      if (state !== null || become.has(at)) states.set(`${at} ${line}`, { agent, line, state: state ?? "initial state", changed: false });
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

function arrow(x1, y1, x2, y2) {
  const turn = Math.atan2(y2 - y1, x2 - x1), size = 8;
  const corner = (side) => `${x2 - size * Math.cos(turn + side * 0.45)},${y2 - size * Math.sin(turn + side * 0.45)}`;
  return [
    drawing("line", { class: "arrow", x1, y1, x2, y2 }),
    drawing("polygon", { class: "head", points: `${x2},${y2} ${corner(1)} ${corner(-1)}` }),
  ];
}

// One drawing per step. A message belongs to its sending step, and is drawn up to its receiver.
function drawnSteps(sequence, lane) {
  const { rows, count } = placed(sequence.steps);
  const x = (agent) => lane / 2 + agent * lane;
  const y = (row) => TOP + (row + 0.7) * ROW;
  const taken = new Map();
  sequence.steps.forEach((step, at) => { if (step.action.kind === "receive") taken.set(step.action.flight, at); });
  const line = (step) => (step.line === undefined ? "" : ` [${step.line}]`);
  const groups = sequence.steps.map((step, at) => {
    const action = step.action, from = x(step.agent), high = y(rows[at]);
    const group = drawing("g", { "data-step": at });
    if (action.kind === "send") {
      const end = taken.has(action.flight) ? rows[taken.get(action.flight)] : rows[at];
      const to = x(action.to), right = to >= from;
      const words = drawing("text", { x: from + (right ? 10 : -10), y: high - 5, "text-anchor": right ? "start" : "end" }, action.message + line(step));
      if (to === from) group.append(drawing("circle", { class: "arrow", cx: from, cy: high, r: 5 }), words);
      else group.append(...arrow(from, high, to, y(end)), words);
      if (!taken.has(action.flight)) group.append(drawing("circle", { class: "arrow", cx: to, cy: high, r: 4 }));
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

function drawn(sequence, width) {
  const lane = Math.max(NARROW, Math.min(BROAD, (width - 60) / sequence.agents.length));
  const { groups, count, x, y, rows } = drawnSteps(sequence, lane);
  const wide = sequence.agents.length * lane + 60, high = TOP + count * ROW + 16;
  const picture = drawing("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "message sequence chart" });
  sequence.agents.forEach((agent, at) => {
    picture.append(drawing("line", { class: "line", x1: x(at), y1: TOP - 8, x2: x(at), y2: high - 8 }));
    picture.append(drawing("text", { x: x(at), y: 22, "text-anchor": "middle", "font-weight": "bold" }, agent));
  });
  picture.append(...groups);
  return { picture, groups, height: (step) => y(rows[step]) };
}

// A chart with buttons, a slider and arrow keys, and one sentence per step. `initial` returns the initial state of an
// agent.
function player(sequence, initial) {
  const most = sequence.steps.length;
  let groups = [], height = () => 0, now = most;
  const frame = fitted({ class: "drawn", tabindex: 0, role: "group", "aria-label": "message sequence chart; arrow keys step" }, (wide, place) => {
    const made = drawn(sequence, wide);
    ({ groups, height } = made);
    place.replaceChildren(made.picture);
    go(now);
  });
  const said = element("p", { class: "said", "aria-live": "polite" });
  const beside = element("div", {});
  const sentencesOf = sequence.steps.map((step, at) => element("li", {},
    element("button", { type: "button", class: "plain", click: () => go(at + 1) }, inWords(sequence, step))));
  const story = element("ol", { class: "story", "aria-label": "story" }, sentencesOf);
  const go = (to) => {
    now = Math.max(0, Math.min(most, to));
    const kind = (at) => (at >= now ? "later" : at === now - 1 ? "now" : "");
    groups.forEach((group, at) => group.setAttribute("class", kind(at)));
    sentencesOf.forEach((one, at) => one.setAttribute("class", kind(at)));
    said.textContent = now === 0 ? "At the start." : `${now} of ${most}: ${inWords(sequence, sequence.steps[now - 1])}`;
    slider.value = now;
    first.disabled = back.disabled = now === 0;
    last.disabled = next.disabled = now === most;
    const { states, flights, lines } = after(sequence, now, initial);
    const rows = states.map((one) => element("tr", { class: one.changed ? "changed" : null },
      element("td", {}, one.agent), lines.length > 1 ? element("td", {}, `line ${one.line}`) : null, element("td", { class: "mono" }, one.state)));
    beside.replaceChildren(
      element("table", { class: "states" }, element("tbody", {}, rows)),
      element("h3", {}, "In flight"),
      flights.length ? element("ul", { class: "mono" }, flights.map((flight) => element("li", {}, flight))) : element("p", { class: "faint" }, "No message."));
    if (now === 0) return;
    reveal(frame, height(now - 1), 40);
    reveal(story, sentencesOf[now - 1].offsetTop, 24);
  };
  const button = (text, label, to) => element("button", { type: "button", "aria-label": label, title: label, click: () => go(to()) }, text);
  const first = button("\u00ab", "to the start", () => 0), back = button("\u2039", "a step back", () => now - 1);
  const next = button("\u203a", "a step on", () => now + 1), last = button("\u00bb", "to the end", () => most);
  const slider = element("input", { type: "range", min: 0, max: most, "aria-label": "step", input: () => go(Number(slider.value)) });
  const keys = { ArrowRight: () => now + 1, ArrowDown: () => now + 1, ArrowLeft: () => now - 1, ArrowUp: () => now - 1, Home: () => 0, End: () => most };
  frame.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(keys[event.key]());
  });
  const made = element("section", { class: "player-frame" },
    element("div", { class: "bar" }, first, back, next, last, slider), said,
    element("div", { class: "player" }, frame,
      element("aside", { class: "beside", "aria-label": "state of every agent" }, element("h3", {}, "Agents"), beside),
      element("section", { class: "told" }, element("h3", {}, "Story"), story)));
  go(most);
  return made;
}

// Scrolls only a frame, to a vertical position in it.
function reveal(frame, at, margin) {
  if (at < frame.scrollTop + margin || at > frame.scrollTop + frame.clientHeight - margin) frame.scrollTop = at - frame.clientHeight / 2;
}
