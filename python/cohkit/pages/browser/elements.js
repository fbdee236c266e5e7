// Elements of the page. Texts of results only ever become text, never markup.

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

// A table with columns of names and, where all cells are numbers, numbers to the right.
function plainTable(columns, rows, attributes = {}) {
  const numeric = columns.map((_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number" || row[at] === null));
  const head = columns.map((name, at) => element("th", { scope: "col", class: numeric[at] ? "number" : null }, name));
  const body = rows.map((row) =>
    element("tr", {}, row.map((cell, at) => element("td", { class: numeric[at] ? "number" : null }, shown(cell)))));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": attributes.label || "table" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}

function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value;
}

// Whole numbers as they are, others with five digits.
function number(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en").replaceAll(",", "\u202f");
  return Number(value.toPrecision(5)).toString();
}

function labelled(text, control) {
  return element("label", {}, text, control);
}

function choice(options, value, changed) {
  const list = element("select", { change: () => changed(list.value) },
    options.map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  return list;
}

// What the pointer or the keyboard is at, in words beside it.
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
