// Tables that sort when their heads are clicked.

const SHOWN_FIRST = 200; // rows before "show all"

// All tables of the page, which tell what they say about a node: `rowsAbout(method, node)`, and show
// a row: `reveal(row)`.
const tables = [];

// columns: [{title, text(row), value(row)?, number?, render(row)?}]; isAbout(row, method, node) tells
// whether a row is about a node of the graph.
function table(title, note, columns, rows, isAbout) {
  const body = el("tbody");
  const shown = new Map(); // rows, to their elements
  let order = null, rising = true, all = rows.length <= SHOWN_FIRST;
  const valueOf = (column, row) => (column.value || column.text)(row);
  const draw = () => {
    const sorted = [...rows];
    if (order) {
      sorted.sort((a, b) => {
        const x = valueOf(order, a), y = valueOf(order, b);
        return (x < y ? -1 : x > y ? 1 : 0) * (rising ? 1 : -1);
      });
    }
    shown.clear();
    for (const row of all ? sorted : sorted.slice(0, SHOWN_FIRST)) {
      shown.set(row, el("tr", {}, columns.map((column) => el("td", { class: column.class },
        column.render ? column.render(row) : column.text(row)))));
    }
    body.replaceChildren(...shown.values());
  };
  const heads = columns.map((column) => el("th", {
    class: column.class, "aria-sort": "none" }, el("button", { type: "button", onclick: (event) => {
    rising = order === column ? !rising : !(column.class || "").includes("number");
    order = column;
    for (const head of heads) head.setAttribute("aria-sort", "none");
    event.currentTarget.parentNode.setAttribute("aria-sort", rising ? "ascending" : "descending");
    draw();
  } }, column.title)));
  draw();
  const more = all ? null : el("button", { type: "button", onclick: () => showAll() },
    `show all ${count(rows.length)}`);
  const showAll = () => {
    all = true;
    if (more) more.remove();
    draw();
  };
  tables.push({
    title,
    rowsAbout: (method, node) =>
      (isAbout ? rows.filter((row) => isAbout(row, method, node)) : []),
    reveal(row) {
      if (!shown.has(row)) showAll();
      for (const other of document.querySelectorAll("tr.on")) other.classList.remove("on");
      shown.get(row).classList.add("on");
      shown.get(row).scrollIntoView({ block: "center" });
    },
  });
  return el("section", {}, el("h2", {}, `${title} `, el("span", { class: "hint" }, note)),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads)), body)), more);
}

const bar = (part, whole) => el("span", { class: "meter", title: `${((part / (whole || 1)) * 100)
  .toFixed(1)}%` }, el("span", { style: `width:${((part / (whole || 1)) * 100).toFixed(2)}%` }));

function search(text) {
  const box = byId("search");
  box.value = text;
  box.dispatchEvent(new Event("input"));
  byId("graph").scrollIntoView({ behavior: "smooth", block: "start" });
}

function operatorTable() {
  if (!report.operators.length) return null;
  const most = Math.max(...report.operators.map((operator) => operator.calls), 1);
  return table("Operators", plural(report.operators.length, "operator"), [
    { title: "operator", class: "mono", text: (row) => row.name, render: (row) => el("button", {
      type: "button", class: "plain", title: "Search the graph for it",
      onclick: () => search(row.name) }, row.name) },
    { title: "calls", class: "number", text: (row) => count(row.calls), value: (row) => row.calls },
    { title: "", class: "wide", text: () => "", value: (row) => row.calls,
      render: (row) => bar(row.calls, most) },
    { title: "ExecuTorch 1.4.1", text: (row) => (row.executorch ? "has it" : "lacks it"),
      render: (row) => el("span", { class: row.executorch ? "hint" : "bad" },
        row.executorch ? "has it" : "lacks it") },
  ], report.operators, (row, method, { part, op }) => !part && op === row.name);
}

function constantTable() {
  if (!report.constants.length) return null;
  const total = report.constants.reduce((sum, constant) => sum + constant.bytes, 0);
  const note = `${plural(report.constants.length, "constant")}, ${size(total)}`;
  return table("Constants", note, [
    { title: "name", class: "mono", text: (row) => row.name },
    { title: "type", class: "mono", text: (row) => `${row.dtype}[${row.shape.join(", ")}]` },
    { title: "bytes", class: "number", text: (row) => count(row.bytes), value: (row) => row.bytes },
    { title: "", class: "wide", text: () => "", value: (row) => row.bytes,
      render: (row) => bar(row.bytes, total) },
    { title: "kind", text: (row) => row.kind },
    { title: "used by", text: (row) => plural(row.uses.length, "tensor"),
      value: (row) => row.uses.length, render: (row) => el("span", {
        title: row.uses.slice(0, 12).join("\n") }, plural(row.uses.length, "tensor")) },
    { title: "first read by", class: "mono", text: () => "", render: (row) => firstReader(row) },
  ], report.constants, (row, method, { part, instruction }) => !part &&
    instruction.args.some((value) => isOf(method.values[value], row)));
}

// Whether a value has the data of a constant of the report.
const isOf = (value, constant) => (constant.index ? value.constant === constant.index :
  value.role === "external" && value.name === constant.name);

function firstReader(constant) {
  for (const { name, instructions, values } of report.methods) {
    const at = instructions.findIndex(({ args }) => args.some((value) => isOf(values[value], constant)));
    if (at >= 0) return goButton(name, at, `${name} #${at}`);
  }
  return "";
}

function delegateTable() {
  const rows = report.methods.flatMap((method) =>
    method.delegates.map((delegate, index) => ({ ...delegate, method: method.name, index })));
  if (!rows.length) return null;
  return table("Delegates", plural(rows.length, "delegate"), [
    { title: "method", text: (row) => row.method },
    { title: "backend", class: "mono", text: (row) => row.backend },
    { title: "payload", class: "number", text: (row) => count(row.bytes), value: (row) => row.bytes },
    { title: "shared", text: (row) => (row.shared ? "yes" : "") },
    { title: "called at", class: "mono", text: (row) => row.calls.map((at) => `#${at}`).join(" "),
      value: (row) => row.calls[0] ?? -1,
      render: (row) => row.calls.map((at) => [goButton(row.method, at, `#${at}`), " "]).flat() },
    { title: "compile specs", class: "mono",
      text: (row) => row.specs.map(([key, bytes]) => `${key} (${bytes} bytes)`).join(", ") },
  ], rows, (row, method, { instruction }) => row.method === method.name &&
    row.calls.includes(instruction.index));
}

// Where each operator call runs, what it is estimated to cost, and why it stayed.
function coverageTable() {
  const rows = report.methods.flatMap((method) => {
    const covered = method.coverage || [];
    const total = covered.reduce((sum, call) => sum + call.cost, 0) || 1;
    return covered.map((call) => ({ ...call, method: method.name, share: call.cost / total,
      why: Object.entries(call.reasons || {}).map(([who, why]) => `${who}: ${why}`).join("; ") }));
  });
  if (!rows.length) return null;
  const taken = rows.filter((row) => row.backend).length;
  return table("Where it runs", `${taken} of ${plural(rows.length, "call")} delegated`, [
    { title: "method", text: (row) => row.method },
    { title: "operator", class: "mono", text: (row) => row.op },
    { title: "node", class: "mono", text: (row) => row.name,
      render: (row) => goButton(row.method, row.name, row.name) },
    { title: "backend", text: (row) => row.backend || "portable kernels",
      render: (row) => el("span", { class: row.backend ? "" : "bad" },
        row.backend ? `${row.backend} #${row.part}` : "portable kernels") },
    { title: "share", class: "number", text: (row) => `${(row.share * 100).toFixed(1)}%`,
      value: (row) => row.share },
    { title: "", class: "wide", text: () => "", value: (row) => row.share,
      render: (row) => bar(row.share, 1) },
    { title: "why it stayed, or a note", text: (row) => row.why },
    { title: "module", class: "mono", text: (row) => (row.source || {}).module || "" },
    { title: "Python", class: "mono", text: (row) => sourceText(row.source) },
  ], rows.sort((a, b) => b.share - a.share),
  (row, method, node) => row.method === method.name && node.names.includes(row.name));
}

// What failed on a device.
function failureTable() {
  const rows = (report.failures || []).map((row) => ({ ...row,
    id: row.place ? `${row.instruction}/${row.place}` : row.instruction }));
  if (!rows.length) return null;
  return table("What failed", plural(rows.length, "report"), [
    { title: "method", text: (row) => row.method },
    { title: "node", class: "mono", text: (row) => (row.instruction < 0 ? "" : idText(row.id)),
      render: (row) => (row.instruction < 0 ? "" : goButton(row.method, row.id, idText(row.id))) },
    { title: "what", text: (row) => row.what },
    { title: "error", text: (row) => row.message },
    { title: "usual cause", text: (row) => row.why },
  ], rows, (row, method, { id, ids }) => row.method === method.name &&
    (row.id === id || ids.includes(row.id)));
}

// How far values of a trace are from those of a record.
function gapTable() {
  const rows = report.gaps || [];
  if (!rows.length) return null;
  return table("Numeric gap", plural(rows.length, "value"), [
    { title: "method", text: (row) => row.method },
    { title: "node", class: "mono", text: (row) => row.node,
      render: (row) => goButton(row.method, row.node, row.node) },
    { title: rows[0].metric, class: "number", value: (row) => Number(row.gap),
      text: (row) => (typeof row.gap === "string" ? row.gap : row.gap.toPrecision(4)) },
  ], rows, (row, method, node) => row.method === method.name && node.names.includes(row.node));
}

// The operators of a trace, the slowest first.
function timeTable() {
  const rows = (report.times || []).flatMap(({ method: name, timings }) => {
    const at = report.methods.findIndex((method) => method.name === name);
    if (at < 0) return [];
    const method = methods[at]();
    return timings.map((timing) => {
      const { instruction, place } = timing;
      const id = place ? `${instruction}/${place}` : instruction;
      return { ...timing, id, method: name, share: timing.ms / (method.ms || 1),
        node: method.nodes.get(id) || method.nodes.get(instruction) };
    });
  });
  if (!rows.length) return null;
  return table("Time", plural(rows.length, "operator"), [
    { title: "method", text: (row) => row.method },
    { title: "node", class: "mono", text: (row) => idText(row.id), value: (row) => instructionOf(row.id),
      render: (row) => goButton(row.method, row.id, idText(row.id)) },
    { title: "operator", class: "mono", text: (row) => row.node.title },
    { title: "time", class: "number", text: (row) => duration(row.ms), value: (row) => row.ms },
    { title: "share", class: "number", text: (row) => percent(row.share, 1), value: (row) => row.share },
    { title: "", class: "wide", text: () => "", value: (row) => row.share,
      render: (row) => bar(row.share, 1) },
    { title: "calls", class: "number", text: (row) => String(+row.calls.toFixed(2)),
      value: (row) => row.calls },
    { title: "module", class: "mono", text: (row) => row.node.module },
    { title: "Python", class: "mono", text: (row) => sourceText(row.node.sources[0]) },
  ], rows, (row, method, { id, ids }) => row.method === method.name &&
    (row.id === id || ids.includes(row.id)));
}

function formTable() {
  if (!(report.forms || []).length) return null;
  return table("Forms", "in order of preference", [
    { title: "form", class: "mono", text: (row) => row.name },
    { title: "backends", class: "mono", text: (row) => row.backends.join(", ") || "portable kernels" },
    { title: "methods", class: "mono", text: (row) => row.methods.join(", ") },
    { title: "constants used", class: "number", text: (row) => count(row.constant_bytes),
      value: (row) => row.constant_bytes },
    { title: "payloads", class: "number", text: (row) => count(row.payload_bytes),
      value: (row) => row.payload_bytes },
  ], report.forms);
}

function namedDataTable() {
  if (!report.named_data.length) return null;
  const total = report.named_data.reduce((sum, entry) => sum + entry.bytes, 0);
  return table("Named data", plural(report.named_data.length, "key"), [
    { title: "key", class: "mono", text: (row) => row.key },
    { title: "bytes", class: "number", text: (row) => count(row.bytes), value: (row) => row.bytes },
    { title: "", class: "wide", text: () => "", value: (row) => row.bytes,
      render: (row) => bar(row.bytes, total) },
    { title: "shared", text: (row) => (row.shared ? "yes" : "") },
  ], report.named_data);
}
