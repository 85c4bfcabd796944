// Puts the page together: summary, search, keys.

function tile(title, value, note, className) {
  return el("div", { class: `tile ${className || ""}` }, el("span", { class: "what" }, title),
    el("span", { class: "value" }, value), el("span", { class: "note" }, note || ""));
}

function kindBar() {
  const kinds = Object.entries(report.by_kind).sort((a, b) => b[1] - a[1]);
  const share = (bytes) => (bytes / Math.max(report.bytes, 1)) * 100;
  const name = (kind) => `b-${kind.replace(/ /g, "-")}`;
  return el("div", { class: "kinds" },
    el("div", { class: "stack" }, kinds.map(([kind, bytes]) => el("span", {
      class: name(kind), style: `flex-grow:${Math.max(share(bytes), 0.3)}`,
      title: `${kind}: ${count(bytes)} bytes` }))),
    el("ul", {}, kinds.map(([kind, bytes]) => el("li", { class: name(kind) }, kind,
      el("b", {}, size(bytes)), el("span", { class: "hint" }, `${share(bytes).toFixed(1)}%`)))));
}

function verdict() {
  const runs = !report.executorch.length;
  const needs = report.executorch_needs.join(" and ");
  return tile("ExecuTorch 1.4.1", runs ? "runs it" : "does not run it",
    runs ? needs && `with ${needs}` : plural(report.executorch.length, "reason"),
    runs ? "good" : "warn");
}

function remarks() {
  const cut = report.debug_left_out || [];
  return [
    ...(cut.length ? [`The map to Python lines is cut to stay small: the file has no ${
      cut.join(", ")}; debug="full" at export stores all.`] : []),
    ...(report.quantization || []),
    ...(report.needs || []).map((need) => `To run, a runtime needs ${need}`),
  ].map((text) => el("p", { class: "hint" }, text));
}

// Of a program; of a model that is none yet, how much is in the way.
function programTiles(method) {
  const planned = method.arenas.reduce((sum, arena) => sum + arena.bytes, 0);
  const bound = method.arenas.reduce((sum, arena) => sum + arena.lower_bound, 0);
  const kernels = method.instructions.filter(({ kind }) => kind === "kernel").length;
  const delegated = method.instructions.filter(({ kind }) => kind === "delegate").length;
  const backends = new Set(method.delegates.map((delegate) => delegate.backend)).size;
  const places = [kernels ? plural(kernels, "kernel") : "",
    delegated ? `${plural(delegated, "call")} to ${plural(backends, "backend")}` : ""];
  const over = above(planned, bound);
  return [
    tile("File", size(report.bytes), `${count(report.bytes)} bytes`),
    tile("Planned memory", size(planned), bound ? over ? `lower bound ${size(bound)}, ${over}` :
      "at the lower bound" : ""),
    tile("Constants", size(method.constant_bytes), method.delegate_bytes ?
      `and ${size(method.delegate_bytes)} in delegates` : ""),
    tile("Instructions", count(method.instructions.length), places.filter(Boolean).join(", ")),
    verdict()];
}

function drawSummary() {
  const { method } = view;
  byId("summary").replaceChildren(...el("div", {},
    el("h1", {}, report.name || "program"),
    el("pre", { class: "signature" }, method.signature),
    method.weak ? el("p", { class: "hint" },
      "The file has no contract of its inputs; this is made from its tensors.") : null,
    ...(method.relations || []).map((text) => el("p", { class: "hint" }, `requires ${text}`)),
    el("div", { class: "tiles" }, report.bytes ? programTiles(method) : findingTiles()),
    report.bytes ? kindBar() : null,
    ...remarks(),
    ...(report.executorch.length ? [el("details", { class: "reasons" },
      el("summary", {}, "Why ExecuTorch 1.4.1 does not run this file"),
      el("ul", {}, report.executorch.map((reason) => el("li", {}, reason))))] : [])).childNodes);
}

function showMethod(index) {
  for (const [i, button] of [...byId("methods").children].entries()) {
    button.setAttribute("aria-pressed", String(i === index));
  }
  view.change({ method: methods[index](), selected: -1, hits: null });
  drawSummary();
  const query = byId("search").value;
  if (query) view.change({ hits: view.method.search(query) });
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function start() {
  drawFindings(byId("findings"));
  byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  if (!report.methods.length) {
    byId("summary").append(...el("div", {}, el("h1", {}, report.name || "program"),
      report.bytes ? el("p", { class: "empty" }, "This program has no methods.") :
        el("div", { class: "tiles" }, findingTiles()),
      report.bytes ? kindBar() : null, ...remarks()).childNodes);
    return;
  }
  const memory = report.bytes ? new MemoryChart(byId("memory")) : null;
  const graph = new GraphList(byId("graph"));
  new Drawing(graph.stage);
  new Flame(byId("flame"));
  Object.assign(shows, { method: showMethod, memory: (value) => memory && memory.reveal(value) });
  byId("methods").append(...(report.methods.length > 1 ? report.methods.map((method, i) =>
    el("button", { type: "button", onclick: () => showMethod(i) }, method.name)) : []));
  byId("tables").append(...[failureTable(), formTable(), timeTable(), gapTable(), coverageTable(),
    operatorTable(), constantTable(), delegateTable(), namedDataTable()].filter(Boolean));
  showMethod(0);

  const box = byId("search");
  box.addEventListener("input", () => view.change({ hits: view.method.search(box.value) }));
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      graph.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      if (view.hits && !view.hits.has(view.selected)) graph.move(1);
      byId("graph").scrollIntoView({ behavior: "smooth", block: "start" });
    } else if (event.key === "Escape") {
      box.value = "";
      view.change({ hits: null });
      box.blur();
    }
  });
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });
}

start();
