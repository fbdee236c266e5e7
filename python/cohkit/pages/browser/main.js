// The page: its parts, of which the address selects one.

const data = JSON.parse(document.getElementById("data").textContent);

// A report has no explorer, and does not include its script.
const PAGES = { explore: typeof explorePage === "undefined" ? null : explorePage, protocol: protocolPage, check: checkPage, experiments: experimentsPage, experiment: experimentPage, run: runPage, litmus: litmusPage, sweep: sweepPage };
const SHELVES = [["explore", ""], ["protocol", "Protocols"], ["check", "Checks"], ["litmus", "Litmus tests"], ["experiments", "Experiments"], ["experiment", ""], ["run", "Runs"], ["sweep", "Sweeps"]];

// Counts of each verdict, with their tags.
function verdicts(entries) {
  return ["violated", "undecided", "verified"].map((outcome) => [outcome, entries.filter((entry) => entry.outcome === outcome).length])
    .filter(([, count]) => count > 0).map(([outcome, count]) => [number(count), " ", tag(outcome), " "]);
}

function overview() {
  const of = (kind) => data.parts.filter((part) => part.kind === kind);
  const link = (part) => element("a", { href: `#/${part.id}` }, part.title);
  const systems = of("check").flatMap(placesOf), tests = of("litmus").flatMap(placesOf);
  const shelf = (title, list, ...shown) => (list.length ? element("section", {}, element("h3", {}, title), shown) : null);
  return [
    element("h2", {}, "Overview"),
    shelf(`Systems: ${number(systems.length)}`, systems, element("p", {}, verdicts(systems.map((one) => one.entry))), systemTable(systems, { label: "systems and their verdicts" })),
    shelf(`Litmus tests: ${number(tests.length)}`, tests, litmusTable(tests)),
    ...of("experiments").map((part) => shelf(`Experiments: ${number(part.experiments.length)}`, part.experiments, experimentCards(part.experiments))),
    shelf(`Runs: ${number(of("run").length)}`, of("run"), plainTable(["run", "workload", "protocol", "platform", "result"],
      of("run").map((part) => [link(part), part.value.application || part.value.workload.name, part.value.protocol, part.value.platform, mainNumber(part.value)]), { label: "runs" })),
    shelf(`Sweeps: ${number(of("sweep").length)}`, of("sweep"), plainTable(["sweep", "axes", "rows"],
      of("sweep").map((part) => [link(part), part.axes.join(", "), part.rows.length]), { label: "sweeps" })),
    shelf(`Protocols: ${number(of("protocol").length)}`, of("protocol"), plainTable(["protocol", "controllers"], of("protocol").map((part) => [link(part),
      part.tables.map((table) => `${tableTitle(table)}: ${counted(table.states, "state")}, ${counted(table.transitions, "transition")}`).join("; ")]), { label: "protocols" })),
    runTable(data.parts.filter((part) => part.runs.length)),
    element("p", { class: "faint" }, `This page was made by cohkit ${data.version}.`),
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
  main.replaceChildren(...(part ? PAGES[part.kind](part, rest) : overview()).filter(Boolean));
  fit();
  // The browser follows an address some time after the click; tests wait for this attribute.
  main.dataset.place = window.location.hash;
  if (moved) {
    main.focus({ preventScroll: true });
    if (!rest.includes("text")) window.scrollTo(0, 0);
  }
}

document.body.append(tip);
window.addEventListener("hashchange", () => show(true));
show(false);
