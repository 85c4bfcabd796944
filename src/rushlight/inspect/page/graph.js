// The graph as a list to search, and all about the chosen instruction beside it.

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
    const { method } = view;
    this.rows = method.instructions.map((instruction) => this.row(instruction));
    this.list.replaceChildren(...this.rows);
    this.list.scrollTop = 0;
  }

  row(instruction) {
    const { method } = view;
    const out = instruction.writes.length ? method.values[instruction.writes[0]] : null;
    const isJump = instruction.kind === "jump";
    const target = isJump ? `→ #${instruction.target ?? -1}` : out ? out.text : "";
    return el("li", { onclick: () => view.select(instruction.index) },
      el("span", { class: "index" }, instruction.index),
      el("span", { class: `op k-${instruction.family}` }, shortOp(instruction.op)),
      el("span", { class: "out" }, target),
      el("span", { class: "line" }, sourceLine(instruction)));
  }

  filter() {
    const { hits, method } = view;
    this.rows.forEach((row, i) => { row.hidden = hits !== null && !hits.has(i); });
    const total = method.instructions.length;
    this.found.textContent = hits === null ? plural(total, "instruction") :
      `${count(hits.size)} of ${plural(total, "instruction")}`;
  }

  choose() {
    const { selected, method } = view;
    this.rows.forEach((row, i) => row.setAttribute("aria-selected", String(i === selected)));
    const row = this.rows[selected];
    if (row && !row.hidden) {
      const { offsetTop: top, offsetHeight: height } = row;
      const { scrollTop, clientHeight } = this.list;
      if (top < scrollTop || top + height > scrollTop + clientHeight) {
        this.list.scrollTop = top - clientHeight / 2;
      }
    }
    const instruction = method.instructions[selected];
    const hint = "Choose an instruction to see what it takes, what it makes and the Python line it " +
      "comes from. Press / to search, ↑ and ↓ to move.";
    this.detail.replaceChildren(
      ...(instruction ? this.describe(instruction) : [el("p", { class: "hint" }, hint)]));
  }

  describe(instruction) {
    const { method } = view;
    const { source, kind } = instruction;
    const parts = [
      el("h3", {}, el("span", { class: "index" }, `#${instruction.index}`), instruction.op),
      facts(["node", instruction.name], ["module", source ? source.module : ""],
        ["function", source ? source.function : ""],
        ["jumps to", kind === "jump" ? `#${instruction.target ?? -1} if the value is false` : ""]),
    ];
    if (source && (source.text || source.file)) {
      parts.push(el("figure", { class: "code" },
        el("figcaption", {}, source.file ? `${source.file}:${source.line}` : ""),
        el("code", {}, source.text || "")));
    }
    parts.push(el("h4", {}, "Arguments"), this.arguments(instruction));
    parts.push(this.links("Comes from", [...new Set(instruction.from.filter((at) => at >= 0))]));
    parts.push(this.links("Goes to", method.consumers[instruction.index]));
    const { index } = instruction;
    const returned = method.outputs.filter((slot) => method.writerOf(slot.value) === index);
    if (returned.length) {
      parts.push(el("p", { class: "hint" }, `Returned as ${returned.map((s) => s.name).join(", ")}.`));
    }
    return parts;
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
      const place = value.memory_id ? `memory ${value.memory_id} + ${count(value.offset || 0)}` :
        value.constant ? `constant ${value.constant}` : "";
      return el("tr", { class: out ? "written" : null }, el("td", {}, out ? "out" : ""), el("td", {}, value.name || value.kind),
        el("td", { class: "mono" }, value.text), el("td", { class: "mono" }, place),
        el("td", { class: "number" }, value.bytes ? count(value.bytes) : ""));
    });
    return el("div", { class: "scroll" }, el("table", { class: "arguments" }, el("tbody", {}, rows)));
  }

  links(title, indices) {
    if (!indices.length) return null;
    const { method } = view;
    const more = indices.length - MAX_LINKS;
    return el("div", { class: "links" }, el("h4", {}, title),
      indices.slice(0, MAX_LINKS).map((at) => el("button", {
        type: "button", onclick: () => view.select(at),
      }, el("span", { class: "index" }, `#${at}`), shortOp(method.instructions[at].op))),
      more > 0 ? el("span", { class: "hint" }, ` and ${more} more`) : null);
  }

  // Moves the choice by one instruction among those that are listed.
  move(by) {
    const shown = this.rows.flatMap((row, i) => (row.hidden ? [] : [i]));
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

function sourceLine(instruction) {
  const { source } = instruction;
  if (!source) return instruction.name || "";
  return source.text || source.module || instruction.name || "";
}
