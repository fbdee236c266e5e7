// Results: published numbers beside ours, timed runs, litmus tests, and sweeps.

// Formats a number of a result with its unit; a count has none. Empty for null.
function withUnit(value, unit) {
  if (value === null) return "";
  return unit === "" || unit === "count" ? number(value) : `${digits(value)} ${unit}`;
}

// Cell with a number and its unit; the tooltip shows all digits.
function unitCell(value, unit) {
  return value === null ? "" : element("span", { class: "measured", title: `${value} ${unit}`.trim() }, withUnit(value, unit));
}

// Formats a relative error with its sign, as a percentage.
function percent(value) {
  return value === null ? "" : `${value > 0 ? "+" : ""}${Math.abs(value) < 1 ? (100 * value).toFixed(1) : digits(100 * value)} %`;
}

// Error of our number relative to the published one. Without a published number: the ratio of our number to the bound
// of the published statement, and whether the statement holds.
function errorText(error, ratio, holds) {
  if (error !== null) return percent(error);
  return ratio === null ? "" : `${digits(ratio)}x${holds === null ? "" : holds ? ", holds" : ", fails"}`;
}

// Description of a row for its tooltip: the numbers, their error, and whether ours was fitted, known or predicted
// blind.
function rowWords(row) {
  const lines = [row.name, `ours: ${withUnit(row.ours, row.unit)}`];
  if (row.published !== null) lines.push(`published: ${withUnit(row.published, row.unit)}`);
  else if (row.says) lines.push(`published: ${row.says}`);
  const error = errorText(row.error, row.ratio, row.holds);
  if (error) lines.push(`off by ${error}`);
  if (row.blind !== null) lines.push(`blind: ${withUnit(row.blind, row.unit)}`);
  lines.push(row.use);
  return lines.join("\n");
}

// Maximum and median of the absolute errors of an experiment.
function errorsOf(rows) {
  const errors = rows.filter((row) => row.error !== null).map((row) => Math.abs(row.error)).sort((a, b) => a - b);
  if (!errors.length) return null;
  const middle = errors.length / 2;
  const median = Number.isInteger(middle) ? (errors[middle - 1] + errors[middle]) / 2 : errors[Math.floor(middle)];
  return { count: errors.length, worst: errors.at(-1), median };
}

// Maximum and median error as text; dashes if no published number can be compared.
function errorWords(rows) {
  const errors = errorsOf(rows);
  return errors ? { worst: percent(errors.worst).replace("+", ""), median: percent(errors.median).replace("+", "") } : { worst: "\u2013", median: "\u2013" };
}

// Removes columns whose cells are all empty.
function withoutEmpty(heads, rows) {
  const isKept = heads.map((_, index) => index === 0 || rows.some((row) => row[index] !== ""));
  return [heads.filter((_, index) => isKept[index]), rows.map((row) => row.filter((_, index) => isKept[index]))];
}

// Page of an experiment: headline, errors, plots, and the table of our numbers beside the published ones.
function experimentPage(part) {
  const unpublished = part.rows.filter((row) => row.published === null && !row.says).length;
  const rows = part.rows.map((row) => [
    row.name, row.published === null ? row.says || "" : unitCell(row.published, row.unit), unitCell(row.ours, row.unit), errorText(row.error, row.ratio, row.holds),
    unitCell(row.blind, row.unit), row.blind === null ? "" : errorText(row.blind_error, row.blind_ratio, row.blind_holds), row.use]);
  const plots = part.plots.map((plot) => {
    const words = (point) => ({ ...point, words: rowWords(part.rows[point.row]) });
    return plot.kind === "bars" ? bars(plot.bars.map(words), plot)
      : curves(plot.series.map((curve) => ({ ...curve, points: curve.points.map(words) })), { ...plot, levels: plot.levels.map(words) });
  });
  const { worst, median } = errorWords(part.rows);
  return [
    element("h2", {}, part.title), element("p", {}, part.headline),
    errorsOf(part.rows) ? element("p", {}, "Worst error ", element("strong", {}, worst), ", median ", element("strong", {}, median), ` of ${countText(errorsOf(part.rows).count, "published number")}.`) : null,
    ...part.notes.map((note) => element("p", { class: "faint" }, prose(note))),
    element("div", { class: "figures" }, plots),
    plainTable(...withoutEmpty(["number", "published", "ours", "error", "blind", "blind error", "origin"], rows), { label: "published numbers beside ours" }),
    unpublished ? element("p", { class: "faint" }, `${countText(unpublished, "number")} without a published one. Published numbers from a separate file are added by `,
      element("code", {}, "cohkit reproduce --published FILE.toml"), ".") : null,
    runTable([part]),
  ];
}

// Page of all experiments.
function experimentsPage(part) {
  return [element("h2", {}, "Published numbers beside ours"), experimentCards(part.experiments)];
}

// One card for each experiment, with its thumbnail and errors.
function experimentCards(experiments) {
  const pages = new Map(data.parts.map((item) => [item.id, item]));
  return element("ul", { class: "cards" }, experiments.map((item) => {
    const errors = errorsOf(item.rows), { worst, median } = errorWords(item.rows);
    const errorItems = errors ? [element("span", {}, "worst error ", element("strong", {}, worst)), element("span", {}, "median ", element("strong", {}, median)),
      element("span", { class: "faint" }, `of ${countText(errors.count, "published number")}`)]
      : [element("span", { class: "faint" }, `${countText(item.rows.length, "number")}, no published one`)];
    return element("li", {}, element("a", { href: `#/${item.id}` }, thumbnail(pages.get(item.id)), element("span", { class: "name" }, item.name)),
      element("p", {}, item.headline), element("p", { class: "errors" }, errorItems));
  }));
}

// Commands, versions and run times of these parts.
function runTable(parts) {
  const rows = parts.flatMap((part) => part.runs.map((run) => [element("span", { class: "mono" }, part.file), run.command ? element("code", { class: "wrap" }, run.command) : "",
    run.version || "", run.threads ?? "", duration(run.seconds)]));
  // Several experiments may share a file and a command.
  const uniqueRows = new Map(rows.map((row) => [row.map((cell) => cell?.textContent ?? cell).join("\n"), row]));
  if (!rows.length) return null;
  return element("section", { class: "runs" }, element("h3", {}, parts.length > 1 ? "Commands and versions" : "Command and version"),
    plainTable(...withoutEmpty(["file", "command", "cohkit", "threads", "time"], [...uniqueRows.values()]), { label: "commands and versions" }));
}

// Converts nested mappings to pairs of a dotted name and a value.
function flatPairs(value, prefix = "") {
  return Object.entries(value).flatMap(([key, item]) =>
    item !== null && typeof item === "object" && !Array.isArray(item) ? flatPairs(item, `${prefix}${key}.`) : [[prefix + key, Array.isArray(item) ? item.join("; ") : item]]);
}

// Table of named values, with the units from their names.
function valueTable(title, value, prefix = "") {
  const pairs = flatPairs(value).filter(([key]) => !key.endsWith("distribution"));
  const rows = pairs.map(([key, item]) => [quantity(prefix + key).name.replace(prefix.replaceAll("_", " "), ""), valueWithUnit(prefix + key, item)]);
  return element("section", {}, element("h3", {}, title), plainTable(["name", "value"], rows, { label: title }));
}

// Main result of a run.
function mainNumber(run) {
  if (run.failure) return element("span", { class: "violated" }, `${run.failure.kind}: ${run.failure.message}`);
  const rates = Object.entries(run.rates_per_s || {}), mean = run.statistics?.latency_mean_ns;
  if (rates.length) return element("span", {}, rates.map(([name, rate]) => `${name} ${inUnits("rate", rate)}`).join(", "));
  return typeof mean === "number" ? element("span", {}, `mean latency ${inUnits("time", mean * 1e-9)}`) : "";
}

// Page of a simulation or an application run: failure, parts of the latency, messages, and statistics.
function runPage(part) {
  const run = part.value, failure = run.failure;
  const counts = Object.entries(run.messages || {}).filter(([, count]) => count > 0);
  const header = [
    element("h2", {}, part.title),
    element("p", {}, `${run.protocol} on ${run.platform}, seed ${run.seed}`, run.settings.length ? `; ${run.settings.join(", ")}` : ""),
  ];
  if (failure) header.push(element("p", { class: "violated" }, `${failure.kind}: ${failure.message}`), ...sentences("Wait-for relations", failure.wait_for), player(failure.sequence, () => null));
  const figures = [];
  for (const [memoryName, explanation] of [["", run.explanation], [" of accesses to the host's memory", run.host?.explanation]]) {
    if (!explanation) continue;
    const parts = explanation.parts.filter((component) => component.mean_ns > 0);
    figures.push(element("section", {}, element("h3", {}, `Where the time${memoryName} goes`), element("p", {}, `Limited by ${explanation.limit.name}: ${explanation.limit.reason}.`),
      bars(parts.map((component) => ({ name: component.name, y: component.mean_ns, published: null, words: `${component.name}: ${number(component.mean_ns)} ns of a mean access` })), { y: "mean access (ns)" })));
  }
  if (counts.length) figures.push(element("section", {}, element("h3", {}, "Messages"), bars(counts.map(([name, count]) => ({ name, y: count, published: null, words: `${name}: ${number(count)}` })), { y: "messages sent" })));
  const tables = [];
  for (const name of run.application ? ["parameters", "counts", "rates_per_s", "durations_ns", "statistics"] : ["workload", "statistics"]) {
    if (run[name]) tables.push(valueTable(quantity(name).name, run[name], ["rates_per_s", "durations_ns"].includes(name) ? `${name}.` : ""));
  }
  if (run.host) tables.push(valueTable("the host's memory", run.host.statistics));
  return [...header, element("div", { class: "figures" }, figures), element("div", { class: "tables" }, tables), runTable([part])];
}

// Observation of a litmus test in herd's terms, and whether the test or the protocol allows it.
function observation(test) {
  const word = test.observation ? test.observation[0].toUpperCase() + test.observation.slice(1) : "";
  return test.outcome === "violated" || test.outcome === "undecided" ? [word, " ", tag(test.outcome)] : [word || tag(test.outcome)];
}

// Table of litmus tests, with the addresses of their pages.
function litmusTable(places) {
  const rows = places.map(({ entry, place }) => [element("a", { href: place }, entry.test), element("span", {}, observation(entry)), entry.condition.replaceAll("_", " "), entry.protocol ?? "",
    entry.cores.replaceAll("_", " "), entry.model, entry.outcomes.length]);
  return plainTable(...withoutEmpty(["test", "observed", "condition", "protocol", "cores", "model", "outcomes"], rows), { label: "litmus tests" });
}

// Page of one litmus test with its chart and outcomes, or the list of all tests of the part.
function litmusPage(part, [number = ""]) {
  const test = part.entries[part.entries.length === 1 ? 0 : Number(number)];
  if (!test || (number === "" && part.entries.length > 1)) return [element("h2", {}, part.title), litmusTable(placesOf(part)), runTable([part])];
  const names = [...new Set(test.outcomes.flatMap((outcome) => Object.keys(outcome.values)))];
  return [
    element("h2", {}, test.test, " ", observation(test)),
    part.entries.length > 1 ? element("p", {}, element("a", { href: `#/${part.id}` }, part.title)) : null,
    ...(test.sequence ? [player(test.sequence, () => null)] : []),
    element("h3", {}, countText(test.outcomes.length, "outcome")),
    plainTable([...names, "satisfies the condition", "allowed"], test.outcomes.map((outcome) => [...names.map((name) => outcome.values[name] ?? null), outcome.satisfies, outcome.allowed])),
    runTable([part]),
  ];
}

// A sweep: any column of its table as a function of any axis, with one line per value of another axis.
function sweepPage(part) {
  const { columns, rows, axes: sweptAxes } = part;
  const column = (name) => columns.indexOf(name);
  const numeric = columns.filter((name) => rows.some((row) => typeof row[column(name)] === "number") && rows.every((row) => typeof row[column(name)] !== "string"));
  const heads = ["point", "repetition", "seed", "code", ...sweptAxes];
  // List statistics first.
  const sortKey = (name) => (name.startsWith("statistics.") ? 0 : 1);
  const measures = numeric.filter((name) => !heads.includes(name)).toSorted((a, b) => sortKey(a) - sortKey(b));
  const selection = { y: measures.find((name) => name.includes("latency_mean")) || measures[0] || "", x: sweptAxes[0] || "point", by: sweptAxes[1] || "" };
  const container = element("div", {});
  const choices = (names) => names.map((name) => [name, name]);
  // The unit of an axis is in a separate column.
  const unit = (name) => rows.map((row) => row[column(`${name}.unit`)]).find(Boolean) || "";
  const cell = (row, name) => (unit(name) ? `${row[column(name)]} ${unit(name)}` : row[column(name)]);
  const measuredCell = (row, name) => (measures.includes(name) ? valueWithUnit(name, row[column(name)]) : cell(row, name));
  const value = (cell) => (typeof cell === "number" ? cell : parseFloat(cell));
  const draw = () => {
    const { kind, factor, name: title } = quantity(selection.y.replace(/^statistics\./, ""));
    const maxValue = Math.max(...rows.map((row) => row[column(selection.y)]).filter((item) => typeof item === "number").map(Math.abs));
    const [displayUnit, size] = kind ? unitFor(kind, maxValue * factor) : ["", 1];
    const groups = new Map();
    for (const row of rows) {
      const axisValue = value(row[column(selection.x)]), measuredValue = row[column(selection.y)];
      if (typeof measuredValue !== "number" || Number.isNaN(axisValue)) continue;
      const name = selection.by ? `${selection.by} ${cell(row, selection.by)}` : selection.y;
      const words = `${selection.x} ${cell(row, selection.x)}\n${selection.by ? `${name}\n` : ""}${selection.y}: ${kind ? inUnits(kind, measuredValue * factor) : number(measuredValue)}`;
      groups.set(name, [...(groups.get(name) || []), { x: axisValue, y: (measuredValue * factor) / size, published: null, words }]);
    }
    const series = [...groups].map(([name, points]) => ({ name, points: points.sort((a, b) => a.x - b.x) }));
    const axisTitle = unit(selection.x) ? `${selection.x} (${unit(selection.x)})` : selection.x;
    container.replaceChildren(series.length ? curves(series, { x: axisTitle, y: displayUnit ? `${title} (${displayUnit})` : title }) : element("p", { class: "faint" }, "Neither axis has numbers to draw."),
      tableOf([...new Set(["point", ...sweptAxes, "code", "error", selection.y])]));
    if (container.isConnected) fit();
  };
  const tableOf = (names) => {
    const presentColumns = names.filter((name) => column(name) >= 0);
    return plainTable(...withoutEmpty(presentColumns, rows.map((row) => presentColumns.map((name) => measuredCell(row, name) ?? ""))), { label: "points of the sweep" });
  };
  const failed = rows.filter((row) => row[column("error")]).length;
  draw();
  return [
    element("h2", {}, part.title), element("p", {}, countText(rows.length, "row"), failed ? element("span", { class: "violated" }, `, ${failed} of them failed`) : ""),
    ...(measures.length ? [element("div", { class: "bar" },
      labelledControl("Show", choice(choices(measures), selection.y, (name) => { selection.y = name; draw(); })),
      labelledControl("against", choice(choices(["point", ...sweptAxes]), selection.x, (name) => { selection.x = name; draw(); })),
      labelledControl("a line for each", choice([["", "nothing"], ...choices(sweptAxes)], selection.by, (name) => { selection.by = name; draw(); })))] : []), container,
    element("details", {}, element("summary", {}, `All ${countText(columns.length, "column")}`), tableOf(["point", ...sweptAxes, "code", "error", ...measures])),
    runTable([part]),
  ];
}
