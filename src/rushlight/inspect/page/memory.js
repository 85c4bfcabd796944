// The memory plan over time: one rectangle per block, instructions to the right, offsets upwards;
// below it the bytes that are live at each instruction.

const MAX_USERS = 24; // of a block that are listed
const PLAN = { left: 76, right: 16, top: 22, height: 380, gap: 40, live: 84, bottom: 26 };

class MemoryChart {
  constructor(root) {
    this.root = root;
    this.arena = null;
    this.pinned = null;
    view.on((what) => this.update(what));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  update(what) {
    if ("method" in what) {
      const arenas = view.method.arenas.filter((arena) => arena.blocks.length);
      this.arena = arenas[0] || null;
      this.pinned = null;
      this.resetRange();
      this.build(arenas);
      return;
    }
    if (!this.arena) return;
    if ("selected" in what && this.pinned && this.pinned.writer !== view.at) {
      this.pinned = null;
    }
    this.mark();
  }

  // Shows and keeps the block of a value.
  reveal(value) {
    for (const arena of view.method.arenas) {
      const block = arena.blocks.find((one) => one.value === value || (one.views || []).includes(value));
      if (!block) continue;
      this.resetRange();
      this.show(arena);
      this.pinned = block;
      this.mark();
      this.root.scrollIntoView({ block: "start" });
    }
  }

  resetRange() {
    this.range = [0, Math.max(view.method.instructions.length, 1)];
  }

  build(arenas) {
    this.root.replaceChildren(el("h2", {}, "Memory plan"));
    if (!arenas.length) {
      this.root.append(el("p", { class: "empty" }, "This method plans no memory."));
      return;
    }
    this.figures = el("p", { class: "figures" });
    this.legend = el("div", { class: "legend" });
    this.frame = el("div", { class: "chart" });
    this.detail = el("div", { class: "detail", "aria-live": "polite" });
    const choose = arenas.length > 1 && el("span", { class: "tabs" }, arenas.map((arena) =>
      el("button", { type: "button", onclick: () => this.show(arena), "data-id": arena.memory_id },
        `memory ${arena.memory_id}`)));
    this.whole = el("button", { type: "button", hidden: true, onclick: () => {
      this.resetRange();
      this.draw();
    } }, "show all");
    this.root.append(this.figures,
      el("div", { class: "tools" }, choose || null, this.legend,
        el("span", { class: "push" }, this.whole)),
      this.frame, this.detail);
    this.show(this.arena);
  }

  show(arena) {
    this.arena = arena;
    for (const button of this.root.querySelectorAll(".tabs button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.id) === arena.memory_id));
    }
    const { bytes, lower_bound: bound } = arena;
    const over = above(bytes, bound);
    this.figures.replaceChildren(
      el("strong", {}, size(bytes)), ` planned for ${plural(arena.blocks.length, "block")}; `,
      `no plan can need less than `, el("strong", {}, size(bound)),
      over ? ` (this one takes ${over})` : " (this one takes just that)",
      `, the bytes live at instruction ${arena.peak_at}.`);
    if (arena.overlap) {
      const names = arena.overlap.map((value) => view.method.values[value].name).join(" and ");
      this.figures.append(el("strong", { class: "bad" },
        ` Unsound: ${names} share bytes while both live.`));
    }
    this.draw();
  }

  // Temporaries have the colour of the work that fills them.
  colour(block) {
    const writer = view.method.instructions[block.writer ?? -1];
    return block.role === "temporary" && writer ? writer.family : block.role;
  }

  draw() {
    if (!this.arena || !this.frame || !this.frame.isConnected) return;
    this.width = Math.max(this.frame.clientWidth, 320);
    this.inner = this.width - PLAN.left - PLAN.right;
    this.liveTop = PLAN.top + PLAN.height + PLAN.gap;
    const height = this.liveTop + PLAN.live + PLAN.bottom;
    const top = Math.max(this.arena.bytes, this.arena.lower_bound, 1);
    this.x = (at) => PLAN.left + ((at - this.range[0]) / (this.range[1] - this.range[0])) * this.inner;
    this.y = (offset) => PLAN.top + PLAN.height * (1 - offset / top);
    this.liveY = (bytes) => this.liveTop + PLAN.live * (1 - bytes / top);
    this.canvas = svg("svg", {
      width: this.width, height, role: "img",
      "aria-label": "Planned memory: blocks by offset over instructions",
    });
    this.canvas.append(
      svg("clipPath", { id: "inside" }, svg("rect", {
        x: PLAN.left, y: 0, width: this.inner, height })),
      this.axes(top), this.blocks(), this.live(), this.bounds(), this.cursor());
    this.frame.replaceChildren(this.canvas);
    this.whole.hidden = this.range[0] === 0 &&
      this.range[1] === Math.max(view.method.instructions.length, 1);
    const used = new Set(this.arena.blocks.map((block) => this.colour(block)));
    this.legend.replaceChildren(...Object.entries(KINDS).filter(([kind]) => used.has(kind)).map(
      ([kind, name]) => el("span", { class: `key k-${kind}` }, name)));
    this.listen();
    this.mark();
  }

  axes(top) {
    const group = svg("g", { class: "axes" });
    const right = this.width - PLAN.right;
    for (const at of ticks(0, top, 6, true)) {
      const y = this.y(at);
      group.append(svg("line", { x1: PLAN.left, x2: right, y1: y, y2: y }),
        svg("text", { x: PLAN.left - 8, y: y + 4, "text-anchor": "end" }, at ? size(at) : "0"));
    }
    const base = this.liveTop + PLAN.live;
    for (const at of ticks(this.range[0], this.range[1] - 1, Math.max(this.inner / 90, 2), false)) {
      const x = this.x(at);
      group.append(svg("text", { x: x + 2, y: base + 18, "text-anchor": "start" }, `#${count(at)}`),
        svg("line", { x1: x, x2: x, y1: base, y2: base + 5 }));
    }
    group.append(
      svg("line", { class: "base", x1: PLAN.left, x2: right, y1: base, y2: base }),
      svg("line", { class: "base", x1: PLAN.left, x2: right, y1: this.y(0), y2: this.y(0) }),
      svg("text", { class: "name", x: PLAN.left, y: PLAN.top - 8 }, "offset in the arena"),
      svg("text", { class: "name", x: PLAN.left, y: this.liveTop - 8 }, "live bytes"));
    return group;
  }

  blocks() {
    const group = svg("g", { "clip-path": "url(#inside)" });
    this.rects = [];
    for (const block of this.arena.blocks) {
      if (!block.bytes || block.last + 1 < this.range[0] || block.first > this.range[1]) continue;
      const x = this.x(block.first), width = Math.max(this.x(block.last + 1) - x, 1);
      const y = this.y(block.offset + block.bytes);
      const height = Math.max(this.y(block.offset) - y, 1);
      const gap = width > 5 ? 1 : 0;
      const rect = svg("rect", {
        class: `block k-${this.colour(block)}`, x, y, width: width - gap,
        height: Math.max(height - (height > 5 ? 1 : 0), 1), rx: Math.min(3, width / 4, height / 4),
      });
      rect.block = block;
      this.rects.push(rect);
      group.append(rect);
      const seen = Math.min(x + width, this.width - PLAN.right) - Math.max(x, PLAN.left);
      const letters = Math.floor((seen - 10) / 6.6);
      if (height >= 15 && letters >= 4) {
        const name = block.name.length > letters ? `${block.name.slice(0, letters - 1)}…` : block.name;
        group.append(svg("text", {
          class: "label", x: Math.max(x, PLAN.left) + 5, y: y + Math.min(height / 2 + 4, 16),
        }, name));
      }
    }
    return group;
  }

  live() {
    const base = this.liveY(0);
    const end = this.x(view.method.instructions.length || 1);
    let path = `M${this.x(0)} ${base}`;
    for (const [at, bytes] of this.arena.live) {
      path += `H${Math.min(this.x(at), end)}V${this.liveY(bytes)}`;
    }
    path += `H${end}V${base}Z`;
    return svg("g", { "clip-path": "url(#inside)" }, svg("path", { class: "live", d: path }));
  }

  bounds() {
    const group = svg("g", { class: "bounds" });
    const right = this.width - PLAN.right;
    const { bytes, lower_bound: bound } = this.arena;
    const line = (y, kind) => svg("line", { class: kind, x1: PLAN.left, x2: right, y1: y, y2: y });
    const text = (y, kind, words) =>
      svg("text", { class: kind, x: right - 4, y, "text-anchor": "end" }, words);
    group.append(line(this.y(bytes), "size"), line(this.y(bound), "bound"),
      line(this.liveY(bound), "bound"));
    const close = this.y(bound) - this.y(bytes) < 14;
    group.append(text(this.y(bytes) - 6, "size", close && bytes > bound
      ? `planned ${size(bytes)}, lower bound ${size(bound)}`
      : bytes > bound ? `planned ${size(bytes)}` : `planned ${size(bytes)} = lower bound`));
    if (!close) group.append(text(this.y(bound) - 6, "bound", `lower bound ${size(bound)}`));
    return group;
  }

  cursor() {
    this.line = svg("rect", {
      class: "cursor", y: PLAN.top, height: this.liveTop + PLAN.live - PLAN.top, width: 1,
      visibility: "hidden",
    });
    this.chosen = svg("rect", {
      class: "chosen", y: PLAN.top, height: this.liveTop + PLAN.live - PLAN.top,
      visibility: "hidden",
    });
    this.brush = svg("rect", {
      class: "brush", y: PLAN.top, height: this.liveTop + PLAN.live - PLAN.top,
      visibility: "hidden",
    });
    return svg("g", { class: "cursors" }, this.chosen, this.line, this.brush);
  }

  listen() {
    const at = (event) => {
      const x = event.clientX - this.canvas.getBoundingClientRect().left;
      const part = Math.min(Math.max((x - PLAN.left) / this.inner, 0), 1);
      return this.range[0] + part * (this.range[1] - this.range[0]);
    };
    this.canvas.addEventListener("pointermove", (event) => this.hover(event, at(event)));
    this.canvas.addEventListener("pointerleave", () => {
      tip.hide();
      this.place(this.line, null);
    });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.from = event.button === 0 ? at(event) : null;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const from = this.from, to = at(event);
      this.from = null;
      this.place(this.brush, null);
      if (from === null) return;
      if (Math.abs(this.x(to) - this.x(from)) > 6) this.zoom(Math.min(from, to), Math.max(from, to));
      else this.click(document.elementFromPoint(event.clientX, event.clientY), Math.floor(to));
    });
    this.canvas.addEventListener("dblclick", () => {
      this.resetRange();
      this.draw();
    });
  }

  zoom(from, to) {
    const first = Math.floor(from);
    this.range = [first, Math.max(Math.ceil(to), first + 1)];
    tip.hide();
    this.draw();
  }

  place(rect, from, to) {
    rect.setAttribute("visibility", from === null ? "hidden" : "visible");
    if (from === null) return;
    const left = Math.max(this.x(from), PLAN.left);
    const right = Math.min(this.x(to), this.width - PLAN.right);
    rect.setAttribute("x", left);
    rect.setAttribute("width", Math.max(right - left, 1));
  }

  hover(event, at) {
    if (this.from !== null && this.from !== undefined) {
      this.place(this.brush, Math.min(this.from, at), Math.max(this.from, at));
    }
    const index = Math.min(Math.floor(at), view.method.instructions.length - 1);
    this.place(this.line, index, index + 1);
    const block = event.target.block;
    if (block) {
      tip.show(event, this.describe(block));
      return;
    }
    const instruction = view.method.instructions[index];
    if (!instruction) return;
    let live = 0;
    for (const [from, bytes] of this.arena.live) if (from <= index) live = bytes;
    tip.show(event, el("strong", {}, `#${index}  ${shortOp(instruction.op)}`),
      facts(["live", size(live)], ["Python", sourceText(instruction.source)]));
  }

  describe(block) {
    const method = view.method;
    const writer = method.instructions[block.writer ?? -1];
    const views = (block.views || []).map((value) => method.values[value].text);
    const shown = views.slice(0, 3).join(", ") + (views.length > 3 ? `, ${views.length - 3} more` : "");
    return el("div", {}, el("strong", {}, block.name), el("span", { class: "type" }, block.text),
      facts(
        ["bytes", `${count(block.bytes)} (${size(block.bytes)})`],
        ["offset", `${count(block.offset)} to ${count(block.offset + block.bytes)}`],
        ["needed", block.first === block.last ? `at instruction ${block.first}` :
          `from instruction ${block.first} to ${block.last}`],
        ["role", block.role],
        ["filled by", writer ? `#${block.writer} ${writer.op}` : "the caller, before the first"],
        ["module", writer && writer.source ? writer.source.module : ""],
        ["Python", writer ? sourceText(writer.source) : ""],
        ["also as", shown]));
  }

  // The instructions that fill and use the block that is kept.
  links() {
    const { value, views = [] } = this.pinned;
    const own = new Set([value, ...views]);
    const users = view.method.instructions.filter(({ reads, writes }) =>
      [...reads, ...writes].some((one) => own.has(one)));
    return el("div", { class: "links" }, el("h4", {}, "In the graph"), users.slice(0, MAX_USERS).map(
      ({ index, op }) => goButton(view.method.name, index, `#${index} ${shortOp(op)}`)));
  }

  click(target, instruction) {
    const block = target && target.block;
    this.pinned = block || null;
    if (!block) view.select(Math.min(instruction, view.method.instructions.length - 1));
    else if ((block.writer ?? -1) >= 0) view.select(block.writer);
    this.mark();
  }

  // Shows what is searched for, chosen and pinned.
  mark() {
    if (!this.rects) return;
    const { hits, at: selected } = view;
    for (const rect of this.rects) {
      const { block } = rect;
      const writer = block.writer ?? -1;
      rect.classList.toggle("dim", hits !== null && !hits.has(writer));
      rect.classList.toggle("on", block === this.pinned || (writer >= 0 && writer === selected));
    }
    this.place(this.chosen, selected >= 0 ? selected : null, selected + 1);
    const outside = selected + 1 <= this.range[0] || selected >= this.range[1];
    if (selected < 0 || outside) this.place(this.chosen, null);
    this.detail.replaceChildren(this.pinned ? el("div", {}, this.describe(this.pinned), this.links()) :
      el("p", { class: "hint" }, "Point at a block to see its tensor, click to keep it; " +
        "drag to zoom, double-click to see all."));
  }
}
