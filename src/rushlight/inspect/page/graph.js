// The graph as a list to search, and all about the chosen node beside it.

const MAX_LINKS = 24; // consumers and producers that are listed

class GraphList {
  constructor(root) {
    this.list = el("ol", { class: "instructions", tabindex: 0, "aria-label": "Instructions" });
    this.detail = el("div", { class: "instruction-detail", "aria-live": "polite" });
    this.found = el("span", { class: "hint" });
    this.stage = el("div", { class: "drawing" });
    root.append(el("h2", {}, "Graph ", this.found),
      el("div", { class: "columns" }, this.list, this.detail), this.stage);
    this.list.addEventListener("keydown", (event) => this.key(event));
    view.on((what) => this.update(what));
  }

  update(what) {
    if ("method" in what) this.build();
    if ("hits" in what || "method" in what) this.filter();
    if ("selected" in what || "method" in what) this.choose();
  }

  build() {
    this.rows = new Map([...view.method.nodes.values()].map((node) => [node.id, this.row(node)]));
    this.list.replaceChildren(...this.rows.values());
    this.list.scrollTop = 0;
  }

  row(node) {
    const { id, instruction, part } = node;
    const isJump = instruction.kind === "jump";
    const out = isJump ? `→ #${instruction.target ?? -1}` : node.out;
    return el("li", { class: part ? "inner" : null, onclick: () => view.select(id) },
      el("span", { class: "index" }, part ? part.place : id),
      el("span", { class: `op k-${node.family}` }, node.title),
      el("span", { class: "out" }, out),
      el("span", { class: "line" }, sourceLine(node)));
  }

  filter() {
    const { hits, method } = view;
    for (const [id, row] of this.rows) row.hidden = hits !== null && !hits.has(id);
    const inner = method.nodes.size - method.instructions.length;
    const total = plural(method.instructions.length, "instruction") +
      (inner ? `, ${plural(inner, "operator")} in delegates` : "");
    this.found.textContent = hits === null ? total : `${count(hits.size)} of ${total}`;
  }

  choose() {
    const { selected, method } = view;
    if (this.chosen) this.chosen.setAttribute("aria-selected", "false");
    const row = this.rows.get(selected);
    this.chosen = row;
    if (row) row.setAttribute("aria-selected", "true");
    if (row && !row.hidden) {
      const { offsetTop: top, offsetHeight: height } = row;
      const { scrollTop, clientHeight } = this.list;
      if (top < scrollTop || top + height > scrollTop + clientHeight) {
        this.list.scrollTop = top - clientHeight / 2;
      }
    }
    const node = method.nodes.get(selected);
    const hint = "Choose an instruction to see what it takes, what it makes and the Python line it " +
      "comes from. Press / to search, ↑ and ↓ to move.";
    this.detail.replaceChildren(
      ...(node ? this.describe(node) : [el("p", { class: "hint" }, hint)]));
  }

  describe(node) {
    const { method } = view;
    const { instruction, part, sources } = node;
    const { index, kind } = instruction;
    const parts = [
      el("h3", {}, el("span", { class: "index" }, idText(node.id)), node.op),
      facts(
        ["backend", kind === "delegate" ? method.delegates[instruction.delegate].backend : ""],
        [node.names.length > 1 ? "nodes" : "node", node.names.join(", ")],
        ["operator", part ? [...new Set(sources.map(({ operator }) => operator))].join(", ") : ""],
        ["module", modulesOf(sources).join(", ")],
        ["function", [...new Set(sources.map((source) => source.function).filter(Boolean))].join(", ")],
        ["debug handle", [...new Set(sources.map(({ handle }) => handle).filter(Boolean))].join(", ")],
        ["result", part ? (part.results || []).join(", ") : ""],
        ["time", this.time(node)], ["work", work(node)],
        ["jumps to", kind === "jump" ? `#${instruction.target ?? -1} if the value is false` : ""]),
      ...this.lines(sources),
    ];
    if (!part) parts.push(el("h4", {}, "Arguments"), this.arguments(instruction));
    else parts.push(this.links("Inside of", [index]));
    parts.push(this.links("Runs", node.ids));
    parts.push(this.links("Comes from", node.from), this.links("Goes to", method.consumers.get(node.id)));
    const returned = method.outputs.filter((slot) => {
      const by = method.writerOf(slot.value);
      return by >= 0 && (by === node.id || method.writersIn(by, slot.value).includes(node.id));
    });
    if (returned.length) {
      parts.push(el("p", { class: "hint" }, `Returned as ${returned.map((s) => s.name).join(", ")}.`));
    }
    parts.push(this.mentions(node));
    return parts.filter(Boolean);
  }

  time({ ms, calls, instruction, part }) {
    const { method } = view;
    if (ms === undefined) {
      return part && method.times ? "not timed by itself: the runtime fuses it with another" : "";
    }
    const often = calls !== undefined && calls !== 1 ? `, ${+calls.toFixed(2)} calls a run` : "";
    return `${duration(ms)}, ${percent(ms, method.ms)} of all operators${often}`;
  }

  // Each line of Python once, with the lines that called it if a record tells of them.
  lines(sources) {
    const seen = new Set();
    const stacks = (report.stacks || {})[view.method.name] || {};
    return sources.map((source) => {
      const key = sourceText(source);
      const stack = stacks[source.handle];
      if (seen.has(key + stack) || (!source.text && !source.file)) return null;
      seen.add(key + stack);
      return el("figure", { class: "code" },
        el("figcaption", {}, source.file ? `${source.file}:${source.line}` : ""),
        el("code", {}, source.text || ""),
        stack ? el("details", {}, el("summary", {}, "Stack trace"), el("pre", {}, stack)) : null);
    }).filter(Boolean);
  }

  arguments(instruction) {
    const { method } = view;
    const writes = new Set(instruction.writes);
    const { args } = instruction;
    const last = args.length - 1;
    const again = last > 0 && args[last] === args[last - 1]; // what it returns
    const rows = (again ? args.slice(0, last) : args).map((index, i) => {
      const out = writes.has(index) || (instruction.kind === "kernel" && i === last);
      const value = method.values[index];
      const place = value.memory_id ? el("button", {
        type: "button", class: "plain", title: "Show it in the memory plan",
        onclick: () => shows.memory(index),
      }, `memory ${value.memory_id} + ${count(value.offset || 0)}`) :
        value.constant ? `constant ${value.constant}` : "";
      return el("tr", { class: out ? "written" : null }, el("td", {}, out ? "out" : ""),
        el("td", {}, value.name || value.kind), el("td", { class: "mono" }, value.text),
        el("td", { class: "mono" }, place),
        el("td", { class: "number" }, value.bytes ? count(value.bytes) : ""));
    });
    return el("div", { class: "scroll" }, el("table", { class: "arguments" }, el("tbody", {}, rows)));
  }

  links(title, ids) {
    if (!ids.length) return null;
    const { method } = view;
    const more = ids.length - MAX_LINKS;
    return el("div", { class: "links" }, el("h4", {}, title),
      ids.slice(0, MAX_LINKS).map((id) => el("button", {
        type: "button", onclick: () => view.select(id),
      }, el("span", { class: "index" }, idText(id)), method.nodes.get(id).title)),
      more > 0 ? el("span", { class: "hint" }, ` and ${more} more`) : null);
  }

  // The rows of tables that are about a node.
  mentions(node) {
    const found = tables.flatMap((one) => one.rowsAbout(view.method, node).slice(0, MAX_LINKS)
      .map((row) => el("button", { type: "button", onclick: () => one.reveal(row) }, one.title)));
    return found.length ? el("div", { class: "links mentions" }, el("h4", {}, "Also in"), found) : null;
  }

  // Moves the choice by one node among those that are listed.
  move(by) {
    const shown = [...this.rows].filter(([, row]) => !row.hidden).map(([id]) => id);
    if (!shown.length) return;
    const at = shown.indexOf(view.selected);
    const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : at + by;
    if (next >= 0 && next < shown.length) view.select(shown[next]);
  }

  key(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    this.move(event.key === "ArrowDown" ? 1 : -1);
  }
}

function work({ flops, bytes }) {
  const parts = [flops ? `${count(flops)} operations` : "", bytes ? `${size(bytes)} read and written` : ""];
  return parts.filter(Boolean).join(", ");
}

function sourceLine({ sources, names }) {
  const source = sources[0];
  if (!source) return names[0] || "";
  return source.text || source.module || names[0] || "";
}
