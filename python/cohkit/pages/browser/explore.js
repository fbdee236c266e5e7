// The explorer: the steps so far, the possible next steps, and the state they lead to. The address holds the path.

// Requests JSON from the server of the explorer. Throws an error with the text of the answer if the request fails.
async function fetchJson(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Address of the state at the end of a path, which lists the numbers of the chosen steps.
const pathAddress = (path) => `#/explore/${path.join(",")}`;

// Page of the state at the end of the path in the address; filled in when the server has answered.
function explorePage(part, [text = ""]) {
  const container = element("div", { "aria-busy": "true" }, element("p", { class: "faint" }, "\u2026"));
  const path = text.split(",").filter(Boolean).map(Number);
  fetchJson(`view?path=${path.join(",")}`).then((view) => { container.replaceChildren(...explorerView(view)); fit(); })
    .catch((error) => container.replaceChildren(element("p", { class: "violated", role: "alert" }, error.message), element("p", {}, element("a", { href: pathAddress([]) }, "To the start"))))
    .finally(() => container.removeAttribute("aria-busy"));
  return [container];
}

// Elements of a view: the possible next steps, the current state, and the chart of the executed steps.
function explorerView(view) {
  const { path, next } = view;
  const go = (to) => { window.location.hash = pathAddress(to); };
  const answer = element("p", { "aria-live": "polite" });
  const undo = element("button", { type: "button", disabled: path.length === 0, click: () => go(path.slice(0, -1)), title: "Backspace" }, "Undo");
  const start = element("button", { type: "button", disabled: path.length === 0, click: () => go([]) }, "Start over");
  const search = element("button", { type: "button", click: () => find(search, answer, go) }, "Jump to the nearest violation");
  const items = next.map((choice, index) =>
    element("li", {}, element("button", { type: "button", class: `choice${choice.wrong ? " violated" : ""}`, click: () => go([...path, index]), title: choice.wrong || "" },
      choice.text, choice.wrong ? ` \u2014 ${choice.wrong}` : "")));
  const state = view.violation ? element("p", { class: "said violated", role: "alert" }, view.violation)
    : element("p", { class: "said" }, next.length ? `${countText(next.length, "possible step")}` : "No step is possible", view.quiescent ? "; the system is quiescent." : ".");
  return [
    element("h2", {}, view.system), element("div", { class: "bar" }, undo, start, search), answer, state,
    element("div", { class: "hands" },
      element("section", { "aria-label": "possible next steps" }, element("h3", {}, "Next"), items.length ? element("ol", { class: "choices" }, items) : element("p", { class: "faint" }, "No further step is possible; use Undo.")),
      element("section", { "aria-label": "current state of the system" }, element("h3", {}, "Now"), ...view.lines.map((line, index) => lineTable(line, view.lines.length > 1 ? `line ${index}` : "")),
        element("h3", {}, "In flight"), view.in_flight.length ? element("ul", { class: "mono under-way" }, view.in_flight.map((message) => element("li", {}, message))) : element("p", { class: "faint" }, "No message."),
        element("details", {}, element("summary", {}, `The path here: ${countText(path.length, "step")}`),
          element("ol", { class: "way" }, view.taken.map((words, index) => element("li", {}, element("a", { href: pathAddress(path.slice(0, index + 1)) }, words))))))),
    element("h3", {}, "Executed steps"),
    view.sequence.steps.length ? player(view.sequence, () => null) : element("p", { class: "faint" }, "Nothing yet."),
  ];
}

// States and permissions of all agents for one line, and whether memory holds its current value.
function lineTable(line, name) {
  const agents = line.agents.map((agent) => element("tr", {}, element("td", {}, agent.agent), element("td", { class: "mono" }, agent.state),
    element("td", { class: "faint" }, agent.permission === null ? "" : agent.permission === "none" ? "no permission" : `may ${agent.permission}${agent.current ? "" : ", old"}`)));
  const memory = [line.memory_current ? "current" : "old", line.operation, line.lock ? `lock ${line.lock}` : null].filter(Boolean).join("; ");
  return element("table", { class: "now" }, element("caption", { class: "faint" }, name), element("tbody", {}, agents,
    element("tr", {}, element("td", {}, "memory"), element("td", { class: "mono" }, memory), element("td", {}))));
}

// Asks the server for the shortest path to a violation, and follows it with `go` or reports the result in `answer`.
function find(button, answer, go) {
  button.disabled = true;
  answer.textContent = "Searching\u2026";
  fetchJson("wrong").then((result) => {
    if (result.path !== null) return go(result.path);
    answer.textContent = result.all ? `No violation in ${countText(result.explored_states, "state")}.`
      : `No violation in the nearest ${countText(result.explored_states, "state")}; \`cohkit check\` explores all.`;
    return null;
  }).catch((error) => { answer.textContent = error.message; }).finally(() => { button.disabled = false; });
}

// Backspace takes back the last step, except in input fields.
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key !== "Backspace" || typing || !window.location.hash.startsWith("#/explore/")) return;
  const path = window.location.hash.slice("#/explore/".length).split(",").filter(Boolean);
  if (path.length) window.location.hash = pathAddress(path.slice(0, -1));
});
