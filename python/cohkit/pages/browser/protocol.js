// A protocol: filterable tables of its agents, their diagrams, and the text.

// Page of one controller: its state diagram and the table of its rows, filtered by state, event and words.
function agentPage(part, table) {
  const first = Object.values(table.initial);
  const page = element("section", {});
  const filters = { words: "", state: "", event: "" };
  const unique = (key) => [...new Set(table.rows.map((row) => row[key]))];
  const options = (all, values) => [["", all], ...values.map((value) => [value, value])];

  const words = element("input", { type: "search", placeholder: "words in any cell", input: () => { filters.words = words.value; draw(); } });
  const state = choice(options("all states", unique("state")), "", (value) => { choose(value); });
  const event = choice(options("all events", unique("event")), "", (value) => { filters.event = value; draw(); });
  const count = element("p", { class: "faint", "aria-live": "polite" });
  const body = element("tbody", {});
  let mark = () => {};
  const frame = fittedFrame({ class: "drawn", tabindex: 0, role: "region", "aria-label": "state diagram" }, (width, place) => {
    const stateDiagram = diagram(table, first, (name) => choose(name === filters.state ? "" : name), width);
    mark = stateDiagram.mark;
    place.replaceChildren(stateDiagram.picture);
    mark(filters.state);
  });

  const choose = (name) => {
    filters.state = state.value = name;
    mark(name);
    draw();
  };
  const covered = table.rows.some((row) => row.taken !== undefined);
  const stateLink = (name) => (name === null ? "" : element("button", { type: "button", class: "plain mono", click: () => choose(name), title: `rows of ${name}` }, name));
  const place = (row) => (part.text === null ? `${row.line}` : element("a", { href: `#/${part.id}/text/${row.line}`, title: `line ${row.line} of ${part.file}` }, `${row.line}`));
  const draw = () => {
    const terms = filters.words.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = table.rows.filter((row) => {
      const all = [row.state, row.event, row.guard || "", ...row.actions, row.next || ""].join(" ").toLowerCase();
      return (!filters.state || row.state === filters.state) && (!filters.event || row.event === filters.event) && terms.every((word) => all.includes(word));
    });
    count.textContent = `${rows.length} of ${countText(table.rows.length, "row")}`;
    body.replaceChildren(...rows.map((row) =>
      element("tr", { class: row.taken === 0 ? "never" : null },
        element("td", { class: "mono" }, stateLink(row.state)),
        element("td", { class: "mono wrap" }, row.guard === null ? row.event : `${row.event} if ${row.guard}`),
        element("td", { class: "mono wrap" }, row.actions.join(", ")),
        element("td", { class: "mono" }, stateLink(row.next)),
        element("td", { class: "number" }, place(row)),
        covered ? element("td", { class: "number" }, row.taken === undefined ? "" : row.taken === 0 ? "never" : cellContent(row.taken)) : null)));
  };
  const heads = ["state", "event", "actions", "next state", "line"].concat(covered ? ["taken"] : []);
  page.append(
    element("p", {}, [countText(table.states, "state"), countText(table.transitions, "transition"), countText(table.events, "event")].join(", "),
      table.constructed ? ". The home follows from a policy; the table is that for one caching agent." : "."),
    element("details", { open: table.states <= 24 }, element("summary", {}, "State diagram"),
      element("p", { class: "faint" }, "Agents begin in states with a thick border. A click on a state marks the edges into it and out of it, and filters the rows below."), frame),
    element("div", { class: "bar" }, labelledControl("State", state), labelledControl("Event", event), labelledControl("Filter", words),
      element("button", { type: "button", click: () => { words.value = filters.words = event.value = filters.event = ""; choose(""); } }, "All rows")),
    count,
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "state table" },
      element("table", { class: "rows" }, element("thead", {}, element("tr", {}, heads.map((name) => element("th", { scope: "col" }, name)))), body)));
  draw();
  return page;
}

// Text of the protocol; `line` (from 1) is marked and scrolled to.
function sourcePage(part, line) {
  const lines = part.text.split("\n").map((text, index) =>
    element("div", { id: `line-${index + 1}`, class: index + 1 === line ? "here" : null }, text));
  const section = element("section", { class: "source mono", tabindex: 0, role: "region", "aria-label": `the text ${part.file}` }, lines);
  // Scrolling works only after the line was added to the page.
  if (line && lines[line - 1]) requestAnimationFrame(() => lines[line - 1].scrollIntoView({ block: "center" }));
  return section;
}

// Title of a table: the agent, and for a home made from a policy that it was constructed and merged.
function tableTitle(table) {
  return table.constructed ? `${table.agent}, constructed${table.merged ? " and merged" : ""}` : table.agent;
}

// Page of a protocol. The address selects the table or the text, and in the text a line.
function protocolPage(part, [view = "", place = ""]) {
  const tables = part.tables.map((table, index) => [`table-${index}`, tableTitle(table), () => agentPage(part, table)]);
  const views = part.text === null ? tables : [...tables, ["text", "text", () => sourcePage(part, Number(place))]];
  const selected = views.find(([name]) => name === view) || views[0];
  const title = selected[0] === "text" ? part.file : `${part.title}: ${selected[1]}`;
  return [
    element("h2", {}, title),
    element("p", {}, views.map(([name, text]) => [element("a", { href: `#/${part.id}/${name}`, "aria-current": name === selected[0] ? "page" : null }, text), " \u00a0 "]), element("span", { class: "faint" }, part.file)),
    ...(part.fault ? [element("p", { class: "violated" }, `The home cannot be constructed: ${part.fault.message}`),
      ...part.fault.sequences.map((sequence) => player(sequence, () => null))] : []),
    selected[2](),
  ];
}
