// Results: published numbers beside ours, timed runs, litmus tests, and sweeps.

function withUnit(value, unit) {
  if (value === null) return "";
  return unit === "" || unit === "count" ? number(value) : `${digits(value)} ${unit}`;
}

function unitCell(value, unit) {
  return value === null ? "" : element("span", { class: "measured", title: `${value} ${unit}`.trim() }, withUnit(value, unit));
}

function percent(value) {
  return value === null ? "" : `${value > 0 ? "+" : ""}${Math.abs(value) < 1 ? (100 * value).toFixed(1) : digits(100 * value)} %`;
}

function judged(error, ratio, holds) {
  if (error !== null) return percent(error);
  return ratio === null ? "" : `${digits(ratio)}x${holds === null ? "" : holds ? ", holds" : ", fails"}`;
}

function rowWords(row) {
  const said = [row.name, `ours: ${withUnit(row.ours, row.unit)}`];
  if (row.published !== null) said.push(`published: ${withUnit(row.published, row.unit)}`);
  else if (row.says) said.push(`published: ${row.says}`);
  const error = judged(row.error, row.ratio, row.holds);
  if (error) said.push(`off by ${error}`);
  if (row.blind !== null) said.push(`blind: ${withUnit(row.blind, row.unit)}`);
  said.push(row.use);
  return said.join("\n");
}

// Maximum and median of the absolute errors of an experiment.
function errorsOf(rows) {
  const errors = rows.filter((row) => row.error !== null).map((row) => Math.abs(row.error)).sort((a, b) => a - b);
  if (!errors.length) return null;
  const middle = errors.length / 2;
  const median = Number.isInteger(middle) ? (errors[middle - 1] + errors[middle]) / 2 : errors[Math.floor(middle)];
  return { count: errors.length, worst: errors.at(-1), median };
}

function errorWords(rows) {
  const errors = errorsOf(rows);
  return errors ? { worst: percent(errors.worst).replace("+", ""), median: percent(errors.median).replace("+", "") } : { worst: "\u2013", median: "\u2013" };
}

// Removes columns whose cells are all empty.
function withoutEmpty(heads, rows) {
  const kept = heads.map((_, at) => at === 0 || rows.some((row) => row[at] !== ""));
  return [heads.filter((_, at) => kept[at]), rows.map((row) => row.filter((_, at) => kept[at]))];
}

function experimentPage(part) {
  const unpublished = part.rows.filter((row) => row.published === null && !row.says).length;
  const rows = part.rows.map((row) => [
    row.name, row.published === null ? row.says || "" : unitCell(row.published, row.unit), unitCell(row.ours, row.unit), judged(row.error, row.ratio, row.holds),
    unitCell(row.blind, row.unit), row.blind === null ? "" : judged(row.blind_error, row.blind_ratio, row.blind_holds), row.use]);
  const plots = part.plots.map((plot) => {
    const words = (point) => ({ ...point, words: rowWords(part.rows[point.row]) });
    return plot.kind === "bars" ? bars(plot.bars.map(words), plot)
      : curves(plot.series.map((one) => ({ ...one, points: one.points.map(words) })), { ...plot, levels: plot.levels.map(words) });
  });
  const { worst, median } = errorWords(part.rows);
  return [
    element("h2", {}, part.title), element("p", {}, part.headline),
    errorsOf(part.rows) ? element("p", {}, "Worst error ", element("strong", {}, worst), ", median ", element("strong", {}, median), ` of ${counted(errorsOf(part.rows).count, "published number")}.`) : null,
    ...part.notes.map((note) => element("p", { class: "faint" }, prose(note))),
    element("div", { class: "figures" }, plots),
    plainTable(...withoutEmpty(["number", "published", "ours", "error", "blind", "blind error", "origin"], rows), { label: "published numbers beside ours" }),
    unpublished ? element("p", { class: "faint" }, `${counted(unpublished, "number")} without a published one. Published numbers from a separate file are added by `,
      element("code", {}, "cohkit reproduce --published FILE.toml"), ".") : null,
    runTable([part]),
  ];
}

function experimentsPage(part) {
  return [element("h2", {}, "Published numbers beside ours"), experimentCards(part.experiments)];
}

function experimentCards(experiments) {
  const pages = new Map(data.parts.map((one) => [one.id, one]));
  return element("ul", { class: "cards" }, experiments.map((one) => {
    const errors = errorsOf(one.rows), { worst, median } = errorWords(one.rows);
    const known = errors ? [element("span", {}, "worst error ", element("strong", {}, worst)), element("span", {}, "median ", element("strong", {}, median)),
      element("span", { class: "faint" }, `of ${counted(errors.count, "published number")}`)]
      : [element("span", { class: "faint" }, `${counted(one.rows.length, "number")}, no published one`)];
    return element("li", {}, element("a", { href: `#/${one.id}` }, thumbnail(pages.get(one.id)), element("span", { class: "name" }, one.name)),
      element("p", {}, one.headline), element("p", { class: "errors" }, known));
  }));
}

// Commands, versions and run times of these parts.
function runTable(parts) {
  const rows = parts.flatMap((part) => part.runs.map((run) => [element("span", { class: "mono" }, part.file), run.command ? element("code", { class: "wrap" }, run.command) : "",
    run.version || "", run.threads ?? "", duration(run.seconds)]));
  // Several experiments may share a file and a command.
  const each = new Map(rows.map((row) => [row.map((cell) => cell?.textContent ?? cell).join("\n"), row]));
  if (!rows.length) return null;
  return element("section", { class: "runs" }, element("h3", {}, parts.length > 1 ? "Commands and versions" : "Command and version"),
    plainTable(...withoutEmpty(["file", "command", "cohkit", "threads", "time"], [...each.values()]), { label: "commands and versions" }));
}

function flatPairs(value, before = "") {
  return Object.entries(value).flatMap(([key, one]) =>
    one !== null && typeof one === "object" && !Array.isArray(one) ? flatPairs(one, `${before}${key}.`) : [[before + key, Array.isArray(one) ? one.join("; ") : one]]);
}

// Table of named values, with the units from their names.
function valueTable(title, value, before = "") {
  const pairs = flatPairs(value).filter(([key]) => !key.endsWith("distribution"));
  const rows = pairs.map(([key, one]) => [quantity(before + key).name.replace(before.replaceAll("_", " "), ""), measured(before + key, one)]);
  return element("section", {}, element("h3", {}, title), plainTable(["name", "value"], rows, { label: title }));
}

// Main result of a run.
function mainNumber(run) {
  if (run.failure) return element("span", { class: "violated" }, `${run.failure.kind}: ${run.failure.message}`);
  const rates = Object.entries(run.rates_per_s || {}), mean = run.statistics?.latency_mean_ns;
  if (rates.length) return element("span", {}, rates.map(([name, rate]) => `${name} ${inUnits("rate", rate)}`).join(", "));
  return typeof mean === "number" ? element("span", {}, `mean latency ${inUnits("time", mean * 1e-9)}`) : "";
}

function runPage(part) {
  const run = part.value, failure = run.failure;
  const counts = Object.entries(run.messages || {}).filter(([, count]) => count > 0);
  const made = [
    element("h2", {}, part.title),
    element("p", {}, `${run.protocol} on ${run.platform}, seed ${run.seed}`, run.settings.length ? `; ${run.settings.join(", ")}` : ""),
  ];
  if (failure) made.push(element("p", { class: "violated" }, `${failure.kind}: ${failure.message}`), ...sentences("Wait-for relations", failure.waits), player(failure.sequence, () => null));
  const figures = [];
  for (const [of, told] of [["", run.explanation], [" of accesses to the host's memory", run.host?.explanation]]) {
    if (!told) continue;
    const parts = told.parts.filter((one) => one.mean_ns > 0);
    figures.push(element("section", {}, element("h3", {}, `Where the time${of} goes`), element("p", {}, `Limited by ${told.limit.name}: ${told.limit.reason}.`),
      bars(parts.map((one) => ({ name: one.name, y: one.mean_ns, published: null, words: `${one.name}: ${number(one.mean_ns)} ns of a mean access` })), { y: "mean access (ns)" })));
  }
  if (counts.length) figures.push(element("section", {}, element("h3", {}, "Messages"), bars(counts.map(([name, count]) => ({ name, y: count, published: null, words: `${name}: ${number(count)}` })), { y: "messages sent" })));
  const tables = [];
  for (const name of run.application ? ["numbers", "counts", "rates_per_s", "times_ns", "statistics"] : ["workload", "statistics"]) {
    if (run[name]) tables.push(valueTable(quantity(name).name, run[name], ["rates_per_s", "times_ns"].includes(name) ? `${name}.` : ""));
  }
  if (run.host) tables.push(valueTable("the host's memory", run.host.statistics));
  return [...made, element("div", { class: "figures" }, figures), element("div", { class: "tables" }, tables), runTable([part])];
}

// Observation of a litmus test in herd's terms, and whether the test or the protocol allows it.
function observed(test) {
  const word = test.observation ? test.observation[0].toUpperCase() + test.observation.slice(1) : "";
  return test.outcome === "violated" || test.outcome === "undecided" ? [word, " ", tag(test.outcome)] : [word || tag(test.outcome)];
}

function litmusTable(listed) {
  const rows = listed.map(({ entry, place }) => [element("a", { href: place }, entry.test), element("span", {}, observed(entry)), entry.condition.replaceAll("_", " "), entry.protocol ?? "",
    entry.cores.replaceAll("_", " "), entry.model, entry.ends.length]);
  return plainTable(...withoutEmpty(["test", "observed", "condition", "protocol", "cores", "model", "outcomes"], rows), { label: "litmus tests" });
}

function litmusPage(part, [number = ""]) {
  const test = part.entries[part.entries.length === 1 ? 0 : Number(number)];
  if (!test || (number === "" && part.entries.length > 1)) return [element("h2", {}, part.title), litmusTable(placesOf(part)), runTable([part])];
  const names = [...new Set(test.ends.flatMap((end) => Object.keys(end.values)))];
  return [
    element("h2", {}, test.test, " ", observed(test)),
    part.entries.length > 1 ? element("p", {}, element("a", { href: `#/${part.id}` }, part.title)) : null,
    ...(test.sequence ? [player(test.sequence, () => null)] : []),
    element("h3", {}, counted(test.ends.length, "outcome")),
    plainTable([...names, "satisfies the condition", "allowed"], test.ends.map((end) => [...names.map((name) => end.values[name] ?? null), end.fulfils, end.allowed])),
    runTable([part]),
  ];
}

// A sweep: any column of its table as a function of any axis, with one line per value of another axis.
function sweepPage(part) {
  const { columns, rows, axes: swept } = part;
  const column = (name) => columns.indexOf(name);
  const numeric = columns.filter((name) => rows.some((row) => typeof row[column(name)] === "number") && rows.every((row) => typeof row[column(name)] !== "string"));
  const heads = ["point", "repetition", "seed", "code", ...swept];
  // List statistics first.
  const later = (name) => (name.startsWith("statistics.") ? 0 : 1);
  const measures = numeric.filter((name) => !heads.includes(name)).toSorted((a, b) => later(a) - later(b));
  const wanted = { y: measures.find((name) => name.includes("latency_mean")) || measures[0] || "", x: swept[0] || "point", by: swept[1] || "" };
  const place = element("div", {});
  const listed = (names) => names.map((name) => [name, name]);
  // The unit of an axis is in a separate column.
  const unit = (name) => rows.map((row) => row[column(`${name}.unit`)]).find(Boolean) || "";
  const cell = (row, name) => (unit(name) ? `${row[column(name)]} ${unit(name)}` : row[column(name)]);
  const shownCell = (row, name) => (measures.includes(name) ? measured(name, row[column(name)]) : cell(row, name));
  const value = (cell) => (typeof cell === "number" ? cell : parseFloat(cell));
  const draw = () => {
    const { kind, factor, name: title } = quantity(wanted.y.replace(/^statistics\./, ""));
    const most = Math.max(...rows.map((row) => row[column(wanted.y)]).filter((one) => typeof one === "number").map(Math.abs));
    const [shownIn, size] = kind ? unitFor(kind, most * factor) : ["", 1];
    const groups = new Map();
    for (const row of rows) {
      const at = value(row[column(wanted.x)]), got = row[column(wanted.y)];
      if (typeof got !== "number" || Number.isNaN(at)) continue;
      const name = wanted.by ? `${wanted.by} ${cell(row, wanted.by)}` : wanted.y;
      const words = `${wanted.x} ${cell(row, wanted.x)}\n${wanted.by ? `${name}\n` : ""}${wanted.y}: ${kind ? inUnits(kind, got * factor) : number(got)}`;
      groups.set(name, [...(groups.get(name) || []), { x: at, y: (got * factor) / size, published: null, words }]);
    }
    const series = [...groups].map(([name, points]) => ({ name, points: points.sort((a, b) => a.x - b.x) }));
    const along = unit(wanted.x) ? `${wanted.x} (${unit(wanted.x)})` : wanted.x;
    place.replaceChildren(series.length ? curves(series, { x: along, y: shownIn ? `${title} (${shownIn})` : title }) : element("p", { class: "faint" }, "Neither axis has numbers to draw."),
      tableOf([...new Set(["point", ...swept, "code", "error", wanted.y])]));
    if (place.isConnected) fit();
  };
  const tableOf = (names) => {
    const there = names.filter((name) => column(name) >= 0);
    return plainTable(...withoutEmpty(there, rows.map((row) => there.map((name) => shownCell(row, name) ?? ""))), { label: "points of the sweep" });
  };
  const failed = rows.filter((row) => row[column("error")]).length;
  draw();
  return [
    element("h2", {}, part.title), element("p", {}, counted(rows.length, "row"), failed ? element("span", { class: "violated" }, `, ${failed} of them failed`) : ""),
    ...(measures.length ? [element("div", { class: "bar" },
      labelled("Show", choice(listed(measures), wanted.y, (name) => { wanted.y = name; draw(); })),
      labelled("against", choice(listed(["point", ...swept]), wanted.x, (name) => { wanted.x = name; draw(); })),
      labelled("a line for each", choice([["", "nothing"], ...listed(swept)], wanted.by, (name) => { wanted.by = name; draw(); })))] : []), place,
    element("details", {}, element("summary", {}, `All ${counted(columns.length, "column")}`), tableOf(["point", ...swept, "code", "error", ...measures])),
    runTable([part]),
  ];
}
