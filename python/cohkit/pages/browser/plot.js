// Plots: bars, and lines or steps over an axis; what the pointer is at is told beside it.

const PLOT = { wide: 460, high: 260, left: 62, right: 14, top: 14, bottom: 46 };

function ticks(low, high, logarithmic) {
  if (logarithmic) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const each = Math.ceil((last - first + 1) / 6);
    return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at)).filter((_, at) => at % each === 0);
  }
  const rough = (high - low) / 4 || 1, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * ten).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high * (1 + 1e-9); at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function scale(values, logarithmic, from, to, zero) {
  let low = Math.min(...values), high = Math.max(...values);
  const log = logarithmic && low > 0;
  if (!log && zero) low = Math.min(0, low);
  if (low === high) { low = log ? low / 2 : low - (low === 0 ? 0 : Math.abs(low) / 2); high = high === low ? high + 1 : log ? high * 2 : high * 1.5 || 1; }
  const marks = ticks(low, high, log);
  if (zero || log) high = Math.max(high, ...marks.slice(-1));
  const turned = (value) => (log ? Math.log10(value) : value);
  const at = (value) => from + ((turned(value) - turned(low)) / (turned(high) - turned(low))) * (to - from);
  return { at, marks: marks.filter((mark) => mark >= low && mark <= high) };
}

function axes(picture, x, y, names) {
  const { wide, high, left, right, top, bottom } = PLOT;
  for (const mark of y.marks) {
    picture.append(drawing("line", { class: "grid", x1: left, x2: wide - right, y1: y.at(mark), y2: y.at(mark) }),
      drawing("text", { class: "label", x: left - 6, y: y.at(mark) + 4, "text-anchor": "end" }, number(mark)));
  }
  for (const mark of x.marks) {
    picture.append(drawing("text", { class: "label", x: x.at(mark), y: high - bottom + 16, "text-anchor": "middle" }, number(mark)));
  }
  picture.append(
    drawing("line", { class: "line", x1: left, x2: wide - right, y1: high - bottom, y2: high - bottom }),
    drawing("text", { class: "label", x: (left + wide - right) / 2, y: high - 8, "text-anchor": "middle" }, names.x),
    drawing("text", { class: "label", transform: `translate(15 ${(top + high - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, names.y));
}

function canvas(label, high = PLOT.high) {
  return drawing("svg", { width: PLOT.wide, height: high, viewBox: `0 0 ${PLOT.wide} ${high}`, role: "group", "aria-label": label, style: "max-width: 100%; height: auto" });
}

// Each series has a name and points with `x`, `y`, what is `published` or null, and `words` to show; levels are published
// for no particular place.
function curves(series, { x: along, y: axis, logarithmic = "", title = "", levels = [] }) {
  const points = series.flatMap((one) => one.points);
  const x = scale(points.map((point) => point.x), logarithmic.includes("x"), PLOT.left, PLOT.wide - PLOT.right, false);
  const all = points.flatMap((point) => (point.published === null ? [point.y] : [point.y, point.published]));
  all.push(...levels.map((level) => level.y));
  const y = scale(all, logarithmic.includes("y"), PLOT.high - PLOT.bottom, PLOT.top, true);
  const picture = canvas(title || axis);
  axes(picture, x, y, { x: along, y: axis });
  for (const level of levels) {
    const high = y.at(level.y);
    picture.append(tipped(drawing("path", { class: "level", d: `M${PLOT.left},${high} H${PLOT.wide - PLOT.right}` }), level.words));
  }
  series.forEach((one, number) => {
    const colour = `var(--series-${number % 7})`, dash = ["", "6 3", "2 3"][Math.floor(number / 7) % 3];
    const way = one.points.map((point, at) => {
      const [px, py] = [x.at(point.x), y.at(point.y)];
      return `${at === 0 ? "M" : "L"}${px},${py}`;
    });
    picture.append(drawing("path", { d: way.join(" "), fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash }));
    for (const point of one.points) {
      const [px, py] = [x.at(point.x), y.at(point.y)];
      // What is drawn on top of each other is told together.
      const near = points.filter((other) => Math.hypot(x.at(other.x) - px, y.at(other.y) - py) < 5);
      if (point.published !== null) {
        const high = y.at(point.published);
        picture.append(drawing("path", { class: "cross", d: `M${px - 4},${high - 4} l8,8 m0,-8 l-8,8` }));
      }
      picture.append(tipped(drawing("circle", { class: "mark", cx: px, cy: py, r: 4.5, fill: colour }), near.map((other) => other.words).join("\n\n")));
    }
  });
  const names = series.map((one, number) => element("span", { style: `--of: var(--series-${number % 7})` }, one.name));
  if (points.some((point) => point.published !== null)) names.push(element("span", { style: "--of: var(--ink)" }, "\u00d7 published"));
  if (levels.length) names.push(element("span", { style: "--of: var(--published)" }, "published, for no particular place"));
  return element("figure", { style: "margin: 0" }, element("figcaption", { class: "faint" }, title), picture, element("div", { class: "legend", style: "max-width: 28rem" }, names));
}

// What a letter of a label takes of a plot's width, on the average.
const LETTER = 6.2;

function cut(name, letters) {
  return name.length > letters ? `${name.slice(0, letters - 1)}\u2026` : name;
}

// Each bar has a name, `y`, what is `published` or null, and `words` to show. Bars stand where there is room for their names
// below them; otherwise they lie, one below the other.
function bars(list, { y: axis, title = "" }) {
  const room = (PLOT.wide - PLOT.left - PLOT.right) / list.length, letters = Math.floor(room / LETTER);
  const fits = list.every((bar) => bar.name.length <= letters);
  const picture = fits ? standing(list, axis, title || axis) : lying(list, axis, title || axis);
  const legend = [element("span", { style: "--of: var(--series-0)" }, "ours")];
  if (list.some((bar) => bar.published !== null)) legend.push(element("span", { style: "--of: var(--published)" }, "published"));
  return element("figure", { style: "margin: 0" }, element("figcaption", { class: "faint" }, title), picture, element("div", { class: "legend" }, legend));
}

function heights(list) {
  return list.flatMap((bar) => (bar.published === null ? [bar.y] : [bar.y, bar.published]));
}

function bar(words, kind, place) {
  return tipped(drawing("rect", { class: `mark ${kind}`, ...place, fill: kind === "ours" ? "var(--series-0)" : "var(--published)" }), words);
}

function standing(list, axis, label) {
  const { wide, high, left, right, top, bottom } = PLOT;
  const y = scale(heights(list), false, high - bottom, top, true);
  const picture = canvas(label);
  axes(picture, { at: () => 0, marks: [] }, y, { x: "", y: axis });
  const room = (wide - left - right) / list.length;
  list.forEach((one, number) => {
    const width = Math.min(34, room * 0.36), middle = left + (number + 0.5) * room;
    const column = (value, x) => ({ x, y: y.at(value), width, height: Math.max(0, high - bottom - y.at(value)) });
    if (one.published !== null) picture.append(bar(one.words, "published", column(one.published, middle - width - 1)));
    picture.append(bar(one.words, "ours", column(one.y, one.published === null ? middle - width / 2 : middle + 1)));
    picture.append(drawing("text", { class: "label", x: middle, y: high - bottom + 16, "text-anchor": "middle" }, one.name));
  });
  return picture;
}

function lying(list, axis, label) {
  const { wide, right, top, bottom } = PLOT, room = 17, high = top + list.length * room + bottom;
  // Names are cut to the room there is; what is hovered tells all.
  const letters = Math.min(28, Math.max(...list.map((one) => one.name.length))), left = 16 + letters * 1.08 * LETTER;
  const x = scale(heights(list), false, left, wide - right, true);
  const picture = canvas(label, high);
  for (const mark of x.marks) {
    picture.append(drawing("line", { class: "grid", x1: x.at(mark), x2: x.at(mark), y1: top, y2: high - bottom }),
      drawing("text", { class: "label", x: x.at(mark), y: high - bottom + 16, "text-anchor": "middle" }, number(mark)));
  }
  picture.append(drawing("line", { class: "line", x1: left, x2: left, y1: top, y2: high - bottom }),
    drawing("text", { class: "label", x: (left + wide - right) / 2, y: high - 8, "text-anchor": "middle" }, axis));
  list.forEach((one, number) => {
    const middle = top + (number + 0.5) * room, height = one.published === null ? 9 : 6;
    const row = (value, y) => ({ x: left, y, width: Math.max(0, x.at(value) - left), height });
    if (one.published !== null) picture.append(bar(one.words, "published", row(one.published, middle - height - 0.5)));
    picture.append(bar(one.words, "ours", row(one.y, one.published === null ? middle - height / 2 : middle + 0.5)));
    picture.append(drawing("text", { class: "label", x: left - 6, y: middle + 4, "text-anchor": "end" }, cut(one.name, letters)));
  });
  return picture;
}
