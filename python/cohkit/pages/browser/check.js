// Verdicts: checked systems, the path to a violation, and the rows taken.

function entryName(entry) {
  return entry.model || `${entry.protocol} ${entry.system}`;
}

// Initial states of agents: from the protocol if the report contains it, otherwise from the first state change.
function initialOf(entry) {
  const known = { ...data.initial[entry.protocol] };
  const trace = entry.counterexample && entry.counterexample.trace;
  for (const step of trace ? trace.steps : []) {
    for (const { variable, from } of step.changes) {
      const [, name, number] = variable.match(/^(.*)_state\[\d+\](?:\[(\d+)\])?$/) || [];
      if (name !== undefined) known[number === undefined ? name : `${name} ${number}`] ??= from;
    }
  }
  // If there are several agents of a kind, their names end in numbers.
  return (agent) => known[agent] || known[agent.replace(/ \d+$/, "")] || null;
}

function firstViolated(entry) {
  return entry.outcome === "violated" ? entry.counterexample?.name ?? entry.properties.find((one) => one.status === "violated")?.name ?? "" : "";
}

// The outcome, with the reason if it is undecided.
function verdict(entry) {
  return [tag(entry.outcome), entry.reason ? element("span", { class: "faint" }, ` ${entry.reason.replaceAll("_", " ")}`) : ""];
}

// Systems with their verdicts, violated ones first; each in a list with the address of its page.
function systemTable(listed, attributes) {
  const order = ["violated", "undecided", "verified"];
  const sorted = listed.toSorted((a, b) => order.indexOf(a.entry.outcome) - order.indexOf(b.entry.outcome));
  const rows = sorted.map(({ entry, place }) => [element("a", { href: place }, entryName(entry)), element("span", {}, verdict(entry)),
    firstViolated(entry) && element("span", { class: "violated" }, firstViolated(entry)), entry.states, duration(entry.run.seconds), entry.transitions, entry.depth]);
  return plainTable(...withoutEmpty(["system", "verdict", "first violated property", "states", "time", "transitions", "depth"], rows), attributes);
}

function checkPage(part, [number = ""]) {
  const entry = part.entries[part.entries.length === 1 ? 0 : Number(number)];
  if (entry && (number !== "" || part.entries.length === 1)) return entryPage(part, entry);
  return [element("h2", {}, part.title), systemTable(placesOf(part), { label: "systems and their verdicts" })];
}

// All entries of a part with the addresses of their pages.
function placesOf(part) {
  return part.entries.map((entry, at) => ({ entry, place: part.entries.length === 1 ? `#/${part.id}` : `#/${part.id}/${at}` }));
}

function entryPage(part, entry) {
  const example = entry.counterexample;
  const counts = [["state", entry.states], ["transition", entry.transitions], ["depth", entry.depth]].filter(([, count]) => count !== null)
    .map(([name, count]) => (name === "depth" ? `depth ${number(count)}` : counted(count, name)));
  return [
    element("h2", {}, entryName(entry), " ", verdict(entry)),
    ...(example ? counterexample(entry, example) : []),
    element("p", { class: "faint" }, part.entries.length > 1 ? [element("a", { href: `#/${part.id}` }, part.title), ": "] : null,
      counts.join(", "), entry.run.seconds === undefined ? "" : [" in ", duration(entry.run.seconds)]),
    element("h3", {}, "Properties"),
    plainTable(["property", "kind", "status"], entry.properties.map((one) => [one.name, one.kind.replaceAll("_", " "), tag(one.status)])),
    ...sentences("Assumptions", entry.assumptions), ...sentences("Notes", entry.notes),
    ...(entry.coverage ? coverage(entry.coverage) : []),
    runTable([part]),
  ];
}

function sentences(title, list) {
  return list && list.length ? [element("h3", {}, title), element("ul", {}, list.map((one) => element("li", {}, one)))] : [];
}

function counterexample(entry, example) {
  const trace = example.trace;
  const name = `\`${example.name}\` does not hold`;
  const made = [element("p", { class: "violation" }, element("strong", { class: entry.outcome }, example.name),
    example.message === example.name || example.message === name ? "" : `: ${example.message}`,
    trace ? `. The path to it takes ${counted(trace.steps.length, "step")} of the model.` : "")];
  for (const sequence of example.sequences || []) made.push(player(sequence, initialOf(entry)));
  made.push(...sentences("Steps", example.steps));
  if (example.explanation) made.push(...sentences("Wait-for relations", example.explanation.waits));
  if (trace) {
    // Show the rules if there is no chart.
    made.push(element("details", { open: !example.sequences?.length }, element("summary", {}, `Trace of the model: ${counted(trace.steps.length, "rule")}`),
      element("ol", { class: "mono" }, trace.steps.map((step) =>
        element("li", {}, step.rule, element("ul", {}, step.changes.map((one) =>
          element("li", { class: "faint" }, `${one.variable}: ${one.from} \u2192 ${one.to}`))))))));
  }
  return made;
}

function coverage(covered) {
  const never = covered.rows.filter((row) => row.taken === 0).length;
  const most = Math.max(1, ...covered.rows.map((row) => Number(row.taken)));
  const words = element("input", { type: "search", placeholder: "words in any cell", input: () => draw() });
  const body = element("tbody", {});
  const draw = () => {
    const sought = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = covered.rows.filter((row) => sought.every((word) => [row.agent, row.state, row.event, row.guard || ""].join(" ").toLowerCase().includes(word)));
    rows.sort((a, b) => (Number(a.taken) > 0) - (Number(b.taken) > 0));
    body.replaceChildren(...rows.map((row) => {
      const taken = Number(row.taken), share = taken ? 4 + (96 * Math.log1p(taken)) / Math.log1p(most) : 0;
      return element("tr", { class: taken ? null : "never" },
        ...[row.agent, row.state, row.guard === null ? row.event : `${row.event} if ${row.guard}`].map((cell) => element("td", { class: "mono" }, cell)),
        element("td", { class: "number" }, taken ? shown(row.taken) : "never"),
        element("td", {}, element("span", { class: "meter", style: `width: ${(share * 0.08).toFixed(2)}rem`, "aria-hidden": "true" })));
    }));
  };
  draw();
  const rules = covered.rules.toSorted((a, b) => (a.fired > 0) - (b.fired > 0));
  return [
    element("h3", {}, "Coverage"),
    ...(covered.rows.length ? [
      element("p", {}, never ? `${never} of ${counted(covered.rows.length, "row")} ${never === 1 ? "was" : "were"} never taken.` : "Every row was taken."),
      element("div", { class: "bar" }, labelled("Filter", words)),
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "rows taken" },
        element("table", { class: "coverage" }, element("thead", {}, element("tr", {}, ["agent", "state", "event", "taken", ""].map((name) => element("th", { scope: "col" }, name)))), body))] : []),
    element("details", {}, element("summary", {}, "Rules of the model"),
      plainTable(["rule", "instances", "fired", "to new states"], rules.map((rule) => [rule.rule, rule.instances, rule.fired, rule.new]))),
  ];
}
