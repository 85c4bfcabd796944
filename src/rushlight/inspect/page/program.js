// The report as the page uses it: who computes a value, who uses it, where it comes from, how long
// it took, what a search finds.

const report = JSON.parse(byId("data").textContent);

// "add" for "aten::add.out" and for "aten.add.Tensor".
const shortOp = (op) => {
  const name = op.includes("::") ? op.slice(op.indexOf("::") + 2) : op;
  return name.replace(/\.[^.]*$/, "").replace(/^[a-z_]+\.(?=\w)/, "");
};

function sourceText(source) {
  if (!source) return "";
  const place = source.file ? `${source.file}:${source.line}` : "";
  return [place, source.text].filter(Boolean).join("  ");
}

// The kind of work an operator does, for its colour: what computes, what only moves bytes.
function familyOf(name) {
  const op = name.toLowerCase();
  if (/^(quantized|dynamic|batch|depthwise)?(conv|addmm|mm$|bmm|linear|product|fully|.*matrix|mixed_|_?cdist|.*attention|embedding|recurrent|lstm|gru)/.test(op)) {
    return "matrix";
  }
  if (/copy|clone|cat|stack|expand|repeat|slice|select|permute|transpose|view|reshape|pad|index|gather/.test(op)) {
    return "move";
  }
  if (/softmax|norm|sum|mean|max|min|var|any|pool|topk|cumsum|prod|reduce|choose_qparams/.test(op)) {
    return "reduce";
  }
  return "pointwise";
}

function family(instruction) {
  if (instruction.kind === "delegate") return "delegate";
  if (instruction.kind !== "kernel" || instruction.op.startsWith("executorch_prim")) return "control";
  return familyOf(shortOp(instruction.op));
}

const KINDS = {
  input: "input", output: "output", state: "state", temporary: "temporary",
  matrix: "matrix, convolution", reduce: "reduction, norm", pointwise: "pointwise",
  move: "copy, reshape", delegate: "delegate", control: "sizes, control",
};

// A node of the graph is an instruction, whose id is its index, or an operator inside a delegate:
// "3/12" is the one that the delegate of instruction 3 calls 12.
const instructionOf = (id) => (typeof id === "string" ? parseInt(id, 10) : id);
const idText = (id) => `#${id}`;
const modulesOf = (sources) => [...new Set(sources.map(({ module }) => module).filter(Boolean))];
const operatorsOf = (sources) =>
  [...new Set(sources.map(({ operator }) => shortOp(operator || "")).filter(Boolean))];
const depthOf = (module) => module.split(".").length;

class Method {
  constructor(raw) {
    Object.assign(this, raw);
    const last = new Map();
    for (const slot of this.inputs) last.set(slot.value, -1);
    this.instructions.forEach((instruction, i) => {
      instruction.index = i;
      instruction.source = instruction.source || null;
      instruction.family = family(instruction);
      // For each value read: the instruction that computed it, or -1.
      instruction.from = instruction.reads.map((value) => {
        const base = this.values[value].base;
        return last.get(value) ?? (base === undefined ? -1 : last.get(base) ?? -1);
      });
      for (const value of instruction.writes) last.set(value, i);
    });
    this.last = last;
    this.readTimes();
    this.nodes = new Map();
    this.names = new Map(); // of nodes of the model's graph, to ids of nodes
    for (const instruction of this.instructions) this.addNodes(instruction);
    for (const node of this.nodes.values()) this.connect(node);
    this.consumers = new Map([...this.nodes.keys()].map((id) => [id, []]));
    for (const node of this.nodes.values()) {
      for (const from of node.from) if (from !== node.id) this.consumers.get(from).push(node.id);
    }
  }

  readTimes() {
    this.times = (report.times || []).find((times) => times.method === this.name) || null;
    this.timings = new Map();
    for (const timing of this.times ? this.times.timings : []) {
      const { instruction, place } = timing;
      this.timings.set(place ? `${instruction}/${place}` : instruction, timing);
    }
    this.ms = [...this.timings.values()].reduce((sum, timing) => sum + timing.ms, 0);
  }

  addNodes(instruction) {
    const { index, source, name } = instruction;
    const out = instruction.writes.length ? this.values[instruction.writes[0]].text : "";
    const delegate = instruction.kind === "delegate" ? this.delegates[instruction.delegate] : null;
    const parts = delegate ? delegate.nodes || [] : [];
    this.add({
      id: index, instruction, part: null, op: instruction.op, title: shortOp(instruction.op), out,
      family: instruction.family, sources: source ? [source] : [], names: name ? [name] : [],
      flops: instruction.flops, bytes: instruction.bytes, cost: instruction.cost || 0,
      ids: parts.map((part) => `${index}/${part.place}`),
    });
    for (const part of parts) {
      const sources = part.sources || [];
      const ops = operatorsOf(sources);
      this.add({
        id: `${index}/${part.place}`, instruction, part, op: part.name, out: (part.results || [])[0] || "",
        title: ops.join(", ") || part.name,
        family: familyOf(ops[0] || part.name), sources, names: part.nodes || [], flops: part.flops,
        bytes: part.bytes, cost: part.cost || 0, ids: [],
      });
    }
    // Operators of a delegate are drawn apart if it is known how they are connected.
    const whole = this.nodes.get(index);
    whole.opens = parts.some((part) => (part.inputs || []).length);
    whole.inner = parts;
    if (whole.ids.length) whole.ms = this.sum(whole.ids, "ms") ?? whole.ms;
  }

  add(node) {
    const timing = this.timings.get(node.id);
    node.ms = timing ? timing.ms : undefined;
    node.calls = timing ? timing.calls : undefined;
    node.module = modulesOf(node.sources).sort((a, b) => depthOf(b) - depthOf(a))[0] || "";
    node.words = this.searchText(node);
    this.nodes.set(node.id, node);
    for (const name of node.names) {
      if (!this.names.has(name)) this.names.set(name, []);
      this.names.get(name).push(node.id);
    }
  }

  sum(ids, what) {
    const known = ids.map((id) => this.nodes.get(id)[what]).filter((n) => n !== undefined);
    return known.length ? known.reduce((sum, n) => sum + n, 0) : undefined;
  }

  // The nodes that a node's values come from, and the values that come from none.
  connect(node) {
    const { instruction, part } = node;
    const from = new Set(), given = new Set();
    const take = (value) => {
      const by = instruction.from[instruction.reads.indexOf(value)] ?? -1;
      if (by < 0) given.add(value);
      else for (const id of this.writersIn(by, value)) from.add(id);
    };
    if (!part) instruction.reads.forEach(take);
    else {
      const { inner } = this.nodes.get(instruction.index);
      for (const input of part.inputs || []) {
        if (input >= 0 && inner[input]) from.add(`${instruction.index}/${inner[input].place}`);
        else if (input < 0 && instruction.args[-1 - input] !== undefined) {
          take(instruction.args[-1 - input]);
        }
      }
    }
    node.from = [...from].filter((id) => id !== node.id);
    node.given = [...given];
  }

  // The nodes of an instruction that write a value: those inside its delegate, if they are known.
  writersIn(index, value) {
    const { args, writes } = this.instructions[index];
    const { opens, inner } = this.nodes.get(index);
    if (!opens) return [index];
    const own = writes.includes(value) ? value : this.values[value].base;
    const parts = inner.filter((part) => (part.outputs || []).some((arg) => args[arg] === own));
    return parts.length ? parts.map((part) => `${index}/${part.place}`) : [index];
  }

  // The instruction that fills a value last, -1 if none does.
  writerOf(value) {
    const base = this.values[value].base;
    return this.last.get(value) ?? (base === undefined ? -1 : this.last.get(base) ?? -1);
  }

  searchText({ id, instruction, part, op, names, out, sources }) {
    const values = part ? [] : [...instruction.reads, ...instruction.writes].map((v) => this.values[v]);
    const parts = [
      idText(id), op, out, ...names, ...values.map((value) => `${value.name} ${value.text}`),
    ];
    for (const { file = "", line = 0, text = "", module = "", function: name = "", operator = "" } of
      sources) parts.push(`${file}:${line} ${text} ${module} ${name} ${operator}`);
    return parts.join(" ").toLowerCase();
  }

  // The ids of nodes that hold all words of the query, and of the delegates that they are in; null
  // if there is no query.
  search(query) {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return null;
    const found = new Set();
    for (const { id, words } of this.nodes.values()) {
      if (wanted.every((word) => words.includes(word))) found.add(id).add(instructionOf(id));
    }
    return found;
  }
}

// What the user looks at. Parts of the page subscribe and are told what changed.
const view = {
  method: null,
  selected: -1, // the id of a node
  hits: null, // a set of ids, null without a search
  listeners: [],
  on(listener) { this.listeners.push(listener); },
  change(what) {
    Object.assign(this, what);
    for (const listener of this.listeners) listener(what);
  },
  select(id) { this.change({ selected: id }); },
  get at() { return instructionOf(this.selected); },
};

const methods = report.methods.map((raw) => () => raw.made || (raw.made = new Method(raw)));
const shows = {}; // `method(index)` and `memory(value)`, set where the page is put together

// Shows a node of any method in the graph, named by its id, or by its name in the model's graph.
function goTo(name, node) {
  const at = report.methods.findIndex((method) => method.name === name);
  if (at < 0) return;
  if (view.method !== methods[at]()) shows.method(at);
  const known = view.method.nodes.has(node) ? node : (view.method.names.get(node) || [])[0];
  if (known === undefined) return;
  view.select(known);
  byId("graph").scrollIntoView({ block: "start" });
}

// The nodes at a finding's place, as [method, node]: of its operator, or else on its line.
const nodesOfFindings = new Map();
function nodesAt(finding) {
  if (nodesOfFindings.has(finding)) return nodesOfFindings.get(finding);
  const { source } = finding;
  const onLine = ({ sources }) =>
    sources.some(({ file, line }) => file === source.file && line === source.line);
  const ofOperator = ({ sources }) => sources.some(({ operator, module, handle }) =>
    operator === source.operator && module === source.module && handle === source.handle);
  const all = source && source.file ? methods.flatMap((made) =>
    [...made().nodes.values()].filter(onLine).map((node) => [made(), node])) : [];
  const exact = all.filter(([, node]) => ofOperator(node));
  nodesOfFindings.set(finding, exact.length ? exact : all);
  return nodesOfFindings.get(finding);
}

let blockedNodes = null;
function isBlocked(node) {
  blockedNodes = blockedNodes || new Set((report.findings || []).filter(({ blocks }) => blocks)
    .flatMap(nodesAt).map(([, one]) => one));
  return blockedNodes.has(node);
}

const goButton = (method, node, text) => el("button", {
  type: "button", class: "plain go", title: "Show it in the graph", onclick: () => goTo(method, node),
}, text);

// --- numbers of time and work -------------------------------------------------------------------

function duration(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 1) return `${ms.toFixed(ms < 100 ? 2 : 0)} ms`;
  return `${(ms * 1000).toFixed(ms >= 0.1 ? 0 : 1)} µs`;
}

const percent = (part, whole) => `${((part / (whole || 1)) * 100).toFixed(1)}%`;
