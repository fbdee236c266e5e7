// Verdicts: checked systems, the path to a violation, and the rows taken.

// Name of a checked system: that of a Murphi model, or the protocol with the system.
function entryName(entry) {
  return entry.model || `${entry.protocol} ${entry.system}`;
}

// Initial states of agents: from the protocol if the report contains it, otherwise from the first state change.
function initialOf(entry) {
  const initialStates = { ...data.initial[entry.protocol] };
  const trace = entry.counterexample && entry.counterexample.trace;
  for (const step of trace ? trace.steps : []) {
    for (const { variable, from } of step.changes) {
      const [, name, number] = variable.match(/^(.*)_state\[\d+\](?:\[(\d+)\])?$/) || [];
      if (name !== undefined) initialStates[number === undefined ? name : `${name} ${number}`] ??= from;
    }
  }
  // If there are several agents of a kind, their names end in numbers.
  return (agent) => initialStates[agent] || initialStates[agent.replace(/ \d+$/, "")] || null;
}

// Name of the violated property to show in a list: that of the counterexample if there is one; empty if none is
// violated.
function firstViolated(entry) {
  return entry.outcome === "violated" ? entry.counterexample?.name ?? entry.properties.find((property) => property.status === "violated")?.name ?? "" : "";
}

// The outcome, with the reason if it is undecided.
function verdict(entry) {
  return [tag(entry.outcome), entry.reason ? element("span", { class: "faint" }, ` ${entry.reason.replaceAll("_", " ")}`) : ""];
}

// Systems with their verdicts, violated ones first; each in a list with the address of its page.
function systemTable(places, attributes) {
  const order = ["violated", "undecided", "verified"];
  const sorted = places.toSorted((a, b) => order.indexOf(a.entry.outcome) - order.indexOf(b.entry.outcome));
  const rows = sorted.map(({ entry, place }) => [element("a", { href: place }, entryName(entry)), element("span", {}, verdict(entry)),
    firstViolated(entry) && element("span", { class: "violated" }, firstViolated(entry)), entry.states, duration(entry.run.seconds), entry.transitions, entry.depth]);
  return plainTable(...withoutEmpty(["system", "verdict", "first violated property", "states", "time", "transitions", "depth"], rows), attributes);
}

// Page of a check: the entry with the number in the address, otherwise the list of all entries.
function checkPage(part, [number = ""]) {
  const entry = part.entries[part.entries.length === 1 ? 0 : Number(number)];
  if (entry && (number !== "" || part.entries.length === 1)) return entryPage(part, entry);
  return [element("h2", {}, part.title), systemTable(placesOf(part), { label: "systems and their verdicts" })];
}

// All entries of a part with the addresses of their pages.
function placesOf(part) {
  return part.entries.map((entry, index) => ({ entry, place: part.entries.length === 1 ? `#/${part.id}` : `#/${part.id}/${index}` }));
}

// Page of one checked system: verdict, counterexample, properties, and coverage.
function entryPage(part, entry) {
  const example = entry.counterexample;
  const counts = [["state", entry.states], ["transition", entry.transitions], ["depth", entry.depth]].filter(([, count]) => count !== null)
    .map(([name, count]) => (name === "depth" ? `depth ${number(count)}` : countText(count, name)));
  return [
    element("h2", {}, entryName(entry), " ", verdict(entry)),
    ...(example ? counterexample(entry, example) : []),
    element("p", { class: "faint" }, part.entries.length > 1 ? [element("a", { href: `#/${part.id}` }, part.title), ": "] : null,
      counts.join(", "), entry.run.seconds === undefined ? "" : [" in ", duration(entry.run.seconds)]),
    element("h3", {}, "Properties"),
    plainTable(["property", "kind", "status"], entry.properties.map((property) => [property.name, property.kind.replaceAll("_", " "), tag(property.status)])),
    ...sentences("Assumptions", entry.assumptions), ...sentences("Notes", entry.notes),
    ...(entry.coverage ? coverage(entry.coverage) : []),
    runTable([part]),
  ];
}

// List of sentences with a heading; nothing for an empty or absent list.
function sentences(title, list) {
  return list && list.length ? [element("h3", {}, title), element("ul", {}, list.map((sentence) => element("li", {}, sentence)))] : [];
}

// Violated property with its message, and the path to it: charts if there are any, steps, and the trace of the model.
function counterexample(entry, example) {
  const trace = example.trace;
  const name = `\`${example.name}\` does not hold`;
  const elements = [element("p", { class: "violation" }, element("strong", { class: entry.outcome }, example.name),
    example.message === example.name || example.message === name ? "" : `: ${example.message}`,
    trace ? `. The path to it takes ${countText(trace.steps.length, "step")} of the model.` : "")];
  for (const sequence of example.sequences || []) elements.push(player(sequence, initialOf(entry)));
  elements.push(...sentences("Steps", example.steps));
  if (example.explanation) elements.push(...sentences("Wait-for relations", example.explanation.wait_for));
  if (trace) {
    // Show the rules if there is no chart.
    elements.push(element("details", { open: !example.sequences?.length }, element("summary", {}, `Trace of the model: ${countText(trace.steps.length, "rule")}`),
      element("ol", { class: "mono" }, trace.steps.map((step) =>
        element("li", {}, step.rule, element("ul", {}, step.changes.map((change) =>
          element("li", { class: "faint" }, `${change.variable}: ${change.from} \u2192 ${change.to}`))))))));
  }
  return elements;
}

// Table of rows with the number of times each was taken, rows never taken first, and a table of the model's rules.
function coverage(covered) {
  const neverCount = covered.rows.filter((row) => row.taken === 0).length;
  const maxTaken = Math.max(1, ...covered.rows.map((row) => Number(row.taken)));
  const words = element("input", { type: "search", placeholder: "words in any cell", input: () => draw() });
  const body = element("tbody", {});
  const draw = () => {
    const terms = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = covered.rows.filter((row) => terms.every((word) => [row.agent, row.state, row.event, row.guard || ""].join(" ").toLowerCase().includes(word)));
    rows.sort((a, b) => (Number(a.taken) > 0) - (Number(b.taken) > 0));
    body.replaceChildren(...rows.map((row) => {
      const taken = Number(row.taken), share = taken ? 4 + (96 * Math.log1p(taken)) / Math.log1p(maxTaken) : 0;
      return element("tr", { class: taken ? null : "never" },
        ...[row.agent, row.state, row.guard === null ? row.event : `${row.event} if ${row.guard}`].map((cell) => element("td", { class: "mono" }, cell)),
        element("td", { class: "number" }, taken ? cellContent(row.taken) : "never"),
        element("td", {}, element("span", { class: "meter", style: `width: ${(share * 0.08).toFixed(2)}rem`, "aria-hidden": "true" })));
    }));
  };
  draw();
  const rules = covered.rules.toSorted((a, b) => (a.fired > 0) - (b.fired > 0));
  return [
    element("h3", {}, "Coverage"),
    ...(covered.rows.length ? [
      element("p", {}, neverCount ? `${neverCount} of ${countText(covered.rows.length, "row")} ${neverCount === 1 ? "was" : "were"} never taken.` : "Every row was taken."),
      element("div", { class: "bar" }, labelledControl("Filter", words)),
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "rows taken" },
        element("table", { class: "coverage" }, element("thead", {}, element("tr", {}, ["agent", "state", "event", "taken", ""].map((name) => element("th", { scope: "col" }, name)))), body))] : []),
    element("details", {}, element("summary", {}, "Rules of the model"),
      plainTable(["rule", "instances", "fired", "to new states"], rules.map((rule) => [rule.rule, rule.instances, rule.fired, rule.new]))),
  ];
}
