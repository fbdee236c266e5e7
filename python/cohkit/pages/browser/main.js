// The page: what is in it, and which part of it is shown; the address says which.

const data = JSON.parse(document.getElementById("data").textContent);

// Who only reads has nothing to choose: that script is not there then.
const PAGES = { explore: typeof explorePage === "undefined" ? null : explorePage, protocol: protocolPage, check: checkPage, experiments: experimentsPage, experiment: experimentPage, run: runPage, litmus: litmusPage, sweep: sweepPage };
const SHELVES = [["explore", ""], ["protocol", "Protocols"], ["check", "Checks"], ["litmus", "Litmus tests"], ["experiments", "Experiments"], ["experiment", ""], ["run", "Runs"], ["sweep", "Sweeps"]];

function summary(part) {
  switch (part.kind) {
    case "check": return [...new Set(part.entries.map((entry) => entry.outcome))].map((outcome) => [tag(outcome), ` ${part.entries.filter((entry) => entry.outcome === outcome).length} `]);
    case "litmus": return `${part.entries.length} tests`;
    case "experiment": return `${part.rows.length} numbers`;
    case "experiments": return `${part.experiments.length} experiments`;
    case "sweep": return `${part.rows.length} rows`;
    case "protocol": return part.tables.map((table) => `${tableTitle(table)}: ${table.states} states`).join("; ");
    default: return part.value.failure ? tag("violated") : "";
  }
}

function overview() {
  const listed = data.parts.filter((part) => part.kind !== "experiment");
  return [
    element("h2", {}, "What is in this report"),
    plainTable(["", "", ""], listed.map((part) => [element("a", { href: `#/${part.id}` }, part.title), element("span", { class: "faint mono" }, part.file), element("span", {}, summary(part))])),
    element("p", { class: "faint" }, `Made by cohkit ${data.version}. Tab and the arrow keys lead through it.`),
  ];
}

function contents(now) {
  const item = (part) => element("li", {}, element("a", { href: `#/${part.id}`, "aria-current": part.id === now ? "page" : null }, part.title));
  const shelves = SHELVES.map(([kind, name]) => {
    const parts = data.parts.filter((part) => part.kind === kind);
    return parts.length ? [name ? element("h2", {}, name) : null, element("ul", {}, parts.map(item))] : null;
  });
  const all = data.begin ? null : element("ul", {}, element("li", {}, element("a", { href: "#/", "aria-current": now === "" ? "page" : null }, "Overview")));
  const list = element("details", { open: window.matchMedia("(min-width: 60rem)").matches }, element("summary", {}, "Contents"), all, shelves);
  document.getElementById("contents").replaceChildren(list);
}

function show(moved) {
  const [id = "", ...rest] = decodeURI(window.location.hash.replace(/^#\/?/, "") || data.begin || "").split("/");
  const part = data.parts.find((one) => one.id === id);
  tip.hidden = true;
  contents(part ? part.id : "");
  const main = document.getElementById("main");
  main.replaceChildren(...(part ? PAGES[part.kind](part, rest) : overview()));
  // An address is followed some time after it is clicked: who waits for its place looks here.
  main.dataset.place = window.location.hash;
  if (moved) {
    main.focus({ preventScroll: true });
    if (!rest.includes("text")) window.scrollTo(0, 0);
  }
}

document.body.append(tip);
window.addEventListener("hashchange", () => show(true));
show(false);
