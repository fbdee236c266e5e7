// Elements of the page. Text from results is never interpreted as markup.

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

function tag(word) {
  return element("span", { class: `tag ${word}` }, word);
}

// A table; columns of numbers, alone or with their units (`measured`), are aligned to the right.
function plainTable(columns, rows, attributes = {}) {
  const isNumber = (cell) => typeof cell === "number" || cell === null || cell === "" || cell?.className === "measured";
  const numeric = columns.map((_, at) => rows.some((row) => row[at] !== "" && row[at] !== null) && rows.every((row) => isNumber(row[at])));
  const head = columns.map((name, at) => element("th", { scope: "col", class: numeric[at] ? "number" : null }, name));
  const body = rows.map((row) =>
    element("tr", {}, row.map((cell, at) => element("td", { class: numeric[at] ? "number" : null }, shown(cell)))));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": attributes.label || "table" },
    element("table", { class: attributes.class || null }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}

function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value;
}

// A count is exact; any other number has three significant digits.
function number(value) {
  return Number.isSafeInteger(value) ? grouped(value) : digits(value);
}

function grouped(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}

function digits(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(2);
  const rounded = Number(value.toPrecision(3));
  return size >= 1000 ? grouped(rounded) : String(rounded);
}

// Text with code between backticks.
function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

function counted(count, one, several = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : several}`;
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
  for (let at = words.length - 1; at >= 0; at -= 1) {
    const [ending, kind, factor] = ENDINGS.find(([one]) => words[at].endsWith(one)) || [];
    // A count of durations is not a duration.
    if (!ending || words.slice(at + 1).includes("count")) continue;
    const bare = words.with(at, words[at].slice(0, words[at].length - ending.length)).filter(Boolean).join(".");
    return { kind, factor, name: (bare || name).replaceAll("_", " ") };
  }
  return { kind: null, factor: 1, name: name.replaceAll("_", " ") };
}

// The largest unit in which a value is at least 1.
function unitFor(kind, value) {
  const scale = SCALES[kind], size = Math.abs(value);
  return scale.findLast(([, factor]) => size >= factor * (1 - 1e-9)) || scale[size === 0 ? scale.findIndex(([, one]) => one >= 1) : 0];
}

function inUnits(kind, value) {
  const [unit, factor] = unitFor(kind, value);
  return `${digits(value / factor)} ${unit}`;
}

// Formats a value of a result with the unit from its name.
function measured(name, value) {
  if (typeof value !== "number") return shown(value);
  const { kind, factor } = quantity(name);
  return element("span", { class: "measured", title: String(value) }, kind ? inUnits(kind, value * factor) : number(value));
}

function duration(seconds) {
  return seconds === null || seconds === undefined ? "" : element("span", { class: "measured", title: `${seconds} s` }, inUnits("time", seconds));
}

// Drawings with the width of their frames: drawn when the frame is added to the page, and again when its width changes.
const awaiting = [];
const drawings = new WeakMap();
const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => redraw(target)));

function fitted(attributes, draw) {
  const frame = element("div", attributes);
  awaiting.push([frame, draw]);
  return frame;
}

function fit() {
  for (const [frame, draw] of awaiting.splice(0)) {
    if (!frame.isConnected) continue;
    drawings.set(frame, { draw, width: 0 });
    redraw(frame);
    widths.observe(frame);
  }
}

function redraw(frame) {
  const last = drawings.get(frame), width = Math.floor(frame.clientWidth);
  // A collapsed frame has no width.
  if (width === 0 || Math.abs(width - last.width) < 2) return;
  last.width = width;
  last.draw(width, frame);
}

function labelled(text, control) {
  return element("label", {}, text, control);
}

function choice(options, value, changed) {
  const list = element("select", { change: () => changed(list.value) },
    options.map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  return list;
}

// Tooltip for the element under the pointer or with the focus.
const tip = element("div", { class: "tip", role: "status", hidden: true });

function tipped(made, words) {
  const show = (x, y) => {
    tip.textContent = words;
    tip.hidden = false;
    const wide = tip.offsetWidth;
    tip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - wide - 4))}px`;
    tip.style.top = `${Math.max(4, y - tip.offsetHeight - 8)}px`;
  };
  made.addEventListener("pointerenter", (event) => show(event.clientX, event.clientY));
  made.addEventListener("focus", () => {
    const place = made.getBoundingClientRect();
    show(place.left, place.top);
  });
  for (const end of ["pointerleave", "blur"]) made.addEventListener(end, () => { tip.hidden = true; });
  made.setAttribute("tabindex", "0");
  made.setAttribute("aria-label", words.replaceAll("\n", "; "));
  return made;
}
