// Diagram of a controller: states in layers by distance from the initial state, and edges labelled with events.

const BOX_HEIGHT = 34, LINE_HEIGHT = 14;
// Width of a letter in a box and in the label of an edge.
const BOX_LETTER = 8, EDGE_LETTER = 6.7;

// Assigns each state to a layer by its distance from the states `first`. Returns the ordered states of each layer.
function layers(table, first) {
  const next = new Map();
  const states = [...new Set(table.rows.flatMap((row) => (row.next === null ? [row.state] : [row.state, row.next])))];
  for (const state of states) next.set(state, new Set());
  for (const row of table.rows) if (row.next !== null && row.next !== row.state) next.get(row.state).add(row.next);
  const level = new Map();
  let frontier = first.filter((state) => next.has(state));
  if (!frontier.length) frontier = states.slice(0, 1);
  for (let depth = 0; frontier.length; depth += 1) {
    frontier.forEach((state) => level.set(state, depth));
    frontier = [...new Set(frontier.flatMap((state) => [...next.get(state)]))].filter((state) => !level.has(state));
    // A state that is not reachable starts a separate component, in the next layer.
    if (!frontier.length) frontier = states.filter((state) => !level.has(state)).slice(0, 1);
  }
  const rows = [];
  for (const [state, depth] of level) (rows[depth] ||= []).push(state);
  // Place states near the mean position of their predecessors, which reduces crossings.
  for (let pass = 0; pass < 4; pass += 1) {
    for (let depth = 1; depth < rows.length; depth += 1) {
      const positions = new Map(rows[depth - 1].map((state, index) => [state, index]));
      const middle = (state) => {
        const from = rows[depth - 1].filter((item) => next.get(item).has(state)).map((item) => positions.get(item));
        return from.length ? from.reduce((sum, index) => sum + index, 0) / from.length : 0;
      };
      const keyed = rows[depth].map((state, index) => [middle(state), index, state]);
      rows[depth] = keyed.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((item) => item[2]);
    }
  }
  return rows;
}

// Positions of all states, spread over the available width.
function boxes(rows, width) {
  const letters = Math.min(17, Math.max(...rows.flat().map((state) => state.length)));
  const box = Math.max(64, letters * BOX_LETTER + 20), gap = 60;
  const maxPerLine = Math.max(2, Math.min(7, Math.floor((width - 60) / (box + gap))));
  // A layer with many states takes several lines.
  const lines = rows.flatMap((row) => Array.from({ length: Math.ceil(row.length / maxPerLine) }, (_, index) =>
    ({ states: row.slice(index * maxPerLine, (index + 1) * maxPerLine), last: (index + 1) * maxPerLine >= row.length })));
  const columns = Math.max(...lines.map((line) => line.states.length));
  const spacing = Math.max(box + gap, (width - 40) / columns), wide = Math.max(width, columns * spacing + 40);
  const place = new Map();
  let high = 20;
  for (const { states, last } of lines) {
    states.forEach((state, index) => place.set(state, { x: 20 + index * spacing + (spacing - box) / 2, y: high, wide: box }));
    high += BOX_HEIGHT + (last ? 110 : 70);
  }
  return { place, wide, high: high - 50 };
}

// The four points of the curve from one state to another.
function curve(from, to) {
  const x1 = from.x + from.wide / 2, x2 = to.x + to.wide / 2;
  if (from.y === to.y) {
    const bend = 30 + Math.abs(x2 - x1) / 14, y = from.y + BOX_HEIGHT;
    return [[x1, y], [x1, y + bend], [x2, y + bend], [x2, y]];
  }
  const down = to.y > from.y;
  const side = down ? -7 : 7, y1 = down ? from.y + BOX_HEIGHT : from.y, y2 = down ? to.y : to.y + BOX_HEIGHT;
  const middle = (y1 + y2) / 2;
  return [[x1 + side, y1], [x1 + side, middle], [x2 + side, middle], [x2 + side, y2]];
}

// Point on a cubic Bezier curve with these four control points, at a share between 0 and 1.
function pointOf(points, share) {
  const complement = 1 - share, weights = [complement ** 3, 3 * complement ** 2 * share, 3 * complement * share ** 2, share ** 3];
  return [0, 1].map((axis) => points.reduce((sum, point, index) => sum + weights[index] * point[axis], 0));
}

// Area that two rectangles have in common.
function overlap(first, second) {
  const overlapAlong = (start, size) => Math.min(first[start] + first[size], second[start] + second[size]) - Math.max(first[start], second[start]);
  return Math.max(0, overlapAlong("x", "wide")) * Math.max(0, overlapAlong("y", "high"));
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
  const occupied = [...place.values()].map(({ x, y, wide: box }) => ({ x, y, wide: box, high: BOX_HEIGHT }));
  // Short curves first: they have few positions for a label.
  const order = edges.toSorted((a, b) => distance(a.points) - distance(b.points));
  const positions = new Map();
  for (const edge of order) {
    const size = { wide: Math.max(...edge.words.map((word) => word.length)) * EDGE_LETTER + 8, high: edge.words.length * LINE_HEIGHT + 4 };
    const best = { area: Infinity, spot: null };
    for (const aside of [0, 0.5, -0.5, 1, -1, 1.5, -1.5, 2, -2]) {
      for (const share of SHARES) {
        const [x, y] = pointOf(edge.points, share);
        const left = x - size.wide / 2 + aside * size.wide;
        const spot = { x: Math.max(2, Math.min(wide - size.wide - 2, left)), y: Math.max(2, Math.min(high - size.high - 2, y - size.high / 2)), ...size };
        const area = occupied.reduce((sum, other) => sum + overlap(spot, other), 0);
        if (area < best.area) Object.assign(best, { area, spot });
      }
      if (best.area === 0) break;
    }
    occupied.push(best.spot);
    positions.set(edge, best.spot);
  }
  return positions;
}

// Distance between the ends of a curve, in pixels.
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
    const lines = words.map((word, position) => drawing("tspan", { x: spot.x + spot.wide / 2, y: spot.y + 2 + LINE_HEIGHT * (position + 0.75) }, word));
    edge.drawn = drawing("g", { "data-edge": `${from} ${to}` },
      drawing("title", {}, `${from} \u2192 ${to}: ${events.join(", ")}`),
      drawing("path", { d: `M${a} C${b} ${c} ${d}`, "marker-end": `url(#${marker})` }),
      drawing("text", { "text-anchor": "middle" }, lines));
  }
  const nodes = [...place].map(([state, position]) => {
    const text = state.length > 17 ? `${state.slice(0, 16)}\u2026` : state;
    const node = drawing("g", { class: "node", tabindex: 0, role: "button", "aria-label": `state ${state}`, "data-state": state,
      click: () => chosen(state),
      keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(state); } } },
      drawing("title", {}, state),
      drawing("rect", { class: `box${first.includes(state) ? " start" : ""}`, x: position.x, y: position.y, width: position.wide, height: BOX_HEIGHT, rx: 8 }),
      drawing("text", { x: position.x + position.wide / 2, y: position.y + 22, "text-anchor": "middle" }, text));
    return { state, node };
  });
  picture.append(...edges.map((edge) => edge.drawn), ...nodes.map((entry) => entry.node));
  const mark = (state) => {
    const neighbours = new Set([state]);
    for (const { from, to, drawn: group } of edges) {
      const kind = !state ? "" : from === state ? "out" : to === state ? "in" : "dim";
      group.setAttribute("class", `edge ${kind}`);
      if (from === state) neighbours.add(to);
      if (to === state) neighbours.add(from);
    }
    for (const { state: name, node } of nodes) {
      node.setAttribute("class", `node${name === state ? " chosen" : ""}${state && !neighbours.has(name) ? " dim" : ""}`);
    }
  };
  return { picture, mark };
}
