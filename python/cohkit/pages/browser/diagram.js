// Diagram of a controller: states in layers by distance from the initial state, and edges labelled with events.

const HIGH = 34, LINE = 14;
// Width of a letter in a box and in the label of an edge.
const BOX_LETTER = 8, EDGE_LETTER = 6.7;

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
    // A state that is not reachable starts a separate component, in the next layer.
    if (!now.length) now = states.filter((state) => !level.has(state)).slice(0, 1);
  }
  const rows = [];
  for (const [state, far] of level) (rows[far] ||= []).push(state);
  // Place states near the mean position of their predecessors, which reduces crossings.
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

// Positions of all states, spread over the available width.
function boxes(rows, width) {
  const letters = Math.min(17, Math.max(...rows.flat().map((state) => state.length)));
  const box = Math.max(64, letters * BOX_LETTER + 20), gap = 60;
  const most = Math.max(2, Math.min(7, Math.floor((width - 60) / (box + gap))));
  // A layer with many states takes several lines.
  const lines = rows.flatMap((row) => Array.from({ length: Math.ceil(row.length / most) }, (_, at) =>
    ({ states: row.slice(at * most, (at + 1) * most), last: (at + 1) * most >= row.length })));
  const columns = Math.max(...lines.map((line) => line.states.length));
  const apart = Math.max(box + gap, (width - 40) / columns), wide = Math.max(width, columns * apart + 40);
  const place = new Map();
  let high = 20;
  for (const { states, last } of lines) {
    states.forEach((state, at) => place.set(state, { x: 20 + at * apart + (apart - box) / 2, y: high, wide: box }));
    high += HIGH + (last ? 110 : 70);
  }
  return { place, wide, high: high - 50 };
}

// The four points of the curve from one state to another.
function curve(from, to) {
  const x1 = from.x + from.wide / 2, x2 = to.x + to.wide / 2;
  if (from.y === to.y) {
    const bend = 30 + Math.abs(x2 - x1) / 14, y = from.y + HIGH;
    return [[x1, y], [x1, y + bend], [x2, y + bend], [x2, y]];
  }
  const down = to.y > from.y;
  const side = down ? -7 : 7, y1 = down ? from.y + HIGH : from.y, y2 = down ? to.y : to.y + HIGH;
  const middle = (y1 + y2) / 2;
  return [[x1 + side, y1], [x1 + side, middle], [x2 + side, middle], [x2 + side, y2]];
}

function pointOf(points, share) {
  const rest = 1 - share, weights = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2, share ** 3];
  return [0, 1].map((axis) => points.reduce((sum, point, at) => sum + weights[at] * point[axis], 0));
}

function overlap(one, other) {
  const way = (begin, size) => Math.min(one[begin] + one[size], other[begin] + other[size]) - Math.max(one[begin], other[begin]);
  return Math.max(0, way("x", "wide")) * Math.max(0, way("y", "high"));
}

// Label of an edge: its events, at most three.
function eventWords(events) {
  const unique = [...new Set(events)];
  return unique.length > 3 ? [...unique.slice(0, 2), `and ${unique.length - 2} more`] : unique;
}

// Positions along a curve, from its middle to its ends.
const SHARES = Array.from({ length: 21 }, (_, at) => 0.5 + (at % 2 ? 0.018 : -0.018) * at);

// Places the label of each edge on or near its curve, so that it covers no state and no other label.
function labels(edges, place, wide, high) {
  const taken = [...place.values()].map(({ x, y, wide: box }) => ({ x, y, wide: box, high: HIGH }));
  // Short curves first: they have few positions for a label.
  const order = edges.toSorted((a, b) => distance(a.points) - distance(b.points));
  const found = new Map();
  for (const edge of order) {
    const size = { wide: Math.max(...edge.words.map((word) => word.length)) * EDGE_LETTER + 8, high: edge.words.length * LINE + 4 };
    const free = { area: Infinity, spot: null };
    for (const aside of [0, 0.5, -0.5, 1, -1, 1.5, -1.5, 2, -2]) {
      for (const share of SHARES) {
        const [x, y] = pointOf(edge.points, share);
        const left = x - size.wide / 2 + aside * size.wide;
        const spot = { x: Math.max(2, Math.min(wide - size.wide - 2, left)), y: Math.max(2, Math.min(high - size.high - 2, y - size.high / 2)), ...size };
        const area = taken.reduce((sum, other) => sum + overlap(spot, other), 0);
        if (area < free.area) Object.assign(free, { area, spot });
      }
      if (free.area === 0) break;
    }
    taken.push(free.spot);
    found.set(edge, free.spot);
  }
  return found;
}

function distance(points) {
  return Math.hypot(points[3][0] - points[0][0], points[3][1] - points[0][1]);
}

// Calls `chosen` with a clicked state. Returns a function that highlights a state.
function diagram(table, first, chosen, width) {
  const { place, wide, high } = boxes(layers(table, first), width);
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
    const [from, to] = JSON.parse(key), points = curve(place.get(from), place.get(to));
    return { from, to, points, events: [...new Set(events)], words: eventWords(events) };
  });
  for (const [edge, spot] of labels(edges, place, wide, high)) {
    const { from, to, points: [a, b, c, d], events, words } = edge;
    const lines = words.map((word, at) => drawing("tspan", { x: spot.x + spot.wide / 2, y: spot.y + 2 + LINE * (at + 0.75) }, word));
    edge.drawn = drawing("g", { "data-edge": `${from} ${to}` },
      drawing("title", {}, `${from} \u2192 ${to}: ${events.join(", ")}`),
      drawing("path", { d: `M${a} C${b} ${c} ${d}`, "marker-end": `url(#${marker})` }),
      drawing("text", { "text-anchor": "middle" }, lines));
  }
  const nodes = [...place].map(([state, at]) => {
    const text = state.length > 17 ? `${state.slice(0, 16)}\u2026` : state;
    const node = drawing("g", { class: "node", tabindex: 0, role: "button", "aria-label": `state ${state}`, "data-state": state,
      click: () => chosen(state),
      keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(state); } } },
      drawing("title", {}, state),
      drawing("rect", { class: `box${first.includes(state) ? " start" : ""}`, x: at.x, y: at.y, width: at.wide, height: HIGH, rx: 8 }),
      drawing("text", { x: at.x + at.wide / 2, y: at.y + 22, "text-anchor": "middle" }, text));
    return { state, node };
  });
  picture.append(...edges.map((edge) => edge.drawn), ...nodes.map((one) => one.node));
  const mark = (state) => {
    const near = new Set([state]);
    for (const { from, to, drawn: group } of edges) {
      const kind = !state ? "" : from === state ? "out" : to === state ? "in" : "dim";
      group.setAttribute("class", `edge ${kind}`);
      if (from === state) near.add(to);
      if (to === state) near.add(from);
    }
    for (const { state: name, node } of nodes) {
      node.setAttribute("class", `node${name === state ? " chosen" : ""}${state && !near.has(name) ? " dim" : ""}`);
    }
  };
  return { picture, mark };
}
