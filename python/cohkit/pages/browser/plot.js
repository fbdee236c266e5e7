// Plots with the width of their frames: bars and lines. A tooltip shows the description of a point.

// Space around the drawing area, in pixels.
const MARGIN = { left: 62, right: 14, top: 14, bottom: 46 };

// Drawing area of a plot of this width.
function area(wide, high = Math.max(240, Math.min(420, Math.round(wide * 0.4)))) {
  return { wide, high, ...MARGIN };
}

// Values of the ticks of an axis: powers of ten on a logarithmic axis, otherwise multiples of 1, 2 or 5 times a power
// of ten.
function ticks(low, high, logarithmic) {
  if (logarithmic) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const interval = Math.ceil((last - first + 1) / 6);
    return Array.from({ length: last - first + 1 }, (_, position) => 10 ** (first + position)).filter((_, position) => position % interval === 0);
  }
  const rough = (high - low) / 4 || 1, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * ten).find((candidate) => candidate >= rough);
  const tickValues = [];
  // Include one tick beyond the highest value, at which the axis ends.
  for (let position = Math.ceil(low / step) * step; position < high * (1 - 1e-9) + step; position += step) tickValues.push(Number(position.toPrecision(12)));
  return tickValues;
}

// Scale of an axis: `at` converts a value to a position between `from` and `to`, and `marks` are its ticks. `zero`
// includes zero. Values that are not all positive make the axis linear.
function scale(values, logarithmic, from, to, zero) {
  let low = Math.min(...values), high = Math.max(...values);
  const log = logarithmic && low > 0;
  if (!log && zero) low = Math.min(0, low);
  if (low === high) { low = log ? low / 2 : low - (low === 0 ? 0 : Math.abs(low) / 2); high = high === low ? high + 1 : log ? high * 2 : high * 1.5 || 1; }
  const marks = ticks(low, high, log);
  if (zero || log) high = Math.max(high, ...marks.slice(-1));
  const transformed = (value) => (log ? Math.log10(value) : value);
  const at = (value) => from + ((transformed(value) - transformed(low)) / (transformed(high) - transformed(low))) * (to - from);
  return { at, marks: marks.filter((mark) => mark >= low && mark <= high) };
}

// Draws both axes with ticks and titles, and the horizontal grid.
function axes(picture, { wide, high, left, right, top, bottom }, x, y, names) {
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

// Empty drawing of this size for a plot.
function canvas(label, { wide, high }) {
  return drawing("svg", { class: "plot", width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": label });
}

// A plot with title and legend. `draw` returns the drawing for a width.
function figure(title, draw, legend) {
  return element("figure", {}, title ? element("figcaption", { class: "faint" }, title) : null,
    fittedFrame({ class: "canvas" }, (wide, frame) => frame.replaceChildren(draw(wide))),
    legend.length ? element("div", { class: "legend" }, legend) : null);
}

// Each series has a name and points with `x`, `y`, `published` (or null), and `words` for the tooltip. Levels are published
// without a position. A single series has no legend.
function curves(series, { x: xTitle, y: axis, logarithmic = "", title = "", levels = [] }) {
  const points = series.flatMap((curve) => curve.points);
  const names = series.map((curve, number) => element("span", { style: `--of: var(--series-${number % 7})` }, curve.name));
  if (points.some((point) => point.published !== null)) names.push(element("span", { style: "--of: var(--ink)" }, "\u00d7 published"));
  if (levels.length) names.push(element("span", { style: "--of: var(--published)" }, "published, without a position on the axis"));
  const draw = (wide) => {
    const place = area(wide), { high, left, right, top, bottom } = place;
    const { x, y } = linear(series, levels, logarithmic, place);
    const picture = canvas(title || axis, place);
    axes(picture, place, x, y, { x: xTitle, y: axis });
    for (const level of levels) {
      picture.append(withTooltip(drawing("path", { class: "level", d: `M${left},${y.at(level.y)} H${wide - right}` }), level.words));
    }
    series.forEach((curve, number) => {
      picture.append(line(curve, number, x, y));
      for (const point of curve.points) {
        const [px, py] = [x.at(point.x), y.at(point.y)];
        // Overlapping points share a tooltip.
        const neighbours = points.filter((other) => Math.hypot(x.at(other.x) - px, y.at(other.y) - py) < 5);
        if (point.published !== null) {
          picture.append(drawing("path", { class: "cross", d: `M${px - 4},${y.at(point.published) - 4} l8,8 m0,-8 l-8,8` }));
        }
        picture.append(withTooltip(drawing("circle", { class: "mark", cx: px, cy: py, r: 4.5, fill: `var(--series-${number % 7})` }), neighbours.map((other) => other.words).join("\n\n")));
      }
    });
    return picture;
  };
  return figure(title, draw, names.length > 1 ? names : []);
}

// Scales of both axes of a plot with lines. `logarithmic` names the logarithmic axes: "x", "y" or "xy".
function linear(series, levels, logarithmic, { wide, high, left, right, top, bottom }) {
  const points = series.flatMap((one) => one.points);
  const all = points.flatMap((point) => (point.published === null ? [point.y] : [point.y, point.published]));
  return {
    x: scale(points.map((point) => point.x), logarithmic.includes("x"), left, wide - right, false),
    y: scale([...all, ...levels.map((level) => level.y)], logarithmic.includes("y"), high - bottom, top, true),
  };
}

// Line through the points of a curve. Curves after the seventh have the same colours with other dashes.
function line(curve, number, x, y) {
  const dash = ["", "6 3", "2 3"][Math.floor(number / 7) % 3];
  const commands = curve.points.map((point, index) => `${index === 0 ? "M" : "L"}${x.at(point.x)},${y.at(point.y)}`);
  return drawing("path", { d: commands.join(" "), fill: "none", stroke: `var(--series-${number % 7})`, "stroke-width": 1.8, "stroke-dasharray": dash });
}

// Mean width of a character in a label, in pixels.
const LETTER = 6.2;

// Shortens a name to this number of characters.
function truncated(name, letters) {
  return name.length > letters ? `${name.slice(0, letters - 1)}\u2026` : name;
}

// Each bar has a name, `y`, `published` (or null), and `words` for the tooltip. Bars are vertical if their names fit below
// them, otherwise horizontal. Bars of one kind have no legend.
function bars(list, { y: axis, title = "" }) {
  const published = list.some((bar) => bar.published !== null);
  const legend = [element("span", { style: "--of: var(--series-0)" }, "ours"), element("span", { style: "--of: var(--published)" }, "published")];
  const draw = (wide) => {
    const room = (wide - MARGIN.left - MARGIN.right) / list.length, letters = Math.floor(room / LETTER);
    return (list.every((bar) => bar.name.length <= letters) ? verticalBars : horizontalBars)(list, axis, title || axis, wide);
  };
  return figure(title, draw, published ? legend : []);
}

// All values that bars show, ours and published ones.
function heights(list) {
  return list.flatMap((bar) => (bar.published === null ? [bar.y] : [bar.y, bar.published]));
}

// One bar with its tooltip; `kind` is "ours" or "published".
function bar(words, kind, place) {
  return withTooltip(drawing("rect", { class: `mark ${kind}`, ...place, fill: kind === "ours" ? "var(--series-0)" : "var(--published)" }), words);
}

// Draws bars side by side, the published one to the left of ours.
function verticalBars(list, axis, label, width) {
  const place = area(width), { wide, high, left, right, top, bottom } = place;
  const y = scale(heights(list), false, high - bottom, top, true);
  const picture = canvas(label, place);
  axes(picture, place, { at: () => 0, marks: [] }, y, { x: "", y: axis });
  const room = (wide - left - right) / list.length;
  list.forEach((item, number) => {
    const thick = Math.min(80, room * 0.36), middle = left + (number + 0.5) * room;
    const column = (value, x) => ({ x, y: y.at(value), width: thick, height: Math.max(0, high - bottom - y.at(value)) });
    if (item.published !== null) picture.append(bar(item.words, "published", column(item.published, middle - thick - 1)));
    picture.append(bar(item.words, "ours", column(item.y, item.published === null ? middle - thick / 2 : middle + 1)));
    picture.append(drawing("text", { class: "label", x: middle, y: high - bottom + 16, "text-anchor": "middle" }, item.name));
  });
  return picture;
}

// Draws bars below each other, the published one above ours.
function horizontalBars(list, axis, label, width) {
  const room = 17, place = area(width, MARGIN.top + list.length * room + MARGIN.bottom), { wide, high, right, top, bottom } = place;
  // Truncate names to the available width; the tooltip shows them in full.
  const maxLetters = Math.max(12, Math.floor((wide * 0.4) / LETTER)), letters = Math.min(maxLetters, Math.max(...list.map((item) => item.name.length)));
  const left = 16 + letters * 1.08 * LETTER, x = scale(heights(list), false, left, wide - right, true);
  const picture = canvas(label, place);
  for (const mark of x.marks) {
    picture.append(drawing("line", { class: "grid", x1: x.at(mark), x2: x.at(mark), y1: top, y2: high - bottom }),
      drawing("text", { class: "label", x: x.at(mark), y: high - bottom + 16, "text-anchor": "middle" }, number(mark)));
  }
  picture.append(drawing("line", { class: "line", x1: left, x2: left, y1: top, y2: high - bottom }),
    drawing("text", { class: "label", x: (left + wide - right) / 2, y: high - 8, "text-anchor": "middle" }, axis));
  list.forEach((item, number) => {
    const middle = top + (number + 0.5) * room, height = item.published === null ? 9 : 6;
    const row = (value, y) => ({ x: left, y, width: Math.max(0, x.at(value) - left), height });
    if (item.published !== null) picture.append(bar(item.words, "published", row(item.published, middle - height - 0.5)));
    picture.append(bar(item.words, "ours", row(item.y, item.published === null ? middle - height / 2 : middle + 0.5)));
    picture.append(drawing("text", { class: "label", x: left - 6, y: middle + 4, "text-anchor": "end" }, truncated(item.name, letters)));
  });
  return picture;
}

const THUMBNAIL = { wide: 168, high: 84, left: 4, right: 4, top: 6, bottom: 6 };

// Thumbnail of an experiment: its first plot without text. Without a plot: the errors of its rows as bars, or our numbers.
function thumbnail(part) {
  const { wide, high, left, right, top, bottom } = THUMBNAIL, [plot] = part.plots;
  const picture = drawing("svg", { class: "thumbnail", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `plot of ${part.name}` });
  if (plot?.kind === "lines") {
    const { x, y } = linear(plot.series, plot.levels, plot.logarithmic, THUMBNAIL);
    picture.append(...plot.series.map((item, number) => line(item, number, x, y)));
    for (const point of plot.series.flatMap((item) => item.points).filter((item) => item.published !== null)) {
      picture.append(drawing("path", { class: "cross", d: `M${x.at(point.x) - 2},${y.at(point.published) - 2} l4,4 m0,-4 l-4,4` }));
    }
    for (const level of plot.levels) picture.append(drawing("path", { class: "level", d: `M${left},${y.at(level.y)} H${wide - right}` }));
    return picture;
  }
  const errors = part.rows.filter((row) => row.error !== null).map((row) => ({ y: row.error, published: null }));
  const list = plot ? plot.bars : errors.length ? errors : part.rows.map((row) => ({ y: row.ours, published: null }));
  // Include zero in the scale, to show errors of both signs.
  const y = scale([0, ...heights(list)], false, high - bottom, top, true), room = (wide - left - right) / list.length;
  list.forEach((item, number) => {
    const pair = item.published !== null, thick = Math.min(24, room * (pair ? 0.4 : 0.7)), middle = left + (number + 0.5) * room;
    const column = (value, x, kind) => drawing("rect", { class: kind, x, y: Math.min(y.at(value), y.at(0)), width: thick, height: Math.max(1, Math.abs(y.at(value) - y.at(0))), fill: "var(--series-0)" });
    if (pair) picture.append(column(item.published, middle - thick, "published"));
    picture.append(column(item.y, pair ? middle : middle - thick / 2, "ours"));
  });
  picture.append(drawing("line", { class: "line", x1: left, x2: wide - right, y1: y.at(0), y2: y.at(0) }));
  return picture;
}
