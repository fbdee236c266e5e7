// The page: its parts, of which the address selects one.

// Data that the Python package has put into the page: version, parts, initial states by protocol, and `begin`, the
// part to show first (in the explorer).
const data = JSON.parse(document.getElementById("data").textContent);

// Function that returns the elements of a page, by kind of part. A report has no explorer, and does not include its
// script.
const PAGES = { explore: typeof explorePage === "undefined" ? null : explorePage, protocol: protocolPage, check: checkPage, experiments: experimentsPage, experiment: experimentPage, run: runPage, litmus: litmusPage, sweep: sweepPage };
// Kinds of parts with their headings in the table of contents, in order.
const CATEGORIES = [["explore", ""], ["protocol", "Protocols"], ["check", "Checks"], ["litmus", "Litmus tests"], ["experiments", "Experiments"], ["experiment", ""], ["run", "Runs"], ["sweep", "Sweeps"]];

// Counts of each verdict, with their tags.
function verdicts(entries) {
  return ["violated", "undecided", "verified"].map((outcome) => [outcome, entries.filter((entry) => entry.outcome === outcome).length])
    .filter(([, count]) => count > 0).map(([outcome, count]) => [number(count), " ", tag(outcome), " "]);
}

// First page of a report: all results in short, with links to their pages.
function overview() {
  const partsOf = (kind) => data.parts.filter((part) => part.kind === kind);
  const link = (part) => element("a", { href: `#/${part.id}` }, part.title);
  const systems = partsOf("check").flatMap(placesOf), tests = partsOf("litmus").flatMap(placesOf);
  const overviewSection = (title, list, ...cellContent) => (list.length ? element("section", {}, element("h3", {}, title), cellContent) : null);
  return [
    element("h2", {}, "Overview"),
    overviewSection(`Systems: ${number(systems.length)}`, systems, element("p", {}, verdicts(systems.map((system) => system.entry))), systemTable(systems, { label: "systems and their verdicts" })),
    overviewSection(`Litmus tests: ${number(tests.length)}`, tests, litmusTable(tests)),
    ...partsOf("experiments").map((part) => overviewSection(`Experiments: ${number(part.experiments.length)}`, part.experiments, experimentCards(part.experiments))),
    overviewSection(`Runs: ${number(partsOf("run").length)}`, partsOf("run"), plainTable(["run", "workload", "protocol", "platform", "result"],
      partsOf("run").map((part) => [link(part), part.value.application || part.value.workload.name, part.value.protocol, part.value.platform, mainNumber(part.value)]), { label: "runs" })),
    overviewSection(`Sweeps: ${number(partsOf("sweep").length)}`, partsOf("sweep"), plainTable(["sweep", "axes", "rows"],
      partsOf("sweep").map((part) => [link(part), part.axes.join(", "), part.rows.length]), { label: "sweeps" })),
    overviewSection(`Protocols: ${number(partsOf("protocol").length)}`, partsOf("protocol"), plainTable(["protocol", "controllers"], partsOf("protocol").map((part) => [link(part),
      part.tables.map((table) => `${tableTitle(table)}: ${countText(table.states, "state")}, ${countText(table.transitions, "transition")}`).join("; ")]), { label: "protocols" })),
    runTable(data.parts.filter((part) => part.runs.length)),
    element("p", { class: "faint" }, `This page was made by cohkit ${data.version}.`),
  ];
}

// Replaces the table of contents; `currentId` is the part shown, or empty for the overview.
function contents(currentId) {
  const item = (part) => element("li", {}, element("a", { href: `#/${part.id}`, "aria-current": part.id === currentId ? "page" : null }, part.title));
  const categoryLists = CATEGORIES.map(([kind, name]) => {
    const parts = data.parts.filter((part) => part.kind === kind);
    return parts.length ? [name ? element("h2", {}, name) : null, element("ul", {}, parts.map(item))] : null;
  });
  const all = data.begin ? null : element("ul", {}, element("li", {}, element("a", { href: "#/", "aria-current": currentId === "" ? "page" : null }, "Overview")));
  const list = element("details", { open: window.matchMedia("(min-width: 60rem)").matches }, element("summary", {}, "Contents"), all, categoryLists);
  document.getElementById("contents").replaceChildren(list);
}

// Shows the part that the address selects, or the overview. `moved` is true after a change of the address.
function show(moved) {
  const [id = "", ...rest] = decodeURI(window.location.hash.replace(/^#\/?/, "") || data.begin || "").split("/");
  const part = data.parts.find((candidate) => candidate.id === id);
  tooltip.hidden = true;
  contents(part ? part.id : "");
  const main = document.getElementById("main");
  main.replaceChildren(...(part ? PAGES[part.kind](part, rest) : overview()).filter(Boolean));
  fit();
  // The browser follows an address some time after the click; tests wait for this attribute.
  main.dataset.place = window.location.hash;
  if (moved) {
    main.focus({ preventScroll: true });
    if (!rest.includes("text")) window.scrollTo(0, 0);
  }
}

document.body.append(tooltip);
window.addEventListener("hashchange", () => show(true));
show(false);
