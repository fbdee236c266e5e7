// Numbers: published ones beside ours, runs in time, litmus tests, and sweeps.

function withUnit(value, unit) {
  return value === null ? "" : unit === "" ? number(value) : `${Number(value.toPrecision(4))} ${unit}`;
}

function percent(value) {
  return value === null ? "" : `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)} %`;
}

function judged(error, ratio, holds) {
  if (error !== null) return percent(error);
  return ratio === null ? "" : `${Number(ratio.toPrecision(4))}x${holds === null ? "" : holds ? ", holds" : ", fails"}`;
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

function experimentPage(part) {
  const blind = part.rows.some((row) => row.blind !== null);
  const rows = part.rows.map((row) => [
    row.name, row.published === null ? row.says || "kept" : withUnit(row.published, row.unit), withUnit(row.ours, row.unit), judged(row.error, row.ratio, row.holds),
    ...(blind ? [row.blind === null ? "" : withUnit(row.blind, row.unit), judged(row.blind_error, row.blind_ratio, row.blind_holds)] : []), row.use]);
  const plots = part.plots.map((plot) => {
    const words = (point) => ({ ...point, words: rowWords(part.rows[point.row]) });
    return plot.kind === "bars" ? bars(plot.bars.map(words), plot)
      : curves(plot.series.map((one) => ({ ...one, points: one.points.map(words) })), { ...plot, levels: plot.levels.map(words) });
  });
  return [
    element("h2", {}, part.title), element("p", {}, part.headline),
    ...part.notes.map((note) => element("p", { class: "faint" }, note)),
    element("div", { class: "figures" }, plots),
    plainTable(["", "published", "ours", "error", ...(blind ? ["blind", "blind error"] : []), "how"], rows, { label: "published numbers beside ours" }),
  ];
}

function experimentsPage(part) {
  const listed = part.experiments.map((one) => {
    const errors = one.rows.filter((row) => row.error !== null).map((row) => Math.abs(row.error));
    const worst = errors.length ? percent(Math.max(...errors)).replace("+", "") : "";
    return [element("a", { href: `#/${one.id}` }, one.name), one.headline, one.rows.length, errors.length, worst];
  });
  return [element("h2", {}, "Published numbers beside ours"),
    plainTable(["experiment", "what it shows", "numbers", "of them with a published one", "largest error"], listed)];
}

function flatPairs(value, before = "") {
  return Object.entries(value).flatMap(([key, one]) =>
    one !== null && typeof one === "object" && !Array.isArray(one) ? flatPairs(one, `${before}${key}.`) : [[before + key, Array.isArray(one) ? one.join("; ") : one]]);
}

function runPage(part) {
  const run = part.value, failure = run.failure;
  const counts = Object.entries(run.messages || {}).filter(([, count]) => count > 0);
  const made = [
    element("h2", {}, part.title),
    element("p", {}, `${run.protocol} on ${run.platform}, seed ${run.seed}`, run.settings.length ? `; ${run.settings.join(", ")}` : ""),
  ];
  if (failure) made.push(element("p", { class: "violated" }, `${failure.kind}: ${failure.message}`), ...sentences("Who waits for whom", failure.waits), player(failure.sequence, () => null));
  for (const [of, told] of [["", run.explanation], [" of accesses to the host's memory", run.host?.explanation]]) {
    if (!told) continue;
    const parts = told.parts.filter((one) => one.mean_ns > 0);
    made.push(element("h3", {}, `Where the time${of} goes`), element("p", {}, `Limited by ${told.limit.name}: ${told.limit.reason}.`),
      bars(parts.map((one) => ({ name: one.name, y: one.mean_ns, published: null, words: `${one.name}: ${number(one.mean_ns)} ns of an access in the mean` })), { y: "mean access (ns)" }));
  }
  if (counts.length) made.push(element("h3", {}, "Messages"), bars(counts.map(([name, count]) => ({ name, y: count, published: null, words: `${name}: ${number(count)}` })), { y: "messages sent" }));
  const measured = run.application ? ["numbers", "counts", "rates_per_s", "times_ns", "statistics"] : ["workload", "statistics"];
  for (const name of measured) {
    if (run[name]) made.push(element("h3", {}, name.replaceAll("_", " ")), plainTable(["name", "value"], flatPairs(run[name]).filter(([key]) => !key.endsWith("distribution"))));
  }
  if (run.host) made.push(element("h3", {}, "the host's memory"), plainTable(["name", "value"], flatPairs(run.host.statistics)));
  return made;
}

function litmusPage(part, [number = ""]) {
  const test = part.entries[Number(number)];
  if (number === "" || !test) {
    return [element("h2", {}, part.title), plainTable(["test", "protocol", "cores", "model", "outcome"],
      part.entries.map((one, at) => [element("a", { href: `#/${part.id}/${at}` }, one.test), one.protocol, one.cores.replaceAll("_", " "), one.model, tag(one.outcome)]))];
  }
  const names = [...new Set(test.ends.flatMap((end) => Object.keys(end.values)))];
  return [
    element("h2", {}, test.test, " ", tag(test.outcome)), element("p", {}, element("a", { href: `#/${part.id}` }, part.title)),
    ...(test.sequence ? [player(test.sequence, () => null)] : []),
    plainTable([...names, "fulfils the condition", "allowed"], test.ends.map((end) => [...names.map((name) => end.values[name] ?? null), end.fulfils, end.allowed])),
  ];
}

// A sweep: any number of its table against any axis, one line for each value of another.
function sweepPage(part) {
  const { columns, rows, axes: swept } = part;
  const column = (name) => columns.indexOf(name);
  const numeric = columns.filter((name) => rows.some((row) => typeof row[column(name)] === "number") && rows.every((row) => typeof row[column(name)] !== "string"));
  const heads = ["point", "repetition", "seed", "code", ...swept];
  // Statistics are what is looked for first.
  const later = (name) => (name.startsWith("statistics.") ? 0 : 1);
  const measures = numeric.filter((name) => !heads.includes(name)).toSorted((a, b) => later(a) - later(b));
  const wanted = { y: measures.find((name) => name.includes("latency_mean")) || measures[0] || "", x: swept[0] || "point", by: swept[1] || "" };
  const figure = element("div", {});
  const listed = (names) => names.map((name) => [name, name]);
  // An axis may have a unit in a column of its own.
  const cell = (row, name) => {
    const unit = row[column(`${name}.unit`)];
    return unit ? `${row[column(name)]}${unit}` : row[column(name)];
  };
  const value = (cell) => (typeof cell === "number" ? cell : parseFloat(cell));
  const draw = () => {
    const groups = new Map();
    for (const row of rows) {
      const at = value(row[column(wanted.x)]), got = row[column(wanted.y)];
      if (typeof got !== "number" || Number.isNaN(at)) continue;
      const name = wanted.by ? `${wanted.by} ${cell(row, wanted.by)}` : wanted.y;
      const words = `${wanted.x} ${cell(row, wanted.x)}\n${wanted.by ? `${name}\n` : ""}${wanted.y}: ${number(got)}`;
      groups.set(name, [...(groups.get(name) || []), { x: at, y: got, published: null, words }]);
    }
    const series = [...groups].map(([name, points]) => ({ name, points: points.sort((a, b) => a.x - b.x) }));
    figure.replaceChildren(series.length ? curves(series, { x: wanted.x, y: wanted.y }) : element("p", { class: "faint" }, "Nothing of this can be drawn as numbers."));
  };
  const failed = rows.filter((row) => row[column("error")]).length;
  draw();
  const few = ["point", ...swept, "code", "error", ...measures].filter((name, at, all) => column(name) >= 0 && all.indexOf(name) === at);
  return [
    element("h2", {}, part.title), element("p", {}, `${rows.length} rows`, failed ? element("span", { class: "violated" }, `, ${failed} of them failed`) : ""),
    ...(measures.length ? [element("div", { class: "bar" },
      labelled("Show", choice(listed(measures), wanted.y, (name) => { wanted.y = name; draw(); })),
      labelled("against", choice(listed(["point", ...swept]), wanted.x, (name) => { wanted.x = name; draw(); })),
      labelled("a line for each", choice([["", "nothing"], ...listed(swept)], wanted.by, (name) => { wanted.by = name; draw(); }))), figure] : []),
    plainTable(few, rows.map((row) => few.map((name) => cell(row, name)))),
  ];
}
