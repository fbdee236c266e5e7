// A controller as a picture: states in layers by how far they are from the first, and what leads from one to another.

const WIDE = 150, HIGH = 34, GAP = 26, BETWEEN = 90;

function layers(table, first) {
  const next = new Map();
  const states = [...new Set(table.rows.flatMap((row) => (row.next === null ? [row.state] : [row.state, row.next])))];
  for (const state of states) next.set(state, new Set());
  for (const row of table.rows) if (row.next !== null && row.next !== row.state) next.get(row.state).add(row.next);
  const level = new Map();
  let now = first.filter((state) => next.has(state));
  if (!now.length) now = states.slice(0, 1);
  for (let far = 0; now.length; far += 1) {
    now.forEach((state) => level.set(state, far));
    now = [...new Set(now.flatMap((state) => [...next.get(state)]))].filter((state) => !level.has(state));
    // What nothing leads to stands beside the start of a piece of its own.
    if (!now.length) now = states.filter((state) => !level.has(state)).slice(0, 1);
  }
  const rows = [];
  for (const [state, far] of level) (rows[far] ||= []).push(state);
  // States go near the middle of those that lead to them: fewer lines cross.
  for (let turn = 0; turn < 4; turn += 1) {
    for (let far = 1; far < rows.length; far += 1) {
      const before = new Map(rows[far - 1].map((state, at) => [state, at]));
      const middle = (state) => {
        const from = rows[far - 1].filter((one) => next.get(one).has(state)).map((one) => before.get(one));
        return from.length ? from.reduce((sum, at) => sum + at, 0) / from.length : 0;
      };
      const keyed = rows[far].map((state, at) => [middle(state), at, state]);
      rows[far] = keyed.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((one) => one[2]);
    }
  }
  return rows;
}

function boxes(rows) {
  const place = new Map(), most = 6;
  let high = 20;
  // A layer with many states takes several lines.
  for (const row of rows) {
    for (let begin = 0; begin < row.length; begin += most) {
      row.slice(begin, begin + most).forEach((state, at) => place.set(state, { x: 20 + at * (WIDE + GAP), y: high }));
      high += HIGH + (begin + most < row.length ? 24 : BETWEEN);
    }
  }
  const wide = 20 + Math.min(most, Math.max(...rows.map((row) => row.length))) * (WIDE + GAP) + 40;
  return { place, wide, high };
}

function curve(from, to) {
  const x1 = from.x + WIDE / 2, x2 = to.x + WIDE / 2;
  if (from.y === to.y) {
    const bend = 22 + Math.abs(x2 - x1) / 14;
    return `M${x1},${from.y + HIGH} C${x1},${from.y + HIGH + bend} ${x2},${to.y + HIGH + bend} ${x2},${to.y + HIGH}`;
  }
  const down = to.y > from.y;
  const side = down ? -7 : 7, y1 = down ? from.y + HIGH : from.y, y2 = down ? to.y : to.y + HIGH;
  const middle = (y1 + y2) / 2;
  return `M${x1 + side},${y1} C${x1 + side},${middle} ${x2 + side},${middle} ${x2 + side},${y2}`;
}

// `chosen` is called with a state that is clicked; the function that comes back marks one.
function diagram(table, first, chosen) {
  const { place, wide, high } = boxes(layers(table, first));
  const marker = `head-${table.protocol}-${table.agent}`;
  const picture = drawing("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": "state diagram" },
    drawing("defs", {}, drawing("marker", { id: marker, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      drawing("path", { d: "M0,0 L8,4 L0,8 z", class: "head" }))));
  const pairs = new Map();
  for (const row of table.rows) {
    if (row.next === null || row.next === row.state) continue;
    const key = JSON.stringify([row.state, row.next]);
    pairs.set(key, [...(pairs.get(key) || []), row.event]);
  }
  const edges = [...pairs].map(([key, events]) => {
    const [from, to] = JSON.parse(key);
    const path = drawing("path", { class: "edge", d: curve(place.get(from), place.get(to)), "marker-end": `url(#${marker})` });
    path.append(drawing("title", {}, `${from} \u2192 ${to}: ${[...new Set(events)].join(", ")}`));
    return { from, to, path };
  });
  const nodes = [...place].map(([state, at]) => {
    const text = state.length > 17 ? `${state.slice(0, 16)}\u2026` : state;
    const node = drawing("g", { class: "node", tabindex: 0, role: "button", "aria-label": `state ${state}`, "data-state": state,
      click: () => chosen(state),
      keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(state); } } },
      drawing("title", {}, state),
      drawing("rect", { class: `box${first.includes(state) ? " start" : ""}`, x: at.x, y: at.y, width: WIDE, height: HIGH, rx: 8 }),
      drawing("text", { x: at.x + WIDE / 2, y: at.y + 22, "text-anchor": "middle" }, text));
    return { state, node };
  });
  picture.append(...edges.map((edge) => edge.path), ...nodes.map((one) => one.node));
  const mark = (state) => {
    const near = new Set([state]);
    for (const { from, to, path } of edges) {
      const kind = !state ? "" : from === state ? "out" : to === state ? "in" : "dim";
      path.setAttribute("class", `edge ${kind}`);
      if (from === state) near.add(to);
      if (to === state) near.add(from);
    }
    for (const { state: name, node } of nodes) {
      node.setAttribute("class", `node${name === state ? " chosen" : ""}${state && !near.has(name) ? " dim" : ""}`);
    }
  };
  return { picture, mark };
}
