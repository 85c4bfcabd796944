// The graph as a drawing: the whole method if it is small, else what surrounds the chosen
// instruction. Drag to move, buttons or Ctrl and the wheel to zoom.

const MAX_DRAWN = 400; // instructions of a method that is drawn whole
const MAX_AROUND = 90; // instructions around the chosen one otherwise

class Drawing {
  constructor(root) {
    this.root = root;
    this.stage = el("div", { class: "stage" });
    this.note = el("p", { class: "hint" });
    const button = (text, title, act) =>
      el("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    root.append(
      el("div", { class: "zoom" },
        button("−", "Zoom out", () => this.zoom(1.3)), button("+", "Zoom in", () => this.zoom(1 / 1.3)),
        button("⤢", "Show all", () => this.fit())),
      this.stage, this.note);
    this.listen();
    view.on((what) => this.update(what));
  }

  update(what) {
    const { method } = view;
    if ("method" in what) this.whole = method.instructions.length <= MAX_DRAWN;
    if ("method" in what || ("selected" in what && !this.whole)) this.draw();
    this.mark();
    if ("selected" in what) this.centre();
  }

  // Instructions to draw: all, or those a few edges away from the chosen one.
  chosen() {
    const { method, selected } = view;
    if (this.whole) return method.instructions.map((instruction) => instruction.index);
    const start = Math.max(selected, 0);
    const found = new Set([start]);
    let edge = [start];
    while (edge.length && found.size < MAX_AROUND) {
      const next = [];
      for (const at of edge) {
        const from = method.instructions[at].from.filter((other) => other >= 0);
        for (const other of [...from, ...method.consumers[at]]) {
          if (found.size < MAX_AROUND && !found.has(other)) { found.add(other); next.push(other); }
        }
      }
      edge = next;
    }
    return [...found].sort((a, b) => a - b);
  }

  draw() {
    const { method } = view;
    const indices = this.chosen();
    if (!indices.length || !method.instructions.length) {
      this.stage.replaceChildren(el("p", { class: "empty" }, "This method runs no instructions."));
      this.note.textContent = "";
      this.canvas = null;
      return;
    }
    const { nodes, edges } = this.parts(indices);
    const plan = layered(nodes, edges);
    this.size(plan.nodes);
    this.boxes = new Map();
    const lines = plan.edges.map((points, i) => {
      const path = svg("path", { class: "edge", d: curve(points) });
      [path.from, path.to] = edges[i];
      return path;
    });
    this.lines = lines;
    this.canvas = svg("svg", { role: "img", "aria-label": "Drawing of the graph" },
      svg("g", {}, lines), svg("g", {}, plan.nodes.map((node) => this.box(node))));
    this.stage.replaceChildren(this.canvas);
    this.note.textContent = this.whole ? "" :
      `Too large to draw whole: ${plural(indices.length, "instruction")} around the chosen one.`;
    this.fit();
  }

  parts(indices) {
    const { method } = view;
    const drawn = new Set(indices);
    const nodes = [], edges = new Map();
    const slots = new Map();
    const link = (from, to) => edges.set(`${from}>${to}`, [from, to]);
    for (const slot of method.inputs) slots.set(slot.value, slot);
    for (const at of indices) {
      const instruction = method.instructions[at];
      nodes.push({ id: at, instruction });
      instruction.reads.forEach((value, k) => {
        const from = instruction.from[k];
        if (from >= 0 && from < at && drawn.has(from)) link(from, at);
        const slot = slots.get(value) || slots.get(method.values[value].base);
        if (from < 0 && slot) link(`in ${slot.value}`, at);
      });
    }
    const used = new Set([...edges.values()].map(([from]) => from));
    for (const slot of method.inputs) {
      if (used.has(`in ${slot.value}`)) nodes.push({ id: `in ${slot.value}`, slot, kind: "input" });
    }
    method.outputs.forEach((slot, k) => {
      const from = method.writerOf(slot.value);
      if (!drawn.has(from)) return;
      nodes.push({ id: `out ${k}`, slot, kind: "output" });
      link(from, `out ${k}`);
    });
    return { nodes, edges: [...edges.values()] };
  }

  box({ id, instruction, slot, kind, x, y }) {
    const left = x - BOX.width / 2, top = y - BOX.height / 2;
    const cut = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
    const values = view.method.values;
    const title = instruction ? shortOp(instruction.op) : slot.name;
    const below = !instruction ? slot.text :
      instruction.writes.length ? values[instruction.writes[0]].text : "";
    const group = svg("g", {
      class: `box k-${instruction ? instruction.family : kind}`,
      onclick: instruction && (() => !this.moved && view.select(instruction.index)),
    },
    svg("rect", { x: left, y: top, width: BOX.width, height: BOX.height, rx: instruction ? 6 : 20 }),
    svg("rect", { class: "stripe", x: left, y: top + 7, width: 4, height: BOX.height - 14, rx: 2 }),
    svg("text", { class: "title", x: left + 14, y: top + 17 }, cut(title, 20)),
    svg("text", { x: left + 14, y: top + 32 }, cut(below, 25)),
    svg("title", {}, !instruction ? title :
      `#${instruction.index} ${instruction.op}\n${sourceText(instruction.source)}`));
    if (instruction) {
      group.append(svg("text", {
        class: "number", x: left + BOX.width - 8, y: top + 17, "text-anchor": "end",
      }, title.length > 16 ? "" : `#${instruction.index}`));
    }
    group.at = { x, y };
    this.boxes.set(id, group);
    return group;
  }

  size(nodes) {
    const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
    const pad = 24;
    const left = Math.min(...xs) - BOX.width / 2 - pad;
    const top = Math.min(...ys) - BOX.height / 2 - pad;
    this.bounds = {
      left, top, width: Math.max(...xs) + BOX.width / 2 + pad - left,
      height: Math.max(...ys) + BOX.height / 2 + pad - top,
    };
  }

  // All of the width, or as much as can still be read; the top of it.
  fit() {
    if (!this.canvas) return;
    const { clientWidth: width, clientHeight: height } = this.stage;
    const whole = Math.max(this.bounds.width / width, this.bounds.height / height);
    this.scale = Math.max(Math.min(whole, 1.25), 0.8);
    this.x = this.bounds.left + (this.bounds.width - width * this.scale) / 2;
    this.y = this.bounds.height > height * this.scale ? this.bounds.top :
      this.bounds.top + (this.bounds.height - height * this.scale) / 2;
    this.look();
  }

  look() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    this.canvas.setAttribute("viewBox",
      `${this.x} ${this.y} ${width * this.scale} ${height * this.scale}`);
  }

  zoom(by, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    if (!this.canvas) return;
    const scale = Math.min(Math.max(this.scale * by, 0.3), 12);
    this.x += x * (this.scale - scale);
    this.y += y * (this.scale - scale);
    this.scale = scale;
    this.look();
  }

  centre() {
    const box = this.canvas && this.boxes.get(view.selected);
    if (!box) return;
    const { clientWidth: width, clientHeight: height } = this.stage;
    const x = (box.at.x - this.x) / this.scale, y = (box.at.y - this.y) / this.scale;
    if (x > 60 && x < width - 60 && y > 40 && y < height - 40) return;
    this.x = box.at.x - (width / 2) * this.scale;
    this.y = box.at.y - (height / 2) * this.scale;
    this.look();
  }

  mark() {
    if (!this.canvas) return;
    const { hits, selected } = view;
    for (const [id, box] of this.boxes) {
      box.classList.toggle("on", id === selected);
      box.classList.toggle("dim", hits !== null && !hits.has(id));
    }
    for (const line of this.lines) {
      line.classList.toggle("on", line.from === selected || line.to === selected);
    }
  }

  listen() {
    let from = null;
    this.stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.canvas) return;
      from = { x: event.clientX, y: event.clientY, left: this.x, top: this.y };
      this.moved = false;
    });
    addEventListener("pointermove", (event) => {
      if (!from || !this.canvas) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (Math.hypot(dx, dy) > 4) this.moved = true;
      this.x = from.left - dx * this.scale;
      this.y = from.top - dy * this.scale;
      this.look();
    });
    addEventListener("pointerup", () => { from = null; });
    this.stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, top } = this.stage.getBoundingClientRect();
      this.zoom(Math.exp(event.deltaY / 300), event.clientX - left, event.clientY - top);
    }, { passive: false });
    new ResizeObserver(() => this.canvas && this.look()).observe(this.stage);
  }
}

function curve(points) {
  const half = BOX.height / 2;
  const ends = points.map(([x, y], i) =>
    [x, i === 0 ? y + half : i === points.length - 1 ? y - half : y]);
  let path = `M${ends[0][0]} ${ends[0][1]}`;
  for (let i = 1; i < ends.length; i += 1) {
    const [x0, y0] = ends[i - 1], [x1, y1] = ends[i];
    const middle = (y0 + y1) / 2;
    path += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return path;
}
