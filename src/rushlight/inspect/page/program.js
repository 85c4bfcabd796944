// The report as the page uses it: who computes a value, who uses it, what a search finds.

const report = JSON.parse(byId("data").textContent);

const shortOp = (op) => {
  const name = op.includes("::") ? op.slice(op.indexOf("::") + 2) : op;
  return name.replace(/\.[^.]*$/, "");
};

function sourceText(source) {
  if (!source) return "";
  const place = source.file ? `${source.file}:${source.line}` : "";
  return [place, source.text].filter(Boolean).join("  ");
}

// The kind of work an operator does, for its colour: what computes, what only moves bytes.
function family(instruction) {
  const op = shortOp(instruction.op);
  if (instruction.kind === "delegate") return "delegate";
  if (instruction.kind !== "kernel" || instruction.op.startsWith("executorch_prim")) return "control";
  if (/^(convolution|addmm|mm|bmm|linear|mixed_|_cdist|.*attention|embedding)/.test(op)) {
    return "matrix";
  }
  if (/copy|clone|cat$|stack|expand|repeat|slice|select|permute|view|pad|index|gather/.test(op)) {
    return "move";
  }
  if (/softmax|norm|sum|mean|max|min|var|any|pool|topk|cumsum|prod|choose_qparams/.test(op)) {
    return "reduce";
  }
  return "pointwise";
}

const KINDS = {
  input: "input", output: "output", state: "state", temporary: "temporary",
  matrix: "matrix, convolution", reduce: "reduction, norm", pointwise: "pointwise",
  move: "copy, reshape", delegate: "delegate", control: "sizes, control",
};

class Method {
  constructor(raw) {
    Object.assign(this, raw);
    const last = new Map();
    for (const slot of this.inputs) last.set(slot.value, -1);
    this.uses = this.values.map(() => []);
    this.instructions.forEach((instruction, i) => {
      instruction.index = i;
      instruction.source = instruction.source || null;
      instruction.family = family(instruction);
      // For each value read: the instruction that computed it, or -1.
      instruction.from = instruction.reads.map((value) => {
        this.uses[value].push(i);
        const base = this.values[value].base;
        return last.get(value) ?? (base === undefined ? -1 : last.get(base) ?? -1);
      });
      for (const value of instruction.writes) last.set(value, i);
    });
    this.last = last;
    this.consumers = this.instructions.map(() => []);
    for (const instruction of this.instructions) {
      for (const from of new Set(instruction.from)) {
        if (from >= 0 && from !== instruction.index) this.consumers[from].push(instruction.index);
      }
    }
    this.words = this.instructions.map((instruction) => this.searchText(instruction));
  }

  // The instruction that fills a value last, -1 if none does.
  writerOf(value) {
    const base = this.values[value].base;
    return this.last.get(value) ?? (base === undefined ? -1 : this.last.get(base) ?? -1);
  }

  searchText(instruction) {
    const source = instruction.source;
    const values = [...instruction.reads, ...instruction.writes].map((v) => this.values[v]);
    const parts = [
      `#${instruction.index}`, instruction.op, instruction.name || "",
      ...values.map((value) => `${value.name} ${value.text}`),
    ];
    if (source) {
      const { file = "", line = 0, text = "", module = "", function: name = "" } = source;
      parts.push(`${file}:${line} ${text} ${module} ${name}`);
    }
    return parts.join(" ").toLowerCase();
  }

  // Indices of the instructions that hold all words of the query; null if there is no query.
  search(query) {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return null;
    const found = new Set();
    this.words.forEach((text, i) => {
      if (wanted.every((word) => text.includes(word))) found.add(i);
    });
    return found;
  }
}

// What the user looks at. Parts of the page subscribe and are told what changed.
const view = {
  method: null,
  selected: -1, // instruction
  hits: null, // a set of instructions, null without a search
  listeners: [],
  on(listener) { this.listeners.push(listener); },
  change(what) {
    Object.assign(this, what);
    for (const listener of this.listeners) listener(what);
  },
  select(instruction) { this.change({ selected: instruction }); },
};
