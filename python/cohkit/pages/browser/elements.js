// Elements of the page. Text from results is never interpreted as markup.

// Creates an HTML element. A function as attribute is an event handler; null and false omit the attribute.
function element(tag, attributes = {}, ...children) {
  return withContent(document.createElement(tag), attributes, children);
}

// Creates an SVG element, with attributes and children as in `element`.
function drawing(tag, attributes = {}, ...children) {
  return withContent(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// Adds attributes and children to an element and returns it. Children may be nested lists; null is omitted.
function withContent(target, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") target.addEventListener(name, value);
    else if (value !== null && value !== false) target.setAttribute(name, value === true ? "" : value);
  }
  target.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return target;
}

// Marks a verdict or status; the word is also the class that colours it.
function tag(word) {
  return element("span", { class: `tag ${word}` }, word);
}

// A table; columns of numbers, alone or with their units (`measured`), are aligned to the right.
function plainTable(columns, rows, attributes = {}) {
  const isNumber = (cell) => typeof cell === "number" || cell === null || cell === "" || cell?.className === "measured";
  const numeric = columns.map((_, index) => rows.some((row) => row[index] !== "" && row[index] !== null) && rows.every((row) => isNumber(row[index])));
  const head = columns.map((name, index) => element("th", { scope: "col", class: numeric[index] ? "number" : null }, name));
  const body = rows.map((row) =>
    element("tr", {}, row.map((cell, index) => element("td", { class: numeric[index] ? "number" : null }, cellContent(cell)))));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": attributes.label || "table" },
    element("table", { class: attributes.class || null }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}

// Converts a value to the content of a cell; elements and texts remain as they are.
function cellContent(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value;
}

// A count is exact; any other number has three significant digits.
function number(value) {
  return Number.isSafeInteger(value) ? grouped(value) : digits(value);
}

// Formats a number with narrow spaces between groups of three digits.
function grouped(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

// Formats a number with three significant digits, very large and very small ones with an exponent.
function digits(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  const rounded = Number(value.toPrecision(3));
  return size >= 1000 ? grouped(rounded) : String(rounded);
}

// Text with code between backticks.
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

// Formats a count with its noun in the right number.
function countText(count, singular, plural = `${singular}s`) {
  return `${number(count)} ${count === 1 ? singular : plural}`;
}

// Display units, as multiples of a second, a byte, a byte per second and an event per second.
const PREFIXES = [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];
const SCALES = {
  time: [["ps", 1e-12], ["ns", 1e-9], ["\u00b5s", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60], ["h", 3600]],
  bytes: PREFIXES.map(([prefix, factor]) => [`${prefix}B`, factor]),
  bandwidth: PREFIXES.map(([prefix, factor]) => [`${prefix}B/s`, factor]),
  rate: PREFIXES.map(([prefix, factor]) => [`${prefix}/s`, factor]),
};
// Kind and unit of a quantity, by the suffix of its name.
const ENDINGS = [["_bytes_per_s", "bandwidth", 1], ["_per_s", "rate", 1], ["_ps", "time", 1e-12], ["_ns", "time", 1e-9], ["_bytes", "bytes", 1], ["memory_bytes", "bytes", 1], ["seconds", "time", 1]];

// Kind of quantity of a dotted name, its unit as a multiple, and its name without the unit.
function quantity(name) {
  const words = name.split(".");
  for (let index = words.length - 1; index >= 0; index -= 1) {
    const [ending, kind, factor] = ENDINGS.find(([suffix]) => words[index].endsWith(suffix)) || [];
    // A count of durations is not a duration.
    if (!ending || words.slice(index + 1).includes("count")) continue;
    const nameWithoutUnit = words.with(index, words[index].slice(0, words[index].length - ending.length)).filter(Boolean).join(".");
    return { kind, factor, name: (nameWithoutUnit || name).replaceAll("_", " ") };
  }
  return { kind: null, factor: 1, name: name.replaceAll("_", " ") };
}

// The largest unit in which a value is at least 1.
function unitFor(kind, value) {
  const scale = SCALES[kind], size = Math.abs(value);
  return scale.findLast(([, factor]) => size >= factor * (1 - 1e-9)) || scale[size === 0 ? scale.findIndex(([, unitFactor]) => unitFactor >= 1) : 0];
}

// Formats a value with the unit that suits its size. The value is in the base unit of `SCALES`.
function inUnits(kind, value) {
  const [unit, factor] = unitFor(kind, value);
  return `${digits(value / factor)} ${unit}`;
}

// Formats a value of a result with the unit from its name.
function valueWithUnit(name, value) {
  if (typeof value !== "number") return cellContent(value);
  const { kind, factor } = quantity(name);
  return element("span", { class: "measured", title: String(value) }, kind ? inUnits(kind, value * factor) : number(value));
}

// Formats a duration in seconds; empty if it is unknown.
function duration(seconds) {
  return seconds === null || seconds === undefined ? "" : element("span", { class: "measured", title: `${seconds} s` }, inUnits("time", seconds));
}

// Drawings with the width of their frames: drawn when the frame is added to the page, and again when its width changes.
// First list: frames with their drawing functions that are not yet drawn.
const pendingFrames = [];
// Drawing function and last drawn width of each frame, to redraw only after a change of the width.
const drawings = new WeakMap();
const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => redraw(target)));

// Creates a frame whose content `draw(width, frame)` draws as soon as `fit` runs after the frame was added to the
// page.
function fittedFrame(attributes, draw) {
  const frame = element("div", attributes);
  pendingFrames.push([frame, draw]);
  return frame;
}

// Draws all new frames that are in the page, and observes their widths. Called after each change of the page.
function fit() {
  for (const [frame, draw] of pendingFrames.splice(0)) {
    if (!frame.isConnected) continue;
    drawings.set(frame, { draw, width: 0 });
    redraw(frame);
    widths.observe(frame);
  }
}

// Draws a frame again if its width has changed.
function redraw(frame) {
  const last = drawings.get(frame), width = Math.floor(frame.clientWidth);
  // A collapsed frame has no width.
  if (width === 0 || Math.abs(width - last.width) < 2) return;
  last.width = width;
  last.draw(width, frame);
}

// Control with its label in front.
function labelledControl(text, control) {
  return element("label", {}, text, control);
}

// Drop-down list of `[value, text]` options; `changed` is called with the selected value.
function choice(options, value, changed) {
  const list = element("select", { change: () => changed(list.value) },
    options.map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  return list;
}

// Tooltip for the element under the pointer or with the focus.
const tooltip = element("div", { class: "tip", role: "status", hidden: true });

// Shows the words beside an element while the pointer is over it or it has the focus. Returns the element.
function withTooltip(target, words) {
  const show = (x, y) => {
    tooltip.textContent = words;
    tooltip.hidden = false;
    const width = tooltip.offsetWidth;
    tooltip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - width - 4))}px`;
    tooltip.style.top = `${Math.max(4, y - tooltip.offsetHeight - 8)}px`;
  };
  target.addEventListener("pointerenter", (event) => show(event.clientX, event.clientY));
  target.addEventListener("focus", () => {
    const bounds = target.getBoundingClientRect();
    show(bounds.left, bounds.top);
  });
  for (const end of ["pointerleave", "blur"]) target.addEventListener(end, () => { tooltip.hidden = true; });
  target.setAttribute("tabindex", "0");
  target.setAttribute("aria-label", words.replaceAll("\n", "; "));
  return target;
}
